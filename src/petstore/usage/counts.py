"""Counts by key and day: in the memory of a process, until they are added to rows of a table."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from itertools import chain, islice
from operator import itemgetter
from typing import Any, TypeAlias

from msgspec import Struct

from petstore.clock import DAY, Milliseconds
from petstore.databases.contract import Row, Statement, Store, Unit
from petstore.databases.schema import TABLES_BY_NAME
from petstore.databases.upserts import upsert
from petstore.deprecations.model import KEPT_DAYS
from petstore.errors import Unavailable

Name: TypeAlias = tuple[Any, ...]
"""What is counted: a primary key of the table, whose first value is the id of an API key."""

_WAIT_SECONDS = 0.3
# More of them at once would delay requests: on SQLite the event loop makes the change.
_COUNTS_AT_ONCE = 100


class Tally(Struct, gc=False):
    """A count that is not in the database yet, and the ``latest`` values that came with it."""

    count: int = 0
    latest: tuple[Any, ...] = ()


class Counts:
    """Counts in memory, flushed to a ``table`` that all processes share.

    A flush adds each number to the column ``count``. The columns ``latest`` get the values that
    came last; the first of them is their time. A flush that fails is repeated. If the database
    made the change without confirming it, those counts are there twice.
    """

    def __init__(self, store: Store, table: str, count: str, latest: Sequence[str] = ()) -> None:
        key = TABLES_BY_NAME[table].key
        self._store = store
        self._table = table
        self._columns = (*key, count, *latest)
        updates = [f"{count} = {table}.{count} + excluded.{count}"]
        for name in latest:
            is_later = f"excluded.{latest[0]} >= {table}.{latest[0]}"
            updates.append(
                f"{name} = CASE WHEN {is_later} THEN excluded.{name} ELSE {table}.{name} END"
            )
        self._conflict = f"({', '.join(key)}) DO UPDATE SET {', '.join(updates)}"
        self._counted: dict[Name, Tally] = {}
        self._flushing: list[dict[Name, Tally]] = []
        self._flushed = asyncio.Event()
        self._flushed.set()
        self._begun = 0

    def add(self, name: Name, latest: tuple[Any, ...] = ()) -> None:
        """Count ``name`` once. Every request with a key does."""
        tally = self._counted.get(name)
        if tally is None:
            tally = self._counted[name] = Tally()
        tally.count += 1
        tally.latest = latest

    async def flush(self) -> None:
        """Add to the table what was counted. Only one flush at a time.

        Raises:
            Unavailable: the database is unreachable, full or failing; the next flush tries again.
        """
        await self._flush()  # what the last one could not add
        # In order: neighbours share a page of the file.
        counted, self._counted = iter(sorted(self._counted.items(), key=itemgetter(0))), {}
        while batch := dict(islice(counted, _COUNTS_AT_ONCE)):
            self._flushing.append(batch)
        await self._flush()

    async def read(
        self, key_id: int, select: Statement
    ) -> tuple[list[Row], list[tuple[Name, Tally]]]:
        """Return the rows of a key in the table, and its counts beyond them.

        Raises:
            Unavailable: the database is unreachable.
        """
        while True:
            unflushed, begun = await self._unflushed(key_id), self._begun
            rows = await self._store.read(select)
            if begun == self._begun:  # else a flush began during the read
                return rows, unflushed

    async def _unflushed(self, key_id: int) -> list[tuple[Name, Tally]]:
        """Return the counts of a key that are only in memory.

        The flush in progress may be in both or in none, so this waits for its end, if it is quick.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(_WAIT_SECONDS):
                await self._flushed.wait()
        tallies = chain.from_iterable(each.items() for each in (*self._flushing, self._counted))
        return [(name, tally) for name, tally in tallies if name[0] == key_id]

    async def _flush(self) -> None:
        while self._flushing:
            await self._flush_last()

    async def _flush_last(self) -> None:
        batch = self._flushing[-1]
        self._flushed.clear()
        self._begun += 1
        try:
            await self._store.write(self._added(batch))
        except Unavailable:
            if batch not in self._flushing:
                self._flushing.append(batch)
            raise
        finally:
            self._flushed.set()

    def _values(self, tally: Tally) -> tuple[Any, ...]:
        """Return a count and what came with it as the table has them."""
        return tally.count, *tally.latest

    def _added(self, batch: dict[Name, Tally]) -> Unit[None]:
        rows = [(*name, *self._values(tally)) for name, tally in batch.items()]
        yield from upsert(self._table, self._columns, rows, self._conflict)
        # What is left is the COMMIT, which goes on even if a stop cancels the flush.
        self._flushing.remove(batch)


def first_day(now: Milliseconds) -> int:
    """Return the number of the first of the last 30 days (UTC)."""
    return now // DAY - KEPT_DAYS + 1
