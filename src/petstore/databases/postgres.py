"""The store on a PostgreSQL server, which many processes may share.

A read is one round trip, a unit of work one transaction.

Only prepared statements and the timeout of reads outlive a transaction. Without those two, a pooler
may stand in between.
"""

import asyncio
import re
from collections.abc import Callable, Coroutine, Sequence
from functools import lru_cache, partial
from typing import Any

import asyncpg  # type: ignore[import-untyped]

from petstore.clock import SECOND, Milliseconds
from petstore.coalescing import Batches
from petstore.databases.contract import Duplicate, Row, Statement, T, Unit, as_unavailable
from petstore.databases.migrations import Schema
from petstore.databases.migrations.postgres import inspect, migrate
from petstore.databases.postgres_connection import (
    CONNECTION_ERRORS,
    OPERATIONAL_ERRORS,
    Connection,
    PostgresPool,
    connect,
)
from petstore.errors import InternalError

_PARAMETER = re.compile(r"\?(\d+)")
_POSTGRES_ONLY = re.compile(r"/\*pg (.*?) \*/")
_SQLITE_ONLY = re.compile(r"/\*sqlite\*/.*?/\*end\*/")
_PING = Statement("SELECT revision FROM api_key_revision", name="ping")
_SNAPSHOT = Statement("SELECT CAST(pg_current_snapshot() AS TEXT)", name="select_snapshot")
_MIGRATION_SECONDS = 60
_VERSIONS_AT_ONCE = 4096


class PostgresStore:
    """A store in the database ``url``, with at most ``connections`` at a time.

    A read or a change that takes longer than ``timeout`` is refused.
    """

    def __init__(self, url: str, timeout: Milliseconds = 1500, connections: int = 10) -> None:
        self._timeout = timeout / SECOND
        self.connections = connections
        self._versions = Batches[None, str](self._read_versions, _VERSIONS_AT_ONCE)
        self._connect = partial(connect, url, timeout / SECOND, timeout)
        # After this time, what a dead or stopped process has locked is free again.
        self._begin = (
            "BEGIN ISOLATION LEVEL READ COMMITTED;"
            f" SET LOCAL statement_timeout = {timeout};"
            f" SET LOCAL idle_in_transaction_session_timeout = {timeout}"
        )

    def migrate(self) -> None:
        """Create the tables if there are none, and bring the schema up to date."""
        self._run_alone(migrate, _MIGRATION_SECONDS)

    def schema(self) -> Schema:
        """Return the version of the schema; change nothing. The errors are those of ``migrate``."""
        return self._run_alone(inspect, self._timeout)

    def is_replica(self) -> bool:
        """Return whether the server is a streaming replica. The errors are those of ``migrate``."""
        select = "SELECT pg_is_in_recovery()"
        return bool(self._run_alone(lambda connection: connection.fetchval(select), self._timeout))

    def _run_alone(
        self, action: Callable[[Connection], Coroutine[Any, Any, T]], seconds: float
    ) -> T:
        """Return what ``action`` makes of a connection of its own."""

        async def run() -> T:
            with as_unavailable(OPERATIONAL_ERRORS):
                async with asyncio.timeout(seconds):
                    connection = await self._connect()
                    try:
                        return await action(connection)
                    finally:
                        connection.terminate()

        return asyncio.run(run())

    async def open(self) -> None:
        """Get ready to connect. The server may come later: until then, everything is refused."""
        self._pool = PostgresPool(self._connect, self.connections)

    @property
    def connections_in_use(self) -> int:
        """How many connections are at work now."""
        return self._pool.in_use

    async def close(self) -> None:
        """Finish the units of work in progress and disconnect."""
        await self._pool.close()

    async def check(self) -> None:
        """Return if the server responds and lets us read a table of the store."""
        await self.read(_PING)

    async def version(self) -> str:
        """Return what changes with every commit: which transactions a statement sees."""
        return await self._versions.call(None)

    async def _read_versions(self, calls: Sequence[None]) -> list[str]:
        ((snapshot,),) = await self.read(_SNAPSHOT)
        return [snapshot] * len(calls)

    async def read(self, statement: Statement) -> list[Row]:
        """Run one SELECT on committed data; once more if the connection was lost."""
        if not statement.sql.startswith("SELECT"):
            msg = "only a unit of work may change the database"
            raise InternalError(msg)
        with as_unavailable(OPERATIONAL_ERRORS):
            async with asyncio.timeout(self._timeout):
                try:
                    return await self._read(statement)
                except CONNECTION_ERRORS:
                    return await self._read(statement)

    async def _read(self, statement: Statement) -> list[Row]:
        async with self._pool.acquire() as connection:
            return await _run(connection, statement)

    async def write(self, unit: Unit[T]) -> T:
        """Run a unit of work in a transaction and return its result once it is durable."""
        with as_unavailable(OPERATIONAL_ERRORS):
            async with (
                asyncio.timeout(self._timeout),
                self._pool.acquire(self._begin) as connection,
            ):
                try:
                    result = await _drive(connection, unit)
                except Exception as error:
                    if not isinstance(error, CONNECTION_ERRORS):
                        await connection.execute("ROLLBACK")
                    raise
                # A transaction that has failed ends in a ROLLBACK even here.
                if await connection.execute("COMMIT") != "COMMIT":
                    msg = "a unit of work continued after one of its statements had failed"
                    raise InternalError(msg)
                return result


async def _drive(connection: Connection, unit: Unit[T]) -> T:
    try:
        statement = next(unit)
        while True:
            try:
                rows = await _run(connection, statement)
            except asyncpg.UniqueViolationError as error:
                statement = unit.throw(Duplicate(str(error)))
            else:
                statement = unit.send(rows)
    except StopIteration as finished:
        result: T = finished.value
        return result


async def _run(connection: Connection, statement: Statement) -> list[Row]:
    rows = await connection.fetch(postgres_sql(statement.sql), *statement.parameters)
    return [tuple(row) for row in rows]


@lru_cache(maxsize=1024)
def postgres_sql(sql: str) -> str:
    """Return ``sql`` in PostgreSQL's form."""
    return _PARAMETER.sub(r"$\1", _POSTGRES_ONLY.sub(r"\1", _SQLITE_ONLY.sub("", sql)))
