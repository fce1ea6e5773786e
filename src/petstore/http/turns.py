"""What the connections of a server share: turns, and a budget of memory."""

import asyncio
import logging
from collections import deque
from typing import Protocol

_AT_ONCE = 16
_LOG = logging.getLogger(__name__)


class Member(Protocol):
    """A connection among others."""

    def take_turn(self) -> None:
        """Go on."""

    def abort(self) -> None:
        """Close at once, and drop what is buffered."""


class Turns:
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
                member.take_turn()
            except Exception:  # noqa: BLE001 - the fault of one must not end the turns of all
                _LOG.exception("a connection failed")
                member.abort()
        self._is_scheduled = False
        self._schedule()


class BufferBudget:
    """Bounds what all connections buffer: unfinished requests and unread responses.

    Beyond ``max_bytes`` it closes the connection that has been silent for longest, then the next.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max = max_bytes
        self._total = 0
        # A connection that is not silent moves to the end: the first was silent for longest.
        self._sizes: dict[Member, int] = {}

    def note(self, member: Member, size: int) -> None:
        """Note that a connection buffers ``size`` bytes, and is not silent now."""
        self._total += size - self._sizes.pop(member, 0)
        if size:
            self._sizes[member] = size
        while self._total > self._max:
            silent = next(iter(self._sizes))
            self._total -= self._sizes.pop(silent)
            silent.abort()
