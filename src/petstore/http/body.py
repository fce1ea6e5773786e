"""The body of a request that is still on its way."""

import asyncio
from collections import Counter
from collections.abc import Callable, Hashable
from typing import Protocol

from petstore.http.messages import Request


class Holding(Protocol):
    """A connection that buffers something for its ``holder``, such as its client's address."""

    @property
    def holder(self) -> Hashable:
        """Who is charged for it."""
        ...

    def give_up(self) -> None:
        """Drop what is buffered, if possible with a response that says so."""


class BufferBudget:
    """Bounds what all connections buffer: unfinished requests and unread responses.

    Beyond ``max_bytes`` connections give up what they buffer, first those of the holder that has
    most, and of these the one with most; of equal ones the one that has been silent for longest.
    """

    def __init__(self, max_bytes: int) -> None:
        self.largest = max_bytes // 4
        """The most bytes that a response counts, so that none ends itself."""
        self._max = max_bytes
        self._total = 0
        self._totals: Counter[Hashable] = Counter()
        # A connection that is not silent moves to the end.
        self._sizes: dict[Hashable, dict[Holding, int]] = {}

    def note(self, member: Holding, size: int) -> None:
        """Note that a connection buffers ``size`` bytes, and is not silent now."""
        self._drop(member)
        if size:
            self._sizes.setdefault(member.holder, {})[member] = size
            self._totals[member.holder] += size
            self._total += size
        while self._total > self._max:
            sizes = self._sizes[max(self._totals, key=self._totals.__getitem__)]
            most = max(sizes, key=sizes.__getitem__)
            self._drop(most)
            most.give_up()

    def _drop(self, member: Holding) -> None:
        sizes = self._sizes.get(member.holder, {})
        size = sizes.pop(member, 0)
        if size:
            self._total -= size
            self._totals[member.holder] -= size
            if not sizes:
                del self._sizes[member.holder], self._totals[member.holder]


class RequestBody:
    """What has arrived of a body: ``size`` bytes, ``unread`` of them not yet taken.

    A body that is complete before the application asks for it becomes the request's ``content``.
    """

    def __init__(
        self, request: Request, send_continue: Callable[[], None], on_taken: Callable[[], None]
    ) -> None:
        self._request = request
        self._send_continue = send_continue  # tells the client to send it
        self._on_taken = on_taken
        expected = request.fields.get(b"expect", b"").lower()
        self._awaits_continue = expected == b"100-continue" and request.version == "1.1"
        self._was_asked_for = self._is_whole = False
        self._fault: Callable[[], ConnectionError] | None = None
        self._pieces: list[bytes] = []
        self._progress: asyncio.Future[None] | None = None
        self.size = self.unread = 0

    @property
    def held(self) -> int:
        """How many bytes of its request are in memory, here or at the application."""
        fields = self._request.fields
        head = sum(map(len, fields)) + sum(map(len, fields.values()))
        return head + (self.size if self._request.keeps_body else self.unread)

    def add(self, piece: bytes, *, is_last: bool) -> None:
        self._pieces.append(piece)
        self.size += len(piece)
        self.unread += len(piece)
        self._is_whole = is_last
        if is_last and not self._was_asked_for:
            self._request.content, self._request.body = self._take(), "read"
        self._wake()

    def cut_off(self, fault: Callable[[], ConnectionError]) -> None:
        """Note the error to make if the rest is asked for: it cannot arrive. The first counts."""
        self._fault = self._fault or fault
        self._wake()

    def drop(self) -> None:
        self._take()

    async def receive(self) -> bytes:
        """Return the next piece of the body, or nothing at its end."""
        self._was_asked_for = True
        if self._awaits_continue and not self.size and not self._is_whole:
            self._send_continue()
        self._awaits_continue = False
        while not self.unread:
            if self._is_whole:
                return b""
            if self._fault is not None:
                raise self._fault()
            self._progress = asyncio.get_running_loop().create_future()
            await self._progress
        piece = self._take()
        self._on_taken()
        return piece

    def _take(self) -> bytes:
        pieces, self._pieces, self.unread = self._pieces, [], 0
        return b"".join(pieces)

    def _wake(self) -> None:
        if self._progress is not None and not self._progress.done():
            self._progress.set_result(None)


async def receive_nothing() -> bytes:
    return b""
