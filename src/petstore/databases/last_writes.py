"""The position in the primary's log (LSN) of each key's last write."""

import asyncio
import logging
from contextlib import suppress
from importlib.resources import files
from typing import Any, TypeAlias
from uuid import uuid4

from petstore.clock import MINUTE, SECOND, Clock, Milliseconds, system_clock
from petstore.databases.replicas import END

_Command: TypeAlias = tuple[str | int, ...]

_EXPIRY: Milliseconds = 10 * MINUTE
"""A replica that is further behind than this is no replica."""
_EXPIRY_SECONDS = _EXPIRY // SECOND
# The limiter may have waited for Redis before: together no more than 150 ms.
_TIMEOUT_SECONDS = 0.05
_RETRY_AFTER: Milliseconds = SECOND
_PIPELINES_AT_ONCE = 50  # each takes a connection, and the client has at most a hundred
_RECORD = files("petstore.databases").joinpath("last_writes.lua").read_text("utf-8")
_MEMORY = "petstore:changes:memory"
_MIN = "petstore:changes:min"
_CHANGED = "petstore:changed"
_LOG = logging.getLogger(__name__)


class MemoryLastWrites:
    """The last writes of one process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._writes: dict[int, tuple[int, Milliseconds]] = {}

    async def record(self, key_id: int, lsn: int) -> None:
        """Record that ``key_id`` has written up to ``lsn``."""
        before, _ = self._writes.pop(key_id, (0, 0))
        if before != END:
            lsn = max(before, lsn)
        self._writes[key_id] = (lsn, self._clock())
        oldest = next(iter(self._writes))
        if self._clock() - self._writes[oldest][1] > _EXPIRY:
            del self._writes[oldest]

    async def lsn(self, key_id: int) -> int:
        """Return the LSN of the last write."""
        return self._writes.get(key_id, (0, 0))[0]

    async def close(self) -> None:
        """Do nothing: they end with the process."""


class RedisLastWrites:
    """The last writes of all processes, in Redis.

    While Redis does not respond within ``seconds``, every key is at ``END``, and Redis is tried
    once a second. Writes of that time are missing in Redis, and so are all writes if Redis has
    lost its memory. Then, until those would have expired, every key is at least at the LSN of the
    next write.
    """

    def __init__(
        self,
        client: Any,
        faults: tuple[type[Exception], ...],
        clock: Clock = system_clock,
        seconds: float = _TIMEOUT_SECONDS,
    ) -> None:
        self._client = client
        self._faults = faults
        self._clock = clock
        self._seconds = seconds
        self._free = asyncio.Semaphore(_PIPELINES_AT_ONCE)
        self._failed_at: Milliseconds | None = None
        # A random name of what Redis has in memory, lost with it.
        self._memory: bytes | None = None
        self._is_something_missing = False

    async def record(self, key_id: int, lsn: int) -> None:
        """Record that ``key_id`` has written up to ``lsn``."""
        await self._send(
            ("EVAL", _RECORD, 1, f"{_CHANGED}:{key_id}", lsn, END, _EXPIRY_SECONDS),
            ("SET", _MIN, lsn, "XX", "KEEPTTL"),
            is_write=True,
        )

    async def lsn(self, key_id: int) -> int:
        """Return the LSN of the last write."""
        before = self._memory
        replies = await self._send(
            ("SET", _MEMORY, uuid4().hex, "NX"),
            ("GET", _MEMORY),
            ("GET", _MIN),
            ("GET", f"{_CHANGED}:{key_id}"),
        )
        if replies is None:
            return END
        _, self._memory, *lsns = replies
        if before in (None, self._memory):
            return max(int(lsn or 0) for lsn in lsns)
        self._is_something_missing = True
        await self._send()
        return END

    async def close(self) -> None:
        """Disconnect from Redis."""
        with suppress(*self._faults):
            await self._client.close()

    async def _send(self, *commands: _Command, is_write: bool = False) -> list[Any] | None:
        """Return the replies to ``commands``, or ``None`` while Redis fails.

        If writes are missing in Redis, Redis learns that first.
        """
        async with self._free:
            failed_at = self._failed_at
            if failed_at is not None and 0 <= self._clock() - failed_at < _RETRY_AFTER:
                self._is_something_missing |= is_write
                return None
            is_missing, self._is_something_missing = self._is_something_missing, False
            first = [("SET", _MIN, END, "EX", _EXPIRY_SECONDS)] if is_missing else []
            try:
                replies = await self._client.execute([*first, *commands], self._seconds)
            except BaseException as error:
                self._is_something_missing |= is_missing or is_write or failed_at is not None
                if not isinstance(error, self._faults):
                    raise
                self._note_failure(error)
                return None
            if failed_at is not None and self._failed_at == failed_at:
                self._failed_at = None
                _LOG.warning("Redis responds again; lists are read from the replica")
            return list(replies[len(first) :])

    def _note_failure(self, error: Exception) -> None:
        if self._failed_at is None:
            _LOG.warning(
                "cannot read the last writes from Redis; lists are read from the primary: %s",
                error,
            )
        self._failed_at = self._clock()
