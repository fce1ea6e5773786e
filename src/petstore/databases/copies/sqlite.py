"""One side of a copy: a SQLite file."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, closing
from itertools import islice, repeat
from pathlib import Path

import apsw

from petstore.databases.contract import Row, Value
from petstore.databases.copies.contract import Table
from petstore.databases.sqlite_connection import ERRORS, connect, faults

_PAGE = 5000
_WAIT = 10_000
# Negative: KiB. Beyond it, SQLite writes out what a large copy has changed.
_CACHE = -64 * 1024


@asynccontextmanager
async def open_sqlite(path: Path, *, to_fill: bool) -> AsyncIterator["SqliteSide"]:
    """Open the store in the file ``path``: to read it, or ``to_fill`` it.

    Its schema is up to date (see ``Store.migrate``). The rows are visible to others once the block
    ends without an error.

    Raises:
        Unavailable: the file is locked, full or failing.
    """
    with _faults(path):
        connection = connect(path, _WAIT)
    with closing(connection):
        with _faults(path):
            connection.pragma("cache_size", _CACHE)
            connection.pragma("synchronous", "full")
            connection.pragma("foreign_keys", "on")
            connection.execute("BEGIN IMMEDIATE" if to_fill else "BEGIN")
            # A transaction that only reads begins with the first row it reads.
            connection.execute("SELECT revision FROM api_key_revision").fetchall()
            dropped = _drop_indexes(connection) if to_fill else []
        yield SqliteSide(path, connection)
        with _faults(path):
            for sql in dropped:
                connection.execute(sql)
            await _let_ctrl_c_in()
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


class SqliteSide:
    """A transaction on a SQLite file."""

    def __init__(self, path: Path, connection: apsw.Connection) -> None:
        self._path = path
        self._connection = connection

    async def run(self, sql: str, *parameters: Value) -> list[Row]:
        """Run one statement and return its rows."""
        with _faults(self._path):
            return self._connection.execute(sql, parameters).fetchall()

    async def columns(self, name: str) -> list[str]:
        """Return the names of the columns of a table."""
        sql = f"SELECT name FROM pragma_table_info('{name}')"  # noqa: S608 - a name
        return [column for (column,) in await self.run(sql)]

    async def pages(self, table: Table) -> AsyncIterator[list[Row]]:
        """Yield every row of ``table``, by its key, some thousands at a time."""
        with _faults(self._path):
            rows = self._connection.execute(table.select)
        while True:
            with _faults(self._path):
                page = list(islice(rows, _PAGE))
            if not page:
                return
            await _let_ctrl_c_in()
            yield page

    async def add(self, table: Table, rows: Sequence[Row]) -> None:
        """Add ``rows`` to ``table`` as they are."""
        values = ", ".join(repeat("?", len(table.columns)))
        with _faults(self._path):
            self._connection.executemany(
                f"INSERT INTO {table.name} ({', '.join(table.columns)}) VALUES ({values})",  # noqa: S608
                rows,
            )

    async def last_id(self, table: Table) -> int:
        """Return the highest id that ``table`` ever gave, or 0."""
        found = await self.run("SELECT seq FROM sqlite_sequence WHERE name = ?", table.name)
        return int(found[0][0]) if found else 0

    async def go_on_after(self, table: Table, last_id: int) -> None:
        """Let ``table`` give ids above ``last_id`` from now on."""
        await self.run("DELETE FROM sqlite_sequence WHERE name = ?", table.name)
        await self.run("INSERT INTO sqlite_sequence VALUES (?, ?)", table.name, last_id)


def _faults(path: Path) -> AbstractContextManager[None]:
    # Every error: the statements are ours alone, but the rows may be refused.
    return faults(ERRORS, str(path))


async def _let_ctrl_c_in() -> None:
    """End here if Ctrl-C was pressed: nothing else in this module ever waits."""
    await asyncio.sleep(0)
