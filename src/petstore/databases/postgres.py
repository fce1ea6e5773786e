"""The store on a PostgreSQL server, which many processes may share.

A read is one round trip. A unit of work is a transaction: what it raises undoes it, and its result
is returned once PostgreSQL has confirmed the commit. Each of its statements sees what had been
committed when the statement began. So where a unit reads what it will then rely on, it locks the
rows it reads: SQL in a comment of the form ``/*pg … */`` is for PostgreSQL alone.

Nothing outlives a transaction but prepared statements and the server's patience with reads; without
those two a pooler may stand between.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import Any

import asyncpg  # type: ignore[import-untyped]

from petstore.clock import SECOND, Milliseconds
from petstore.databases.contract import Duplicate, Row, Statement, T, Unit
from petstore.databases.migrations import Schema, UnusableDatabase
from petstore.databases.migrations.postgres import inspect, migrate
from petstore.databases.postgres_pool import Connection, PostgresPool, is_lost
from petstore.errors import InternalError, Unavailable

_PARAMETER = re.compile(r"\?(\d+)")
_POSTGRES_ONLY = re.compile(r"/\*pg (.*?) \*/")
_PING = Statement("SELECT revision FROM api_key_revision", name="ping")
_MIGRATION_SECONDS = 60
_POOLED = "pgbouncer=true"
_KEPT_STATEMENTS = 100
_POOLER_SAYS = "unsupported startup parameter"
_HINT = f"; behind PgBouncer add ?{_POOLED} to the address"
# The server's, beside those of a connection that was lost.
_FAULTS = (
    asyncpg.InsufficientResourcesError,
    asyncpg.InternalServerError,
    asyncpg.LockNotAvailableError,
    asyncpg.PostgresSystemError,
    asyncpg.TransactionRollbackError,
    # Rights or tables were taken away since the start.
    asyncpg.InsufficientPrivilegeError,
    asyncpg.UndefinedTableError,
    # A pooler stands between, and ``pgbouncer=true`` was not said.
    asyncpg.DuplicatePreparedStatementError,
    asyncpg.InvalidSQLStatementNameError,
)


class PostgresStore:
    """A store in the database ``url``, through at most ``connections`` at a time.

    A read or a change that is not done after ``patience`` milliseconds is refused. With
    ``pgbouncer=true`` in the query of ``url`` nothing at all outlives a transaction.
    """

    def __init__(self, url: str, patience: Milliseconds = 1500, connections: int = 10) -> None:
        address, _, query = url.partition("?")
        options = query.split("&") if query else []
        self._is_pooled = _POOLED in options
        others = [option for option in options if option != _POOLED]
        self._url = f"{address}?{'&'.join(others)}" if others else address
        self._patience = patience / SECOND
        self.connections = connections
        self._session = {"application_name": "petstore"}
        if not self._is_pooled:  # a pooler refuses what would hold for a whole connection
            # Else reads that were given up go on, and take up the server's connections.
            self._session["statement_timeout"] = str(patience)
        # What a process that is gone or stopped has locked is free again in this time.
        self._begin = (
            "BEGIN ISOLATION LEVEL READ COMMITTED;"
            f" SET LOCAL statement_timeout = {patience};"
            f" SET LOCAL idle_in_transaction_session_timeout = {patience}"
        )

    def migrate(self) -> None:
        """Make the tables if there are none, and bring the schema up to date.

        Raises:
            UnusableDatabase: it is of a newer version or another program, or cannot be named so.
            Unavailable: the server is out of reach.
        """
        asyncio.run(self._connected(migrate, _MIGRATION_SECONDS))

    def schema(self) -> Schema:
        """Return which version of the schema there is; change nothing.

        Raises:
            UnusableDatabase: it is of a newer version or another program, or cannot be named so.
            Unavailable: the server is out of reach.
        """
        return asyncio.run(self._connected(inspect, self._patience))

    def is_replica(self) -> bool:
        """Tell whether the server is a streaming replica.

        Raises:
            UnusableDatabase: it cannot be named so.
            Unavailable: the server is out of reach.
        """
        return asyncio.run(self._connected(_is_in_recovery, self._patience))

    async def _connected(
        self, action: Callable[[Connection], Coroutine[Any, Any, T]], seconds: float
    ) -> T:
        """Return what ``action`` makes of a connection of its own."""
        async with _faults(seconds):
            connection = await self._connect()
            try:
                return await action(connection)
            finally:
                connection.terminate()

    async def open(self) -> None:
        """Make ready to connect. The server need not be there yet: until it is, all is refused."""
        self._pool = PostgresPool(self._connect, self.connections)

    @property
    def connections_in_use(self) -> int:
        """How many connections are at work now."""
        return self._pool.in_use

    async def close(self) -> None:
        """Finish the units of work under way and disconnect."""
        await self._pool.close()

    async def check(self) -> None:
        """Return if the server answers, and shows what is in a table of the store.

        Raises:
            Unavailable: it does not.
        """
        await self.read(_PING)

    async def version(self) -> None:
        """Return ``None``: nothing tells cheaply that no other process has committed."""

    async def read(self, statement: Statement) -> list[Row]:
        """Run one SELECT on what has been committed; once more if the connection was lost.

        Raises:
            Unavailable: the server is out of reach or failing.
        """
        if not statement.sql.startswith("SELECT"):
            msg = "only a unit of work may change the database"
            raise InternalError(msg)
        async with _faults(self._patience):
            try:
                return await self._read(statement)
            except Exception as error:
                if not is_lost(error):
                    raise
                return await self._read(statement)

    async def _read(self, statement: Statement) -> list[Row]:
        async with self._pool.lend() as connection:
            return await _run(connection, statement)

    async def write(self, unit: Unit[T]) -> T:
        """Run a unit of work in a transaction and return its result once it is durable.

        Raises:
            Unavailable: the server is out of reach, full or failing; not acknowledged.
            PetstoreError: what the unit itself raised; it changed nothing.
        """
        async with _faults(self._patience), self._pool.lend(self._begin) as connection:
            try:
                result = await _drive(connection, unit)
            except Exception as error:
                if not is_lost(error):
                    await connection.execute("ROLLBACK")
                raise
            # A transaction that has failed ends in a ROLLBACK, whatever it is told.
            if await connection.execute("COMMIT") != "COMMIT":
                msg = "a unit of work went on after a statement of it had failed"
                raise InternalError(msg)
            return result

    async def _connect(self) -> Connection:
        try:
            return await asyncpg.connect(
                self._url,
                timeout=self._patience,
                statement_cache_size=0 if self._is_pooled else _KEPT_STATEMENTS,
                server_settings=self._session,
            )
        except (OSError, asyncpg.PostgresError) as error:
            raise _unavailable(error, _HINT if _POOLER_SAYS in str(error) else "") from error
        except (ValueError, OverflowError) as error:
            raise UnusableDatabase(_refusal(error)) from None


async def _is_in_recovery(connection: Connection) -> bool:
    return bool(await connection.fetchval("SELECT pg_is_in_recovery()"))


@asynccontextmanager
async def _faults(seconds: float) -> AsyncIterator[None]:
    """Turn what is the server's fault, and what takes longer than ``seconds``, into one error."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except Exception as error:
        if is_lost(error) or isinstance(error, _FAULTS):
            raise _unavailable(error) from error
        raise


def _refusal(error: Exception) -> str:
    """Return what is wrong with an address, but no part of it: that may be of a password."""
    if isinstance(error, asyncpg.ClientConfigurationError) and "URI" not in str(error):
        return f"database: {error.args[0]}"  # an option after the ?
    return (
        "database: expected postgresql://user:password@host:port/name, and any of @ : / ? #"
        " % in the password percent-encoded, such as %40 for @"
    )


def _unavailable(error: Exception, hint: str = "") -> Unavailable:
    # After the first line comes advice to programmers.
    reason = str(error).partition("\n")[0] or "it did not answer in time"
    return Unavailable(f"the database is not available: {reason}{hint}")


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
    """Return ``sql`` as PostgreSQL takes it."""
    return _PARAMETER.sub(r"$\1", _POSTGRES_ONLY.sub(r"\1", sql))
