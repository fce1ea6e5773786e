"""A pool of connections to a PostgreSQL server."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from petstore.databases.postgres_connection import LOST, Connection


class PostgresPool:
    """At most ``size`` connections, opened by ``connect`` on demand; the last used one is next."""

    def __init__(self, connect: Callable[[], Awaitable[Connection]], size: int) -> None:
        self._connect = connect
        self._size = size
        self._idle: list[Connection] = []
        self._free = asyncio.Semaphore(size)
        self.in_use = 0

    @asynccontextmanager
    async def lend(self, opening: str = "") -> AsyncIterator[Connection]:
        """Lend a connection after running the statements ``opening`` on it.

        A connection that was lost, or abandoned at work, is closed.
        """
        async with self._free:
            self.in_use += 1
            try:
                connection = await self._opened(opening)
                try:
                    yield connection
                except BaseException as error:
                    if isinstance(error, LOST) or not isinstance(error, Exception):
                        self._abandon(connection)
                    raise
                finally:
                    if not connection.is_closed():
                        self._idle.append(connection)
            finally:
                self.in_use -= 1

    async def close(self) -> None:
        """Disconnect after all who are waiting have used a connection and returned it."""
        for _ in range(self._size):
            await self._free.acquire()
        closing = [connection.close(timeout=1) for connection in self._idle]
        await asyncio.gather(*closing, return_exceptions=True)

    async def _opened(self, opening: str) -> Connection:
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_closed():
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
        for abandoned in (connection, *self._idle):
            abandoned.terminate()
        self._idle.clear()
