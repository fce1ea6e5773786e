"""The embedded store: one SQLite file.

Reads run in the event loop's own thread, on a connection that sees what has been committed: a
page takes microseconds, a hop to another thread would take longer. Writes commit in groups: units
of work that arrive while a commit is under way run in the next transaction, each in a savepoint,
and each caller is answered after the fsync. Only waiting for the lock and COMMIT run in a thread.
"""

import asyncio
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

from petstore.errors import Unavailable
from petstore.storage.contract import Row, Statement, T, Unit
from petstore.storage.migrations import UnusableDatabase, migrate

_LARGEST_GROUP = 256
_MIGRATION_WAIT = 10_000
_FAULTS = (
    apsw.BusyError,
    apsw.CantOpenError,
    apsw.CorruptError,
    apsw.FullError,
    apsw.IOError,
    apsw.InterruptError,
    apsw.LockedError,
    apsw.NoMemError,
    apsw.NotADBError,
    apsw.PermissionsError,
    apsw.ProtocolError,
    apsw.ReadOnlyError,
)


class SqliteStore:
    """A store in the file ``path``; a write is refused after ``patience`` milliseconds."""

    def __init__(self, path: Path, patience: int = 1500) -> None:
        self._path = path
        self._patience = patience
        self._waiting: deque[tuple[Unit[Any], asyncio.Future[Any]]] = deque()
        self._group: asyncio.Task[None] | None = None

    def migrate(self) -> None:
        """Create the file if there is none, and bring its schema up to date.

        Raises:
            UnusableDatabase: it is no database of this version, or cannot be opened.
        """
        try:
            connection = apsw.Connection(str(self._path))
            try:
                connection.set_busy_timeout(_MIGRATION_WAIT)
                migrate(connection)
                connection.pragma("journal_mode", "wal")
            finally:
                connection.close()
        except apsw.Error as error:
            msg = f"{self._path}: {error}"
            raise UnusableDatabase(msg) from error
        except UnusableDatabase as error:
            msg = f"{self._path}: {error.message}"
            raise UnusableDatabase(msg) from error

    async def open(self) -> None:
        """Connect to the file. Call it in the process that uses it: SQLite must not be forked.

        Raises:
            Unavailable: the file cannot be opened.
        """
        with _faults():
            flags = apsw.SQLITE_OPEN_READWRITE
            self._writer = apsw.Connection(str(self._path), flags=flags)
            self._writer.pragma("synchronous", "full")
            self._writer.pragma("foreign_keys", "on")
            self._reader = apsw.Connection(str(self._path), flags=flags)
            self._reader.set_busy_timeout(self._patience)
            self._reader.pragma("query_only", "on")
        self._cursor = self._reader.cursor()
        self._thread = ThreadPoolExecutor(1, "sqlite-commit")

    async def close(self) -> None:
        """Finish the units of work under way and close the file."""
        while self._group is not None:
            await self._group
        self._thread.shutdown()
        self._reader.close()
        self._writer.close()

    async def read(self, statement: Statement) -> list[Row]:
        """Run one SELECT on what has been committed.

        Raises:
            Unavailable: the file is out of reach or failing.
        """
        try:
            return self._cursor.execute(statement.sql, statement.parameters).fetchall()
        except _FAULTS as error:
            raise _unavailable(error) from error

    async def write(self, unit: Unit[T]) -> T:
        """Run a unit of work in the next group and return its result once it is durable.

        Raises:
            Unavailable: the file is locked, full or failing, or the disk too slow.
            PetstoreError: what the unit itself raised; it changed nothing.
        """
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting.append((unit, done))
        if self._group is None:
            self._group = asyncio.create_task(self._commit_groups())
        try:
            async with asyncio.timeout(self._patience / 1000):
                return await done
        except TimeoutError:
            msg = "the database did not confirm the change in time"
            raise Unavailable(msg) from None

    async def _commit_groups(self) -> None:
        try:
            while self._waiting:
                size = min(len(self._waiting), _LARGEST_GROUP)
                await self._commit([self._waiting.popleft() for _ in range(size)])
        finally:
            self._group = None

    async def _commit(self, group: list[tuple[Unit[Any], asyncio.Future[Any]]]) -> None:
        outcomes: list[tuple[asyncio.Future[Any], Any]] = []
        try:
            with _faults():
                await self._begin()
                for unit, done in group:
                    # A caller who was told 503 meanwhile must not find the change made.
                    if not done.done():
                        outcomes.append((done, self._run(unit)))
                await asyncio.get_running_loop().run_in_executor(
                    self._thread, self._writer.execute, "COMMIT"
                )
        except BaseException as error:
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
            outcomes = [(done, error) for _, done in group]
            if not isinstance(error, Exception):
                raise
        finally:
            for done, outcome in outcomes:
                _settle(done, outcome)

    async def _begin(self) -> None:
        """Take the write lock, waiting for another process's transaction in the thread."""
        try:
            self._writer.set_busy_timeout(0)
            self._writer.execute("BEGIN IMMEDIATE")
        except apsw.BusyError:
            self._writer.set_busy_timeout(self._patience)
            await asyncio.get_running_loop().run_in_executor(
                self._thread, self._writer.execute, "BEGIN IMMEDIATE"
            )

    def _run(self, unit: Unit[Any]) -> Any:
        """Run one unit in its savepoint; return its result, or the error that undid it."""
        execute = self._writer.execute
        execute("SAVEPOINT unit")
        try:
            statement = next(unit)
            while True:
                rows = execute(statement.sql, statement.parameters).fetchall()
                statement = unit.send(rows)
        except StopIteration as finished:
            result = finished.value
        except _FAULTS:
            raise
        except Exception as error:  # noqa: BLE001 - one unit's error is its caller's, not the group's
            execute("ROLLBACK TO unit")
            result = error
        execute("RELEASE unit")
        return result


def _settle(done: asyncio.Future[Any], outcome: object) -> None:
    if done.done():
        return
    if isinstance(outcome, BaseException):
        done.set_exception(outcome)
    else:
        done.set_result(outcome)


@contextmanager
def _faults() -> Iterator[None]:
    try:
        yield
    except _FAULTS as error:
        raise _unavailable(error) from error


def _unavailable(error: Exception) -> Unavailable:
    return Unavailable(f"the database is not available: {error}")
