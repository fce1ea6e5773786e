"""Connections to a PostgreSQL server, made when they are needed and used again."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
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
                    if is_lost(error):
                        self._drop_idle()
                    if is_lost(error) or not isinstance(error, Exception):
                        connection.terminate()
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
            if connection.is_closed():
                continue
            try:
                return await _run(connection, opening)
            except Exception:  # noqa: BLE001 - nothing has been done yet, so a fresh one may do it
                self._drop_idle()
        return await _run(await self._connect(), opening)

    def _drop_idle(self) -> None:
        """Where one connection was lost, the others probably are too."""
        while self._idle:
            self._idle.pop().terminate()


async def _run(connection: Connection, opening: str) -> Connection:
    """Run statements on a connection, if there are any, and return it."""
    try:
        if opening:
            await connection.execute(opening)
    except BaseException:
        connection.terminate()
        raise
    return connection
