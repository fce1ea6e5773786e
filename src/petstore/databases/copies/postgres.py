"""One side of a copy: a database on a PostgreSQL server."""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import asyncpg  # type: ignore[import-untyped]

from petstore.databases.contract import Row
from petstore.databases.copies.contract import TABLES, Table
from petstore.errors import Unavailable

_PAGE = 5000
_WAIT_SECONDS = 10
_FAULTS = (
    OSError,
    TimeoutError,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
)
_PATIENT = f"""
SET LOCAL statement_timeout = 0;
SET LOCAL idle_in_transaction_session_timeout = 0;
SET LOCAL lock_timeout = '{_WAIT_SECONDS}s'
"""
_SEQUENCE = "SELECT pg_get_serial_sequence($1, 'id')"


@asynccontextmanager
async def open_postgres(url: str, *, to_fill: bool) -> AsyncIterator["PostgresSide"]:
    """Open the store in the database ``url``: to read it, or ``to_fill`` it.

    Its schema is up to date (see ``Store.migrate``). What it was filled with is there once the
    block ends without an error.

    Raises:
        Unavailable: the server is out of reach, full or failing.
    """
    connection = await _connect(url)
    names = ", ".join(table.name for table in TABLES)
    try:
        with _faults():
            if to_fill:
                await connection.execute("BEGIN")
                await connection.execute(_PATIENT)
                await connection.execute(f"LOCK TABLE {names} IN SHARE ROW EXCLUSIVE MODE")
                # A call for every animal, and its dead rows, would make a large copy crawl.
                await connection.execute("ALTER TABLE pets DISABLE TRIGGER USER")
            else:
                await connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
                await connection.execute(_PATIENT)
        yield PostgresSide(connection)
        with _faults():
            if to_fill:
                await connection.execute("ALTER TABLE pets ENABLE TRIGGER USER")
                # Until it has counted them, the server plans for tables that are empty.
                await connection.execute(f"ANALYZE {names}")
            await connection.execute("COMMIT")
            await connection.close(timeout=_WAIT_SECONDS)
    finally:
        # The server undoes what was not committed.
        connection.terminate()


async def _connect(url: str) -> Any:
    # It is for the service; here no statement outlives its transaction in any case.
    address, _, query = url.partition("?")
    options = [option for option in query.split("&") if option != "pgbouncer=true"]
    with _faults():
        return await asyncpg.connect(
            f"{address}?{'&'.join(options)}", timeout=_WAIT_SECONDS, statement_cache_size=0
        )


class PostgresSide:
    """A transaction on a PostgreSQL server."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def run(self, sql: str) -> list[Row]:
        """Run one statement and return its rows."""
        with _faults():
            rows = await self._connection.fetch(sql)
        return [tuple(row) for row in rows]

    async def columns(self, name: str) -> list[str]:
        """Return the names of the columns of a table."""
        sql = (
            "SELECT column_name::text FROM information_schema.columns"  # noqa: S608 - a name
            f" WHERE table_schema = current_schema() AND table_name = '{name}'"
        )
        return [column for (column,) in await self.run(sql)]

    async def pages(self, table: Table) -> AsyncIterator[list[Row]]:
        """Yield every row of ``table``, by its key, some thousands at a time."""
        columns, key = ", ".join(table.columns), ", ".join(table.key)
        rows = f"SELECT {columns} FROM {table.name} ORDER BY {key}"  # noqa: S608 - only names
        await self.run(f"DECLARE pages CURSOR FOR {rows}")
        while page := await self.run(f"FETCH {_PAGE} FROM pages"):
            yield page
        await self.run("CLOSE pages")

    async def add(self, table: Table, rows: Sequence[Row]) -> None:
        """Add ``rows`` to ``table`` as they are."""
        with _faults():
            await self._connection.copy_records_to_table(
                table.name, records=rows, columns=table.columns
            )

    async def last_id(self, table: Table) -> int:
        """Return the highest id that ``table`` ever gave, or 0."""
        with _faults():
            sequence = await self._connection.fetchval(_SEQUENCE, table.name)
            last, is_given = await self._connection.fetchrow(
                f"SELECT last_value, is_called FROM {sequence}"  # noqa: S608 - a quoted name
            )
        return int(last) - (not is_given)

    async def go_on_after(self, table: Table, last_id: int) -> None:
        """Let ``table`` give ids above ``last_id`` from now on."""
        with _faults():
            sequence = await self._connection.fetchval(_SEQUENCE, table.name)
            # Unlike setval, it is undone with the transaction.
            await self._connection.execute(f"ALTER SEQUENCE {sequence} RESTART WITH {last_id + 1}")


@contextmanager
def _faults() -> Iterator[None]:
    try:
        yield
    except _FAULTS as error:
        # The first line alone: those after it may show the row that was refused.
        words, *_ = str(error).splitlines() or [type(error).__name__]
        msg = f"PostgreSQL: {words}"
        raise Unavailable(msg) from error
