"""The embedded store: one SQLite file.

Reads run in the event loop's own thread, on a connection that sees what has been committed: a
page takes microseconds, a hop to another thread would take longer. Writes commit in groups: units
of work that arrive during a commit run in the next transaction, each in a savepoint, and each
caller gets its result after the fsync. Only COMMIT and waiting for the lock run in a thread.
"""

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

import apsw
from msgspec import Struct

from petstore.clock import SECOND, Milliseconds
from petstore.databases.contract import Row, Statement, T, Unit, faults, unavailable
from petstore.databases.migrations import Schema
from petstore.databases.migrations.sqlite import inspect, migrate
from petstore.databases.private_files import create
from petstore.databases.sqlite_connection import (
    FAULTS,
    connect,
    connected,
    files_of,
    read_only,
    unusable,
)
from petstore.errors import PetstoreError, Unavailable

_DATA_VERSION = "PRAGMA data_version"
_MAX_GROUP = 256
_MAX_LOG_BYTES = 16 * 1024 * 1024
_MAX_TURNS = 4
_WATCH_SECONDS = 0.05
_POLL_SECONDS = 0.001
_MIGRATION_TIMEOUT: Milliseconds = 10 * SECOND
_READER_TIMEOUT: Milliseconds = 50
_LOG = logging.getLogger(__name__)


class _Waiting(Struct, frozen=True):
    """A unit of work, the future of its caller, and its deadline by the clock of the loop."""

    unit: Unit[Any]
    done: asyncio.Future[Any]
    deadline: float


_Outcome: TypeAlias = tuple[asyncio.Future[Any], Any]
"""The future of a caller, and the result or error of its unit."""


