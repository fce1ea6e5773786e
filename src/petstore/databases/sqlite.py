"""The embedded store: one SQLite file.

Reads run in the event loop's own thread, on a connection that sees what has been committed: a
page takes microseconds, a hop to another thread would take longer. Writes commit in groups.
"""

from contextlib import suppress
from pathlib import Path

import apsw

from petstore.clock import SECOND, Milliseconds
from petstore.databases.contract import Row, Schema, Statement, T, Unit, unavailable
from petstore.databases.migrations.sqlite import inspect, migrate
from petstore.databases.private_files import create
from petstore.databases.sqlite_commits import GroupCommit
from petstore.databases.sqlite_connection import (
    DATA_VERSION,
    OPERATIONAL_ERRORS,
    SqliteConnections,
    connected,
    one_at_a_time,
    unusable,
)
from petstore.errors import PetstoreError

_MIGRATION_TIMEOUT: Milliseconds = 10 * SECOND
_READ_TIMEOUT: Milliseconds = 2 * SECOND


class SqliteStore:
    """A store in the file ``path``; a write that takes longer than ``timeout`` is refused."""

    def __init__(self, path: Path, timeout: Milliseconds = 1500) -> None:
        self.path = path
        self._connections = SqliteConnections(path, timeout)
        self._commits = GroupCommit(self._connections)

    def migrate(self) -> None:
        with suppress(OSError):  # it exists, or SQLite says what is wrong
            create(self.path).close()  # SQLite itself would let everybody read it
        with (
            unusable(self.path),
            one_at_a_time(self.path, _MIGRATION_TIMEOUT),
            connected(self.path, _MIGRATION_TIMEOUT) as connection,
        ):
            migrate(connection)
            connection.pragma("journal_mode", "wal")

    def schema(self) -> Schema:
        """Return the version of the schema. Half a change of a killed process is undone first."""
        timeout = self._connections.timeout
        with unusable(self.path), connected(self.path, timeout) as connection:
            return inspect(connection)

    async def open(self) -> None:
        await self._connections.open()

    async def close(self) -> None:
        await self._commits.finish()
        await self._connections.close()

    async def check(self) -> None:
        if self._connections.has_lost_files():
            await self.write(_nothing())
        await self.version()

    async def version(self) -> object:
        try:
            return self._connections.read(DATA_VERSION).get
        except OPERATIONAL_ERRORS as error:
            raise unavailable(error) from error

    async def read(self, statement: Statement) -> list[Row]:
        try:
            return self._connections.read(statement.sql, statement.parameters).fetchall()
        except OPERATIONAL_ERRORS as error:
            raise unavailable(error) from error

    async def write(self, unit: Unit[T]) -> T:
        return await self._commits.write(unit)


def file_has_webhooks(path: Path) -> bool:
    with unusable(path), connected(path, _READ_TIMEOUT) as connection:
        is_new = connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'webhooks'").get
        return bool(is_new and connection.execute("SELECT EXISTS (SELECT 1 FROM webhooks)").get)


def checkpoint_and_remove_wal(path: Path) -> None:
    """Checkpoint the log and remove it, as the last process to close it does.

    Of processes that close it at the same moment, each may leave that to the other; and a process
    that only reads cannot remove it.
    """
    with suppress(apsw.Error, PetstoreError), connected(path, SECOND):
        pass


def _nothing() -> Unit[None]:
    """Change nothing: it is refused in its turn."""
    yield Statement("SELECT 1", name="nothing")
