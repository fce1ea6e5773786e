"""What the connections of a server share: turns, and a budget of memory."""

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Hashable
from typing import Protocol

_AT_ONCE = 16
_LOG = logging.getLogger(__name__)


class Member(Protocol):
    """A connection among others."""

    def resume(self) -> None:
        """Go on."""

    def abort(self) -> None:
        """Close at once, and drop what is buffered."""


class Holding(Protocol):
    """A connection that buffers something for its ``holder``, such as its client's address."""

    @property
    def holder(self) -> Hashable:
        """Who is charged for it."""
        ...

    def give_up(self) -> None:
        """Drop what is buffered, if possible with a response that says so."""


class RoundRobin:
    """Lets a few of the waiting connections continue in each round of the event loop, in order.

    The loop reads between two rounds. So a client that does not have to wait is delayed only by
    a few waiting clients, however many there are.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[Member] = deque()
        self._is_scheduled = False

    def add(self, member: Member) -> None:
        """Let a connection continue after all that already wait."""
        self._waiting.append(member)
        self._schedule()

    def _schedule(self) -> None:
        if self._waiting and not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._run)

    def _run(self) -> None:
        for _ in range(min(_AT_ONCE, len(self._waiting))):
            member = self._waiting.popleft()
            try:
                member.resume()
            except Exception:  # noqa: BLE001 - the fault of one must not end the turns of all
                _LOG.exception("a connection failed")
                member.abort()
        self._is_scheduled = False
        self._schedule()


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
