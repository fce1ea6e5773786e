"""One side of a copy: a database on a PostgreSQL server."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial

from petstore.databases.contract import Row, Value, as_unavailable
from petstore.databases.copies.contract import COPIED, CopiedTable, Side
from petstore.databases.postgres_connection import ERRORS, Connection, connect

_PAGE = 5000
_WAIT_SECONDS = 10
_TIMEOUTS = f"""
SET LOCAL statement_timeout = 0;
SET LOCAL idle_in_transaction_session_timeout = 0;
SET LOCAL lock_timeout = '{_WAIT_SECONDS}s'
"""
# Every error: the statements are ours alone, but the rows may be refused.
_faults = partial(as_unavailable, ERRORS, "PostgreSQL")
_SEQUENCE = "SELECT pg_get_serial_sequence($1, 'id')"


@asynccontextmanager
async def open_postgres(url: str, *, to_fill: bool) -> AsyncIterator[Side]:
    """Open the store in the database ``url``: to read it, or ``to_fill`` it (see ``Side``)."""
    connection = await connect(url, _WAIT_SECONDS)
    names = ", ".join(table.name for table in COPIED)
    try:
        with _faults():
            if to_fill:
                await connection.execute("BEGIN")
                await connection.execute(_TIMEOUTS)
                await connection.execute(f"LOCK TABLE {names} IN SHARE ROW EXCLUSIVE MODE")
                # A call for every animal, and its dead rows, would make a large copy crawl.
                await connection.execute("ALTER TABLE pets DISABLE TRIGGER USER")
            else:
                await connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
                await connection.execute(_TIMEOUTS)
        yield _PostgresSide(connection, to_fill=to_fill)
        with _faults():
            if to_fill:
                await connection.execute("ALTER TABLE pets ENABLE TRIGGER USER")
                # Until then, the server plans queries for empty tables.
                await connection.execute(f"ANALYZE {names}")
            await connection.execute("COMMIT")
            await connection.close(timeout=_WAIT_SECONDS)
    finally:
        # The server undoes what was not committed.
        connection.terminate()


def _select_events(table: CopiedTable) -> str:
    """Return the query of all events, also those that have no place in the feed yet.

    They get the places that the publisher would give them if nothing else was recorded: this
    transaction sees whole transactions.
    """
    values = ", ".join(table.values)
    return (
        f"SELECT sequence, {values} FROM events UNION ALL"  # noqa: S608 - only names
        " SELECT (SELECT coalesce(max(sequence), 0) FROM events)"
        f" + row_number() OVER (ORDER BY last, position), {values} FROM ("
        "  SELECT *, max(position) OVER (PARTITION BY transaction) AS last FROM events_outbox"
        " ) AS recorded ORDER BY 1"
    )


class _PostgresSide(Side):
    """A transaction on a PostgreSQL server."""

    def __init__(self, connection: Connection, *, to_fill: bool) -> None:
        self._connection = connection
        self._to_fill = to_fill

    async def run(self, sql: str, *parameters: Value) -> list[Row]:
        with _faults():
            rows = await self._connection.fetch(sql, *parameters)
        return [tuple(row) for row in rows]

    async def columns(self, name: str) -> list[str]:
        sql = (
            "SELECT column_name::text FROM information_schema.columns"  # noqa: S608 - a name
            f" WHERE table_schema = current_schema() AND table_name = '{name}'"
        )
        return [column for (column,) in await self.run(sql)]

    async def pages(self, table: CopiedTable) -> AsyncIterator[list[Row]]:
        is_feed = table.name == "events" and not self._to_fill
        select = _select_events(table) if is_feed else table.select
        await self.run(f"DECLARE pages CURSOR FOR {select}")
        while page := await self.run(f"FETCH {_PAGE} FROM pages"):
            yield page
        await self.run("CLOSE pages")

    async def add(self, table: CopiedTable, rows: Sequence[Row]) -> None:
        with _faults():
            await self._connection.copy_records_to_table(
                table.name, records=rows, columns=table.columns
            )

    async def last_id(self, table: CopiedTable) -> int:
        ((sequence,),) = await self.run(_SEQUENCE, table.name)
        ((last, is_given),) = await self.run(
            f"SELECT last_value, is_called FROM {sequence}"  # noqa: S608 - a quoted name
        )
        return int(last) - (not is_given)

    async def set_sequence(self, table: CopiedTable, last_id: int) -> None:
        ((sequence,),) = await self.run(_SEQUENCE, table.name)
        # Unlike setval, it is undone with the transaction.
        await self.run(f"ALTER SEQUENCE {sequence} RESTART WITH {last_id + 1}")
