"""One side of a copy: a SQLite file."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager
from functools import partial
from itertools import islice, repeat
from pathlib import Path

import apsw

from petstore.databases.contract import Row, Value, as_unavailable
from petstore.databases.copies.contract import CopiedTable, Side
from petstore.databases.sqlite_connection import connected

_PAGE = 5000
_WAIT = 10_000
# Negative: KiB. Beyond it, SQLite writes out what a large copy has changed.
_CACHE = -64 * 1024


@asynccontextmanager
async def open_sqlite(path: Path, *, to_fill: bool) -> AsyncIterator[Side]:
    """Open the store in the file ``path``: to read it, or ``to_fill`` it (see ``Side``)."""
    # Every error: the statements are ours alone, but the rows may be refused.
    refusing = partial(as_unavailable, (apsw.Error,), str(path))
    with ExitStack() as opened:
        with refusing():
            connection = opened.enter_context(connected(path, _WAIT))
            connection.pragma("cache_size", _CACHE)
            connection.pragma("synchronous", "full")
            connection.pragma("foreign_keys", "on")
            connection.execute("BEGIN IMMEDIATE" if to_fill else "BEGIN")
            # A transaction that only reads begins with the first row it reads.
            connection.execute("SELECT revision FROM api_key_revision").fetchall()
            dropped = _drop_indexes(connection) if to_fill else []
        yield _SqliteSide(connection, refusing)
        with refusing():
            for sql in dropped:
                connection.execute(sql)
            await asyncio.sleep(0)  # end here if Ctrl-C was pressed: nothing else ever waits
            connection.execute("COMMIT")


def _drop_indexes(connection: apsw.Connection) -> list[str]:
    """Drop indexes and triggers, which make large tables slow to fill; return their SQL."""
    found = connection.execute(
        "SELECT type, name, sql FROM sqlite_schema"
        " WHERE type IN ('index', 'trigger') AND sql IS NOT NULL"
    ).fetchall()
    for kind, name, _ in found:
        connection.execute(f"DROP {kind} {name}")
    return [str(sql) for _, _, sql in found]


class _SqliteSide(Side):
    """A transaction on a SQLite file."""

    def __init__(
        self,
        connection: apsw.Connection,
        as_unavailable: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._connection = connection
        self._faults = as_unavailable

    async def run(self, sql: str, *parameters: Value) -> list[Row]:
        with self._faults():
            return self._connection.execute(sql, parameters).fetchall()

    async def columns(self, name: str) -> list[str]:
        sql = f"SELECT name FROM pragma_table_info('{name}')"  # noqa: S608 - a name
        return [column for (column,) in await self.run(sql)]

    async def pages(self, table: CopiedTable) -> AsyncIterator[list[Row]]:
        with self._faults():
            rows = self._connection.execute(table.select)
        while True:
            with self._faults():
                page = list(islice(rows, _PAGE))
            if not page:
                return
            await asyncio.sleep(0)  # as above
            yield page

    async def add(self, table: CopiedTable, rows: Sequence[Row]) -> None:
        values = ", ".join(repeat("?", len(table.columns)))
        with self._faults():
            self._connection.executemany(
                f"INSERT INTO {table.name} ({', '.join(table.columns)}) VALUES ({values})",  # noqa: S608
                rows,
            )

    async def last_id(self, table: CopiedTable) -> int:
        found = await self.run("SELECT seq FROM sqlite_sequence WHERE name = ?", table.name)
        return int(found[0][0]) if found else 0

    async def set_sequence(self, table: CopiedTable, last_id: int) -> None:
        await self.run("DELETE FROM sqlite_sequence WHERE name = ?", table.name)
        await self.run("INSERT INTO sqlite_sequence VALUES (?, ?)", table.name, last_id)