class SqliteStore:
    """A store in the file ``path``; a write that takes longer than ``timeout`` is refused.

    With ``brief_locks``, nothing waits while it has the write lock, not even for the disk: if the
    process freezes, others can still write. The price is that others see a change some milliseconds
    before it is durable.
    """

    def __init__(
        self, path: Path, timeout: Milliseconds = 1500, *, brief_locks: bool = False
    ) -> None:
        self._path = path
        self._timeout = timeout
        self._brief_locks = brief_locks
        self._waiting: deque[_Waiting] = deque()
        self._group: asyncio.Task[None] | None = None
        self._opened_times = 0
        self._is_replacing = False
        self._is_committing = False
        self._own_changes = 0
        self._seen: tuple[int, int] | None = None
        self._basis: tuple[int, int, int] | None = None
        self._version = 0
        self.committed: Counter[int] = Counter()
        """The number of committed groups, by the number of their units of work."""

    def migrate(self) -> None:
        """Create the file if necessary, and bring its schema up to date."""
        with suppress(OSError):  # it exists, or SQLite says what is wrong
            create(self._path).close()  # SQLite itself would let everybody read it
        with unusable(self._path), connected(self._path, _MIGRATION_TIMEOUT) as connection:
            migrate(connection)
            connection.pragma("journal_mode", "wal")

    def schema(self) -> Schema:
        """Return the version of the schema; change nothing, not even a file beside it.

        Raises:
            UnusableDatabase: the file is no database of this version, or cannot be opened.
        """
        with unusable(self._path), read_only(self._path, self._timeout) as connection:
            return inspect(connection)

    async def open(self) -> None:
        """Connect to the file. Call it in the process that uses it: SQLite must not be forked."""
        with faults(FAULTS):
            self._connect(self._timeout)
        self._thread = ThreadPoolExecutor(1, "sqlite-commit")

    async def close(self) -> None:
        """Finish the units of work in progress and close the file."""
        while self._group is not None:
            await self._group
        if self._files.are_open:
            try:
                await self._save_log()
            except (PetstoreError, *FAULTS) as error:
                _LOG.warning("%s: its log was not saved: %s", self._path, error)
        self._thread.shutdown()
        self._opened.close()

    def _connect(self, timeout: Milliseconds) -> None:
        with ExitStack() as opened:
            files = opened.enter_context(files_of(self._path))
            with files.opening(timeout):
                writer = self._open_connection(opened, self._timeout)
                writer.pragma("synchronous", "normal" if self._brief_locks else "full")
                writer.pragma("foreign_keys", "on")
                # SQLite copies each page that a savepoint changes. In a temporary file, the copies
                # of an import would be as much to write as the import itself.
                writer.pragma("temp_store", "memory")
                # The log grows during a long read; SQLite truncates it once it starts over.
                writer.pragma("journal_size_limit", _MAX_LOG_BYTES)
                # Readers only wait for a recovery; and the event loop waits with them.
                reader = self._open_connection(opened, _READER_TIMEOUT)
                reader.pragma("query_only", "on")
                # One cursor each: a new one for every statement costs as much as a small statement.
                write, read = writer.cursor().execute, reader.cursor().execute
                for execute in (write, read):
                    execute(_DATA_VERSION).fetchall()  # SQLite opens the log only to read it
            self._opened = opened.pop_all()
        self._files, self._writer, self._write = files, writer, write
        self._opened_times += 1
        self._read: Callable[..., apsw.Cursor] = read  # the loop may read from now on

    def _open_connection(self, opened: ExitStack, timeout: Milliseconds) -> apsw.Connection:
        connection = connect(self._path, timeout)
        opened.callback(connection.close)
        # Otherwise SQLite compiles a statement with LIMIT ?1 again for each value of ?1.
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        return connection

    async def check(self) -> None:
        """Return if the file is still there and can be read.

        If the log or its index was deleted, this replaces it.
        """
        if not self._files.are_in_place():
            await self.write(_nothing())
        await self.version()

    async def version(self) -> int | None:
        """Return the version of what pages show; ``None`` if it is about to change.

        Every commit changes it, but for own ones without a statement that ``affects_pages``.
        """
        try:
            seen = (self._opened_times, self._read(_DATA_VERSION).get)
            if seen != self._seen:
                if self._is_committing:  # the thread has the connection
                    return None
                self._note_version()
        except FAULTS as error:
            raise unavailable(error) from error
        return self._version

    def _note_version(self) -> None:
        """Count up the version if there was a commit that can show in a page.

        The data version of a connection counts the commits of all others. So the reader sees every
        commit, and the writer those of other processes.
        """
        self._seen = (self._opened_times, self._read(_DATA_VERSION).get)
        basis = (self._opened_times, self._write(_DATA_VERSION).get, self._own_changes)
        if basis != self._basis:
            self._basis = basis
            self._version += 1

    async def read(self, statement: Statement) -> list[Row]:
        """Run one SELECT on committed data."""
        try:
            return self._read(statement.sql, statement.parameters).fetchall()
        except FAULTS as error:
            raise unavailable(error) from error

    async def write(self, unit: Unit[T]) -> T:
        """Run a unit of work in the next group and return its result once it is durable."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        self._waiting.append(_Waiting(unit, done, loop.time() + self._timeout / SECOND))
        if self._group is None:
            self._group = asyncio.create_task(self._commit_groups())
        return await done

    async def _commit_groups(self) -> None:
        try:
            while self._waiting:
                size = min(len(self._waiting), _MAX_GROUP)
                await self._commit([self._waiting.popleft() for _ in range(size)])
                # Callers with a result may write again at once: larger groups, fewer fsyncs.
                for _ in range(min(size, _MAX_TURNS)):
                    await asyncio.sleep(0)
                    if len(self._waiting) >= size:
                        break
        finally:
            self._group = None

    async def _commit(self, group: list[_Waiting]) -> None:
        outcomes: list[_Outcome] = []
        loop = asyncio.get_running_loop()
        self._watching = loop.call_later(_WATCH_SECONDS, self._give_up, group)
        self._is_committing = True
        try:
            with faults(FAULTS):
                await self._begin()
                # Holding the lock: from here on, every new version is this group's.
                with suppress(*FAULTS):  # a reader that fails is no reason to refuse a change
                    self._note_version()
                # A change that got a 503 in the meantime must not be made.
                outcomes.extend(
                    (waiting.done, self._run(waiting.unit))
                    for waiting in group
                    if not waiting.done.done()
                )
                await self._commit_durably(outcomes)
                self.committed[len(outcomes)] += 1
        except BaseException as error:
            with suppress(apsw.Error):  # if this fails, so does the next BEGIN
                if self._writer.in_transaction:
                    self._write("ROLLBACK")
            for waiting in group:
                _settle(waiting.done, error)
            if not isinstance(error, Exception):
                raise
        finally:
            self._is_committing = False
            self._watching.cancel()

    async def _commit_durably(self, outcomes: list[_Outcome]) -> None:
        """Commit in the thread, and settle all outcomes in the very next turn of the loop.

        If the log lost its name, what was committed to it is saved first.
        """
        loop = asyncio.get_running_loop()
        committed: asyncio.Future[bool] = loop.create_future()

        def settle(error: BaseException | None) -> None:
            is_safe = error is None and self._files.log_is_in_place()
            if is_safe:
                self._is_committing = False
                for outcome in outcomes:
                    _settle(*outcome)
            _settle(committed, error or is_safe)

        ended: Future[Any]
        if self._brief_locks:
            self._write("COMMIT")
            ended = self._thread.submit(self._files.sync_log)
        else:
            ended = self._thread.submit(self._write, "COMMIT")
        ended.add_done_callback(lambda _: loop.call_soon_threadsafe(settle, ended.exception()))
        if not await committed:
            await self._save_log()
            for outcome in outcomes:
                _settle(*outcome)

    def _give_up(self, group: list[_Waiting]) -> None:
        """Fail everything whose deadline has passed; units not yet run will not run."""
        loop = asyncio.get_running_loop()
        self._watching = loop.call_later(_WATCH_SECONDS, self._give_up, group)
        for waiting in (*group, *self._waiting):
            if waiting.deadline <= loop.time():
                error = Unavailable("the database did not confirm the change in time")
                _settle(waiting.done, error)

    async def _begin(self) -> None:
        """Take the write lock on files that still have their names."""
        if not self._files.are_open:
            await self._reopen()
        try:
            await self._lock()
        except apsw.BusyError:
            # Who has the lock may keep it for long.
            if not self._files.log_is_in_place():
                self._warn_once()
                await self._save_log()
            raise
        if not self._files.may_be_written():
            await self._replace_files()
            await self._lock()

    async def _lock(self) -> None:
        """Take the write lock, waiting for another process's transaction."""
        try:
            self._writer.set_busy_timeout(0)
            self._write("BEGIN IMMEDIATE")
        except apsw.BusyError:
            if self._brief_locks:
                await self._poll_lock()
                return
            self._writer.set_busy_timeout(self._timeout)
            await asyncio.get_running_loop().run_in_executor(
                self._thread, self._write, "BEGIN IMMEDIATE"
            )

    async def _poll_lock(self) -> None:
        """Take the lock in a turn of the loop: a thread would have it before the loop continues."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._timeout / SECOND
        while not self._writer.in_transaction:
            await asyncio.sleep(_POLL_SECONDS)
            try:
                self._write("BEGIN IMMEDIATE")
            except apsw.BusyError:
                if loop.time() >= deadline:
                    raise

    async def _replace_files(self) -> None:
        """Close files of which one was deleted, and open new ones once nobody uses the old ones."""
        self._write("ROLLBACK")
        self._files.check_database()
        self._warn_once()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._timeout / 2 / SECOND
        while not await self._save_log():
            if loop.time() >= deadline:
                raise Unavailable(self._files.kept())
            await asyncio.sleep(_WATCH_SECONDS)
        self._read = self._refuse_read
        self._opened.close()
        await self._reopen()

    def _refuse_read(self, *_: object) -> NoReturn:
        msg = "the database is not available: its files are being opened again"
        raise Unavailable(msg)

    def _warn_once(self) -> None:
        if not self._is_replacing:
            self._is_replacing = True
            _LOG.warning(
                "%s; changes wait until new files can be opened, once nobody uses the old ones",
                self._files.kept(),
            )

    async def _save_log(self) -> bool:
        """Bring to the database what is only in a log without a name: SQLite still has it open.

        While another program reads, SQLite may not bring everything there. Then a copy of the log
        is made. Return whether the database has everything.
        """
        self._files.check_log()
        if self._files.log_is_in_place():
            return True
        save, timeout = self._files.save_log, self._timeout // 2
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, save, timeout, self._checkpoint)

    def _checkpoint(self) -> bool:
        """Bring to the database what readers allow; return whether that was everything."""
        with suppress(apsw.BusyError):
            frames, done = self._writer.wal_checkpoint("main", apsw.SQLITE_CHECKPOINT_PASSIVE)
            return frames == done
        return False

    async def _reopen(self) -> None:
        # Whoever waits for a change learns the reason before their own time is over.
        timeout = self._timeout // 2
        await asyncio.get_running_loop().run_in_executor(self._thread, self._connect, timeout)
        self._is_replacing = False
        _LOG.info("%s: new files are open beside it; changes continue", self._path)

    def _run(self, unit: Unit[Any]) -> Any:
        """Run one unit in its savepoint; return its result, or the error that undid it."""
        execute = self._write
        execute("SAVEPOINT unit")
        try:
            statement = next(unit)
            while True:
                rows = execute(statement.sql, statement.parameters).fetchall()
                self._own_changes += statement.affects_pages
                if statement.gives_id:
                    # RETURNING would open a table for the one row each time.
                    rows = [(self._writer.last_insert_rowid(),)]
                statement = unit.send(rows)
        except StopIteration as finished:
            result = finished.value
        except FAULTS:
            raise
        except Exception as error:  # noqa: BLE001 - it concerns the caller of this unit alone
            execute("ROLLBACK TO unit")
            result = error
        execute("RELEASE unit")
        return result


def file_has_webhooks(path: Path) -> bool:
    """Return whether the store at ``path``, of any version, has webhooks; change nothing.

    Raises:
        UnusableDatabase: the file is no database, or cannot be opened.
    """
    with unusable(path), read_only(path, _MIGRATION_TIMEOUT) as connection:
        is_new = connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'webhooks'").get
        return bool(is_new and connection.execute("SELECT EXISTS (SELECT 1 FROM webhooks)").get)


def put_log_away(path: Path) -> None:
    """Checkpoint the log and remove it, as the last process to close it does.

    Of processes that close it at the same moment, each may leave that to the other.
    """
    with suppress(apsw.Error, PetstoreError), connected(path, 0):
        pass


def _nothing() -> Unit[None]:
    """Change nothing: the commit checks the files."""
    yield Statement("SELECT 1", name="nothing")


def _settle(done: asyncio.Future[Any], outcome: object) -> None:
    if done.done():
        return
    if isinstance(outcome, BaseException):
        done.set_exception(outcome)
    else:
        done.set_result(outcome)
