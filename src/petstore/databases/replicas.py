"""Reading lists from a replica, without a caller ever missing what it changed itself.

After each change of a caller the position of the primary's write-ahead log is noted for it. A list
of that caller is read from the replica once it has replayed the log so far; until then, or if the
replica is out of reach, from the primary. However many of them fail, the answer has one deadline.
"""

import asyncio
import logging
from typing import Protocol

from petstore.clock import SECOND, Clock, Milliseconds
from petstore.databases.contract import Reader, Row, Statement, Store
from petstore.errors import Unavailable

_LOG = logging.getLogger(__name__)
_WRITTEN = Statement(
    "SELECT CAST(pg_current_wal_insert_lsn() - '0/0' AS BIGINT)", name="select_written_position"
)
_REPLAYED = Statement(
    "SELECT CAST(coalesce(pg_last_wal_replay_lsn(), '0/0') - '0/0' AS BIGINT)",
    name="select_replayed_position",
)
_AVOIDED: Milliseconds = 2 * SECOND
_TOO_LATE = "it did not answer in time"
_UNKNOWN = 2**63 - 1
"""The end of the log, which no replica reaches: whoever is noted there reads from the primary."""
_NOTING = 0.2
"""Of the patience with a list, the part that noting a change may take: it adds to the change."""


class Positions(Protocol):
    """Where in the log each caller's last change is, in bytes."""

    async def note(self, key_id: int, position: int) -> None:
        """Remember that ``key_id`` has changed something up to ``position``.

        Raises:
            Unavailable: other processes cannot learn of it now.
        """
        ...

    async def of(self, key_id: int) -> int:
        """Return the position of the last change; 0 if there was none of late.

        Raises:
            Unavailable: it cannot be told now.
        """
        ...

    async def close(self) -> None:
        """Disconnect from whoever keeps them."""
        ...


class Readers(Protocol):
    """Chooses the database that a caller's lists are read from."""

    async def open(self) -> None:
        """Make ready to read; nothing need be in reach yet."""
        ...

    async def close(self) -> None:
        """Disconnect from all but the primary."""
        ...

    async def of(self, key_id: int) -> Reader:
        """Return a store that has every change of ``key_id``."""
        ...

    async def note_change(self, key_id: int) -> None:
        """Take notice that ``key_id`` has changed something."""
        ...


class PrimaryOnly:
    """Reads everything from the one database there is."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def open(self) -> None:
        """Do nothing: whoever made the store opens it."""

    async def close(self) -> None:
        """Do nothing: whoever made the store closes it."""

    async def of(self, key_id: int) -> Reader:
        """Return the one store."""
        del key_id
        return self._store

    async def note_change(self, key_id: int) -> None:
        """Do nothing: the store has every change."""


class ReplicaReaders:
    """Reads lists from ``replica`` where it is up to date for the caller.

    A list that is not read ``patience`` milliseconds after it was asked for is refused.
    """

    def __init__(
        self,
        primary: Store,
        replica: Store,
        positions: Positions,
        clock: Clock,
        patience: Milliseconds = 1500,
    ) -> None:
        self._primary = primary
        self._positions = positions
        self._store = replica
        self._replica = _Replica(replica, primary, clock)
        self._patience = patience / SECOND

    async def open(self) -> None:
        """Make ready to read from the replica."""
        await self._store.open()

    async def close(self) -> None:
        """Disconnect from the replica and the positions."""
        await self._store.close()
        await self._positions.close()

    async def of(self, key_id: int) -> Reader:
        """Return the replica if it has every change of ``key_id``, else the primary."""
        deadline = asyncio.get_running_loop().time() + self._patience
        reader = self._replica if await self._is_current(key_id) else self._primary
        return _InTime(reader, deadline)

    async def _is_current(self, key_id: int) -> bool:
        try:
            position = await self._positions.of(key_id)
        except Unavailable as error:
            _LOG.warning("a list is read from the primary: %s", error)
            return False
        return await self._replica.has(position)

    async def note_change(self, key_id: int) -> None:
        """Note how far the primary's log is now; its end if the primary does not tell soon."""
        position = _UNKNOWN
        try:
            async with asyncio.timeout(self._patience * _NOTING):
                ((position,),) = await self._primary.read(_WRITTEN)
        except Exception as error:  # noqa: BLE001 - the change is done: its answer must not fail
            _LOG.warning("the primary does not tell how far it is: %s", str(error) or _TOO_LATE)
        try:
            await self._positions.note(key_id, position)
        except Exception as error:  # noqa: BLE001 - nor for this
            _LOG.warning("a change is not known to readers of the replica: %s", error)


class _InTime:
    """What is read here is answered or refused by ``deadline``, by the clock of the loop."""

    def __init__(self, reader: Reader, deadline: float) -> None:
        self._reader = reader
        self._deadline = deadline

    async def read(self, statement: Statement) -> list[Row]:
        """Run one SELECT on what has been committed.

        Raises:
            Unavailable: the database is out of reach or failing, or the time is over.
        """
        try:
            async with asyncio.timeout_at(self._deadline):
                return await self._reader.read(statement)
        except TimeoutError as error:
            msg = f"the database is not available: {_TOO_LATE}"
            raise Unavailable(msg) from error


class _Replica:
    """A replica that falls back to the primary for a while whenever it fails.

    It may fail in its own ways: it can lack a table that the primary has made a moment ago.
    """

    def __init__(self, replica: Store, primary: Store, clock: Clock) -> None:
        self._store = replica
        self._primary = primary
        self._clock = clock
        self._avoided_until: Milliseconds = 0

    async def has(self, position: int) -> bool:
        """Tell whether it has replayed the log up to ``position``."""
        if self._clock() < self._avoided_until:
            return False
        if not position:
            return True
        try:
            # Asked each time: after a crash it is further behind than it was.
            ((replayed,),) = await self._store.read(_REPLAYED)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with it, the primary answers
            self._avoid(error)
            return False
        return bool(position <= replayed)

    async def read(self, statement: Statement) -> list[Row]:
        """Run one SELECT here, or on the primary if the replica fails."""
        try:
            return await self._store.read(statement)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with it, the primary answers
            self._avoid(error)
            return await self._primary.read(statement)

    def _avoid(self, error: Exception) -> None:
        self._avoided_until = self._clock() + _AVOIDED
        _LOG.warning("the replica fails, lists are read from the primary: %s", error)
