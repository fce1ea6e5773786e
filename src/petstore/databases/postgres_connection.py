"""Connections to a PostgreSQL server, one by one and in a pool, and what its errors mean."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import Any, TypeAlias

import asyncpg  # type: ignore[import-untyped]

from petstore.clock import Milliseconds
from petstore.databases.contract import unavailable
from petstore.errors import Unavailable, UnusableDatabase
from petstore.settings import POSTGRES_EXPECTED, postgres_url

Connection: TypeAlias = Any  # asyncpg has no types

CONNECTION_ERRORS = (
    OSError,
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    # The server has become a replica; another one takes changes now.
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
)
"""Errors after which nothing can use the connection."""

ERRORS = (*CONNECTION_ERRORS, asyncpg.PostgresError)
"""Every error of the server, the network and the driver."""

_POOLED = "pgbouncer=true"
_CACHED_STATEMENTS = 100
# A firewall may have forgotten an older one, and drop what is sent on it without a word.
_MAX_IDLE_SECONDS = 30
# Every statement has an index. A plan lives as long as its statement: it must not scan a table
# because that was small, or collect rows to sort them because few were expected.
# Keepalive: so that a firewall does not forget an idle connection.
_SESSION = {
    **dict.fromkeys(("enable_seqscan", "enable_bitmapscan", "jit"), "off"),
    "tcp_keepalives_idle": "30",
}


async def connect(
    url: str, seconds: float, statement_timeout: Milliseconds | None = None
) -> Connection:
    """Connect within this many ``seconds``.

    With ``statement_timeout`` the connection caches statements, and the server ends each of them
    in that time. Otherwise nothing outlives a transaction, and neither with ``pgbouncer=true`` in
    the query of ``url``: a pooler may give each transaction another connection.
    """
    options = url.partition("?")[2].split("&")
    is_lasting = statement_timeout is not None and _POOLED not in options
    session = {"application_name": "petstore"}
    if is_lasting:  # otherwise abandoned reads would occupy the server
        session |= _SESSION | {"statement_timeout": str(statement_timeout)}
    _leave_closed_home()
    try:
        return await asyncpg.connect(
            postgres_url(url),
            timeout=seconds,
            statement_cache_size=_CACHED_STATEMENTS if is_lasting else 0,
            server_settings=session,
        )
    except (OSError, asyncpg.PostgresError) as error:
        hint = ""
        if "unsupported startup parameter" in str(error):
            hint = f"; behind PgBouncer add ?{_POOLED} to the address"
        raise Unavailable(unavailable(error).detail + hint) from error
    except (ValueError, OverflowError) as error:
        # Without quoting the address: the password may be in it.
        is_option = isinstance(error, asyncpg.ClientConfigurationError) and "URI" not in str(error)
        msg = f"database: {error.args[0]}" if is_option else POSTGRES_EXPECTED
        raise UnusableDatabase(msg) from None


def _leave_closed_home() -> None:
    """Let asyncpg find no certificates in a home folder of another user; it would fail there."""
    with suppress(RuntimeError):  # there is no home
        try:
            (Path.home() / ".postgresql" / "postgresql.key").exists()
        except PermissionError:
            os.environ["HOME"] = os.devnull


class PostgresPool:
    """At most ``size`` connections, opened by ``connect`` on demand; the last used one is next."""

    def __init__(self, connect: Callable[[], Awaitable[Connection]], size: int) -> None:
        self._connect = connect
        self._size = size
        self._idle: list[tuple[Connection, float]] = []  # each with the moment of its last use
        self._free = asyncio.Semaphore(size)
        self.in_use = 0

    @asynccontextmanager
    async def acquire(self, opening: str = "") -> AsyncIterator[Connection]:
        async with self._free:
            self.in_use += 1
            try:
                connection = await self._opened(opening)
                try:
                    yield connection
                except BaseException as error:
                    if isinstance(error, CONNECTION_ERRORS) or not isinstance(error, Exception):
                        self._abandon(connection)
                    raise
                finally:
                    self._idle.append((connection, monotonic()))
            finally:
                self.in_use -= 1

    async def close(self) -> None:
        """Disconnect after all waiting callers have used a connection and returned it."""
        for _ in range(self._size):
            await self._free.acquire()
        closing = [connection.close(timeout=1) for connection, _ in self._idle]
        await asyncio.gather(*closing, return_exceptions=True)

    async def _opened(self, opening: str) -> Connection:
        while self._idle:
            connection, used_at = self._idle.pop()
            if monotonic() - used_at > _MAX_IDLE_SECONDS:
                connection.terminate()
            elif not connection.is_closed():
                with suppress(Exception):  # nothing was done yet, so a fresh one can do it
                    return await self._run(connection, opening)
        return await self._run(await self._connect(), opening)

    async def _run(self, connection: Connection, opening: str) -> Connection:
        try:
            if opening:
                await connection.execute(opening)
        except BaseException:
            self._abandon(connection)
            raise
        return connection

    def _abandon(self, connection: Connection) -> None:
        """Close ``connection`` and the idle ones: they too may be lost, or silent."""
        connection.terminate()
        for abandoned, _ in self._idle:
            abandoned.terminate()


@contextmanager
def unusable() -> Iterator[None]:
    try:
        yield
    except (asyncpg.SyntaxOrAccessError, asyncpg.InvalidSchemaNameError) as error:
        raise UnusableDatabase(f"the database cannot be used: {error}") from error
