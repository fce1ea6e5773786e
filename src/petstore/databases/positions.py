"""Where in the primary's log the last change of each caller is."""

import asyncio
import logging
from contextlib import suppress
from importlib.resources import files
from typing import Any, TypeAlias
from uuid import uuid4

from petstore.clock import MINUTE, SECOND, Clock, Milliseconds, system_clock

END = 2**63 - 1
"""The end of the log, that no replica reaches: who may be there reads from the primary."""

_Command: TypeAlias = tuple[str | int, ...]

_KEPT: Milliseconds = 10 * MINUTE
"""A replica that is further behind than this is no replica."""
_KEPT_SECONDS = _KEPT // SECOND
# The limiter may have waited for Redis before: together no more than 150 ms.
_PATIENCE_SECONDS = 0.05
_SILENT: Milliseconds = SECOND
_COMMANDS_AT_ONCE = 50  # each takes a connection, and the client has no more than a hundred
_NOTE = files("petstore.databases").joinpath("positions.lua").read_text("utf-8")
_MEMORY = "petstore:changes:memory"
_LEAST = "petstore:changes:least"
_LOG = logging.getLogger(__name__)


class MemoryPositions:
    """The positions of one process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._positions: dict[int, tuple[int, Milliseconds]] = {}

    async def note(self, key_id: int, position: int) -> None:
        """Remember that ``key_id`` has changed something up to ``position``; the latest counts."""
        before, _ = self._positions.pop(key_id, (0, 0))
        if before != END:
            position = max(before, position)
        self._positions[key_id] = (position, self._clock())
        oldest = next(iter(self._positions))
        if self._clock() - self._positions[oldest][1] > _KEPT:
            del self._positions[oldest]

    async def of(self, key_id: int) -> int:
        """Return the position of the last change; 0 if there was none of late."""
        return self._positions.get(key_id, (0, 0))[0]

    async def close(self) -> None:
        """Do nothing: they end with the process."""


class RedisPositions:
    """The positions of all processes, in Redis.

    While Redis does not answer within ``seconds`` everybody is at the end of the log, and it is
    asked once a second. What was noted meanwhile is missing, and so is what was in a memory that
    Redis has lost. Then for as long as positions are kept, nobody's is less than that of the next
    change and those after it.
    """

    def __init__(
        self,
        client: Any,
        faults: tuple[type[Exception], ...],
        clock: Clock = system_clock,
        seconds: float = _PATIENCE_SECONDS,
    ) -> None:
        self._client = client
        self._faults = faults
        self._clock = clock
        self._seconds = seconds
        self._room = asyncio.Semaphore(_COMMANDS_AT_ONCE)
        self._silent_since: Milliseconds | None = None
        # The name of what Redis has in memory, which is lost with it.
        self._memory: bytes | None = None
        self._is_something_missing = False

    async def note(self, key_id: int, position: int) -> None:
        """Remember that ``key_id`` has changed something up to ``position``; the latest counts."""
        await self._ask(
            ("EVAL", _NOTE, 1, _name(key_id), position, END, _KEPT_SECONDS),
            ("SET", _LEAST, position, "XX", "KEEPTTL"),
            is_note=True,
        )

    async def of(self, key_id: int) -> int:
        """Return the position of the last change; 0 if there was none of late."""
        before = self._memory
        replies = await self._ask(
            ("SET", _MEMORY, uuid4().hex, "NX"),
            ("GET", _MEMORY),
            ("GET", _LEAST),
            ("GET", _name(key_id)),
        )
        if replies is None:
            return END
        _, self._memory, *positions = replies
        if before in (None, self._memory):
            return max(int(position or 0) for position in positions)
        self._is_something_missing = True
        await self._ask()
        return END

    async def close(self) -> None:
        """Disconnect from Redis."""
        with suppress(*self._faults):
            await self._client.close()

    async def _ask(self, *commands: _Command, is_note: bool = False) -> list[Any] | None:
        """Return the replies to ``commands``, ``None`` while Redis is silent.

        If something is missing, it is told that before.
        """
        async with self._room:
            since = self._silent_since
            if since is not None and 0 <= self._clock() - since < _SILENT:
                self._is_something_missing |= is_note
                return None
            is_missing, self._is_something_missing = self._is_something_missing, False
            first = [("SET", _LEAST, END, "EX", _KEPT_SECONDS)] if is_missing else []
            try:
                replies = await self._client.execute([*first, *commands], self._seconds)
            except BaseException as error:
                self._is_something_missing |= is_missing or is_note or since is not None
                if not isinstance(error, self._faults):
                    raise
                self._fall_silent(error)
                return None
            self._speak_again(since)
            return list(replies[len(first) :])

    def _fall_silent(self, error: Exception) -> None:
        if self._silent_since is None:
            _LOG.warning(
                "Redis does not tell who has changed what, lists are read from the primary: %s",
                error,
            )
        self._silent_since = self._clock()

    def _speak_again(self, since: Milliseconds | None) -> None:
        if since is not None and self._silent_since == since:
            self._silent_since = None
            _LOG.warning("Redis tells again who has changed what")


def _name(key_id: int) -> str:
    return f"petstore:changed:{key_id}"
