"""Connections to a PostgreSQL server, made when they are needed and used again."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeAlias

import asyncpg  # type: ignore[import-untyped]

Connection: TypeAlias = Any  # asyncpg has no types

_LOST = (
    OSError,
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    # The server has become a replica; another one takes changes now.
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
)


def is_lost(error: BaseException) -> bool:
    """Tell whether ``error`` means that the connection can be used no more."""
    return isinstance(error, _LOST)


class PostgresPool:
    """At most ``size`` connections, each made by ``connect``; the last one used is used first."""

    def __init__(self, connect: Callable[[], Awaitable[Connection]], size: int) -> None:
        self._connect = connect
        self._size = size
        self._idle: list[Connection] = []
        self._room = asyncio.Semaphore(size)
        self.in_use = 0

    @asynccontextmanager
    async def lend(self, opening: str = "") -> AsyncIterator[Connection]:
        """Lend a connection on which the statements ``opening`` have run.

        Nobody else gets one that was lost, or left while it was at work.
        """
        async with self._room:
            self.in_use += 1
            try:
                connection = await self._opened(opening)
                try:
                    yield connection
                except BaseException as error:
                    if is_lost(error) or not isinstance(error, Exception):
                        self._abandon(connection)
                    raise
                finally:
                    if not connection.is_closed():
                        self._idle.append(connection)
            finally:
                self.in_use -= 1

    async def close(self) -> None:
        """Disconnect once everybody who waits now has had a connection and given it back."""
        for _ in range(self._size):
            await self._room.acquire()
        closing = [connection.close(timeout=1) for connection in self._idle]
        await asyncio.gather(*closing, return_exceptions=True)

    async def _opened(self, opening: str) -> Connection:
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_closed():
                with suppress(Exception):  # nothing has been done yet, so a fresh one may do it
                    return await self._run(connection, opening)
        return await self._run(await self._connect(), opening)

    async def _run(self, connection: Connection, opening: str) -> Connection:
        """Run statements on a connection, if there are any, and return it."""
        try:
            if opening:
                await connection.execute(opening)
        except BaseException:
            self._abandon(connection)
            raise
        return connection

    def _abandon(self, connection: Connection) -> None:
        """Use ``connection`` no more, nor the idle ones: they too may be lost, or silent."""
        for abandoned in (connection, *self._idle):
            abandoned.terminate()
        self._idle.clear()
