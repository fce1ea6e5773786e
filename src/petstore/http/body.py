"""The body of a request that is still on its way."""

import asyncio
from collections.abc import Callable

from petstore.http.messages import Request


class RequestBody:
    """What has arrived of a body: ``size`` bytes, ``unread`` of them not yet taken.

    A body that is complete before the application asks for it becomes the request's ``content``.
    """

    def __init__(
        self,
        request: Request,
        send_continue: Callable[[], None],
        on_taken: Callable[[], None],
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
        """Drop what is not yet taken."""
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
    """Receive the body of a request that has none."""
    return b""
