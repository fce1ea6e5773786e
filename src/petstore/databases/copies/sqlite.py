"""One side of a copy: a SQLite file."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from itertools import islice, repeat
from pathlib import Path

import apsw

from petstore.databases.contract import Row
from petstore.databases.copies.contract import Table
from petstore.errors import Unavailable

_PAGE = 5000
_WAIT = 10_000
# Negative: KiB. What a large copy has changed is written out beyond it.
_CACHE = -64 * 1024


@asynccontextmanager
async def open_sqlite(path: Path, *, to_fill: bool) -> AsyncIterator["SqliteSide"]:
    """Open the store in the file ``path``: to read it, or ``to_fill`` it.

    Its schema is up to date (see ``Store.migrate``). What it was filled with is there once the
    block ends without an error.

    Raises:
        Unavailable: the file is locked, full or failing.
    """
    with _faults(path):
        connection = apsw.Connection(str(path))
    try:
        with _faults(path):
            connection.set_busy_timeout(_WAIT)
            connection.pragma("cache_size", _CACHE)
            connection.pragma("synchronous", "full")
            connection.pragma("foreign_keys", "on")
            connection.execute("BEGIN IMMEDIATE" if to_fill else "BEGIN")
            # A transaction that only reads begins with what it reads first.
            connection.execute("SELECT revision FROM api_key_revision").fetchall()
            taken_off = _take_off(connection) if to_fill else []
        yield SqliteSide(path, connection)
        with _faults(path):
            for sql in taken_off:
                connection.execute(sql)
            await _let_ctrl_c_in()
            connection.execute("COMMIT")
    finally:
        connection.close()


def _take_off(connection: apsw.Connection) -> list[str]:
    """Drop triggers and indexes, which make large tables slow to fill; return what makes them."""
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

    async def run(self, sql: str) -> list[Row]:
        """Run one statement and return its rows."""
        with _faults(self._path):
            return self._connection.execute(sql).fetchall()

    async def columns(self, name: str) -> list[str]:
        """Return the names of the columns of a table."""
        sql = f"SELECT name FROM pragma_table_info('{name}')"  # noqa: S608 - a name
        return [column for (column,) in await self.run(sql)]

    async def pages(self, table: Table) -> AsyncIterator[list[Row]]:
        """Yield every row of ``table``, by its key, some thousands at a time."""
        columns, key = ", ".join(table.columns), ", ".join(table.key)
        with _faults(self._path):
            rows = self._connection.execute(
                f"SELECT {columns} FROM {table.name} ORDER BY {key}"  # noqa: S608 - only names
            )
        while True:
            with _faults(self._path):
                page = list(islice(rows, _PAGE))
            if not page:
                return
            await _let_ctrl_c_in()
            yield page

    async def add(self, table: Table, rows: Sequence[Row]) -> None:
        """Add ``rows`` to ``table`` as they are."""
        places = ", ".join(repeat("?", len(table.columns)))
        with _faults(self._path):
            self._connection.executemany(
                f"INSERT INTO {table.name} ({', '.join(table.columns)}) VALUES ({places})",  # noqa: S608
                rows,
            )

    async def last_id(self, table: Table) -> int:
        """Return the highest id that ``table`` ever gave, or 0."""
        with _faults(self._path):
            last_id = self._connection.execute(
                "SELECT seq FROM sqlite_sequence WHERE name = ?", (table.name,)
            ).get
        return last_id or 0

    async def go_on_after(self, table: Table, last_id: int) -> None:
        """Let ``table`` give ids above ``last_id`` from now on."""
        with _faults(self._path):
            self._connection.execute("DELETE FROM sqlite_sequence WHERE name = ?", (table.name,))
            self._connection.execute(
                "INSERT INTO sqlite_sequence VALUES (?, ?)", (table.name, last_id)
            )


async def _let_ctrl_c_in() -> None:
    """End here if Ctrl-C was pressed: nothing else of this file ever waits for anything."""
    await asyncio.sleep(0)


@contextmanager
def _faults(path: Path) -> Iterator[None]:
    try:
        yield
    except apsw.Error as error:
        msg = f"{path}: {error}"
        raise Unavailable(msg) from error
