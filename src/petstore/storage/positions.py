"""Where in the primary's log the last change of each caller is."""

import asyncio
from contextlib import suppress
from typing import Any

from petstore.clock import MINUTE, SECOND, Clock, Milliseconds
from petstore.errors import Unavailable

_KEPT: Milliseconds = 10 * MINUTE
"""A replica that is further behind than this is no replica."""
_COMMANDS_AT_ONCE = 50  # each takes a connection, and the client has no more than a hundred


class MemoryPositions:
    """The positions of one process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._positions: dict[int, tuple[int, Milliseconds]] = {}

    async def note(self, key_id: int, position: int) -> None:
        """Remember that ``key_id`` has changed something up to ``position``."""
        self._positions.pop(key_id, None)
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
    """The positions of all processes, in Redis."""

    def __init__(self, client: Any, faults: tuple[type[Exception], ...]) -> None:
        self._client = client
        self._faults = faults
        self._room = asyncio.Semaphore(_COMMANDS_AT_ONCE)

    async def note(self, key_id: int, position: int) -> None:
        """Remember that ``key_id`` has changed something up to ``position``.

        Raises:
            Unavailable: Redis is out of reach.
        """
        try:
            async with self._room:
                await self._client.set(_name(key_id), position, ex=_KEPT // SECOND)
        except self._faults as error:
            raise _unavailable(error) from error

    async def of(self, key_id: int) -> int:
        """Return the position of the last change; 0 if there was none of late.

        Raises:
            Unavailable: Redis is out of reach.
        """
        try:
            async with self._room:
                return int(await self._client.get(_name(key_id)) or 0)
        except self._faults as error:
            raise _unavailable(error) from error

    async def close(self) -> None:
        """Disconnect from Redis."""
        with suppress(*self._faults):
            await self._client.aclose()


def _name(key_id: int) -> str:
    return f"petstore:changed:{key_id}"


def _unavailable(error: Exception) -> Unavailable:
    return Unavailable(f"Redis is out of reach: {error}")
