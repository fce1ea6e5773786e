"""Connections that wait for their turn."""

import asyncio
import logging
from collections import deque
from typing import Protocol

_AT_ONCE = 16
_LOG = logging.getLogger(__name__)


class Waiting(Protocol):
    """What waits for its turn."""

    def take_turn(self) -> None:
        """Go on."""
        ...

    def abort(self) -> None:
        """End: it cannot go on."""
        ...


class Turns:
    """Lets a few of those that wait go on in each round of the event loop, in their order.

    Between two rounds the loop reads what has come, so a client that does not wait is held up by a
    few of those that do, however many they are.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[Waiting] = deque()
        self._is_scheduled = False

    def add(self, waiting: Waiting) -> None:
        """Have ``waiting`` go on after all that wait already."""
        self._waiting.append(waiting)
        self._schedule()

    def _schedule(self) -> None:
        if self._waiting and not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._run)

    def _run(self) -> None:
        for _ in range(min(_AT_ONCE, len(self._waiting))):
            self._give_turn(self._waiting.popleft())
        self._is_scheduled = False
        self._schedule()

    def _give_turn(self, waiting: Waiting) -> None:
        try:
            waiting.take_turn()
        except Exception:  # noqa: BLE001 - the fault of one must not end the turns of all
            _LOG.exception("a connection failed")
            waiting.abort()
