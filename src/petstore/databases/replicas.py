"""Lists read from a replica, without a client ever missing its own changes.

After each change, the position of the primary's write-ahead log (LSN) is recorded for the key that
made it. Lists for that key come from the replica once it has replayed the log that far. Until
then, or if the replica is unreachable, they come from the primary. Each list has one deadline,
however many databases fail.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

from petstore.clock import SECOND, Clock, Milliseconds
from petstore.databases.contract import Reader, Row, Statement, Store, as_unavailable
from petstore.errors import Unavailable

END = 2**63 - 1
"""An LSN that no replica reaches: with it, a key reads from the primary."""

_LOG = logging.getLogger(__name__)
_WRITTEN = Statement(
    "SELECT CAST(pg_current_wal_insert_lsn() - '0/0' AS BIGINT)", name="select_written_position"
)
_REPLAYED = Statement(
    "SELECT CAST(coalesce(pg_last_wal_replay_lsn(), '0/0') - '0/0' AS BIGINT)",
    name="select_replayed_position",
)
_AVOIDED: Milliseconds = 2 * SECOND
_RECORDING = 0.2
"""The part of the timeout of a list that recording a write may take: it adds to the change."""


class LastWrites(Protocol):
    """The LSN of each key's last write, in bytes.

    Both methods raise ``Unavailable`` while the writes of other processes are unknown.
    """

    async def record(self, key_id: int, lsn: int) -> None:
        """Record that ``key_id`` has written up to ``lsn``; the highest counts.

        ``END`` means that the LSN is unknown; the next one replaces it.
        """
        ...

    async def lsn(self, key_id: int) -> int:
        """Return the LSN of the last write; 0 if there was none in the last ten minutes."""
        ...

    async def close(self) -> None:
        """Disconnect."""
        ...


class Readers:
    """Chooses the database that a key's lists are read from. Here there is only one."""

    has_replica = False
    """Whether lists may be older than what is committed."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def open(self) -> None:
        """Get ready to read; no database has to be reachable yet."""

    async def close(self) -> None:
        """Disconnect from everything but the primary."""

    async def for_key(self, key_id: int) -> Reader:
        """Return a database that has every change of ``key_id``."""
        del key_id
        return self._store

    async def record_write(self, key_id: int) -> None:
        """Record that ``key_id`` has just changed something."""


class ReplicaReaders(Readers):
    """Reads lists from ``replica`` where it is up to date for the key, else from ``store``.

    A replica that fails is left alone for two seconds. It can fail in ways of its own: it may lack
    a table that the primary has just created. A list not read within ``timeout`` is refused.
    """

    has_replica = True

    def __init__(
        self,
        store: Store,
        replica: Store,
        last_writes: LastWrites,
        clock: Clock,
        timeout: Milliseconds = 1500,
    ) -> None:
        super().__init__(store)
        self._replica = replica
        self._last_writes = last_writes
        self._clock = clock
        self._timeout = timeout / SECOND
        self._avoided_until: Milliseconds = 0

    async def open(self) -> None:
        """Get ready to read from the replica."""
        await self._replica.open()

    async def close(self) -> None:
        """Disconnect from the replica and the last writes."""
        await self._replica.close()
        await self._last_writes.close()

    async def for_key(self, key_id: int) -> Reader:
        """Return the replica if it has every change of ``key_id``, else the primary."""
        deadline = asyncio.get_running_loop().time() + self._timeout
        read = self._read_replica if await self._is_current(key_id) else self._store.read
        return _TimedReader(read, deadline)

    async def record_write(self, key_id: int) -> None:
        """Record the LSN of the primary, or ``END`` if the primary does not respond soon."""
        lsn = END
        try:
            async with asyncio.timeout(self._timeout * _RECORDING):
                ((lsn,),) = await self._store.read(_WRITTEN)
        except Exception as error:  # noqa: BLE001 - the change is done: its response must not fail
            _LOG.warning(
                "cannot read the LSN of the primary: %s", str(error) or "it did not respond in time"
            )
        try:
            await self._last_writes.record(key_id, lsn)
        except Exception as error:  # noqa: BLE001 - nor for this
            _LOG.warning("cannot record a change for readers of the replica: %s", error)

    async def _is_current(self, key_id: int) -> bool:
        try:
            lsn = await self._last_writes.lsn(key_id)
        except Unavailable as error:
            _LOG.warning("a list is read from the primary: %s", error)
            return False
        if self._clock() < self._avoided_until:
            return False
        if not lsn:
            return True
        try:
            # Read each time: after a crash the replica is further behind than before.
            ((replayed,),) = await self._replica.read(_REPLAYED)
        except Exception as error:  # noqa: BLE001 - whatever is wrong, the primary responds
            self._avoid_replica(error)
            return False
        return bool(lsn <= replayed)

    async def _read_replica(self, statement: Statement) -> list[Row]:
        try:
            return await self._replica.read(statement)
        except Exception as error:  # noqa: BLE001 - whatever is wrong, the primary responds
            self._avoid_replica(error)
            return await self._store.read(statement)

    def _avoid_replica(self, error: Exception) -> None:
        self._avoided_until = self._clock() + _AVOIDED
        _LOG.warning("the replica fails; lists are read from the primary: %s", error)


class _TimedReader:
    """Reads by ``read``, until ``deadline`` by the clock of the event loop."""

    def __init__(self, read: Callable[[Statement], Awaitable[list[Row]]], deadline: float) -> None:
        self._read = read
        self._deadline = deadline

    async def read(self, statement: Statement) -> list[Row]:
        """Run one SELECT."""
        with as_unavailable((TimeoutError,)):
            async with asyncio.timeout_at(self._deadline):
                return await self._read(statement)
