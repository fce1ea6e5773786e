"""The embedded store: one SQLite file.

Reads run in the event loop's own thread, on a connection that sees what has been committed: a
page takes microseconds, a hop to another thread would take longer. Writes commit in groups: units
of work that arrive while a commit is under way run in the next transaction, each in a savepoint,
and each caller is answered after the fsync. Only waiting for the lock and COMMIT run in a thread.
"""

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias

import apsw
from msgspec import Struct

from petstore.databases.contract import Row, Statement, T, Unit
from petstore.databases.migrations import Schema, UnusableDatabase, inspect, migrate
from petstore.databases.private_files import create
from petstore.databases.sqlite_files import LOG, OpenFiles
from petstore.errors import Unavailable

_DATA_VERSION = "PRAGMA data_version"
_LARGEST_GROUP = 256
_LARGEST_LOG = 16 * 1024 * 1024
_TURNS = 4
_WATCH_SECONDS = 0.05
_MIGRATION_WAIT = 10_000
_READER_WAIT = 50
_VERSIONS = 2**32  # of one connection
_LOG = logging.getLogger(__name__)
_FAULTS = (
    OSError,
    apsw.BusyError,
    apsw.CantOpenError,
    apsw.CorruptError,
    apsw.CursorClosedError,
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


class _Waiting(Struct, frozen=True):
    """A unit of work, what its caller waits for, and until when, by the clock of the loop."""

    unit: Unit[Any]
    done: asyncio.Future[Any]
    deadline: float


_Outcome: TypeAlias = tuple[asyncio.Future[Any], Any]
"""What a caller waits for, and what comes of it."""


class SqliteStore:
    """A store in the file ``path``; a write is refused after ``patience`` milliseconds."""

    def __init__(self, path: Path, patience: int = 1500) -> None:
        self._path = path
        self._patience = patience
        self._waiting: deque[_Waiting] = deque()
        self._group: asyncio.Task[None] | None = None
        self._versions_before = 0
        self.committed: Counter[int] = Counter()
        """How many groups were committed, by the number of their units of work."""

    def migrate(self) -> None:
        """Create the file if there is none, and bring its schema up to date.

        Raises:
            UnusableDatabase: it is no database of this version, or cannot be opened.
        """
        with suppress(OSError):  # it is there, or SQLite says what is wrong
            create(self._path).close()  # by itself SQLite would let everybody read it
        with _unusable(self._path):
            connection = apsw.Connection(str(self._path), flags=apsw.SQLITE_OPEN_READWRITE)
            with closing(connection):
                connection.set_busy_timeout(_MIGRATION_WAIT)
                migrate(connection)
                connection.pragma("journal_mode", "wal")

    def schema(self) -> Schema:
        """Return which version of the schema there is; change nothing, not even a file beside it.

        Raises:
            UnusableDatabase: it is no database of this version, or cannot be opened.
        """
        file = self._path.resolve()
        # Nobody uses a database without a log. SQLite makes one to read it, unless nothing changes.
        mode = "mode=ro" if Path(f"{file}{LOG}").exists() else "immutable=1"
        with _unusable(self._path):
            flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
            with closing(apsw.Connection(f"{file.as_uri()}?{mode}", flags=flags)) as connection:
                connection.set_busy_timeout(self._patience)
                return inspect(connection)

    async def open(self) -> None:
        """Connect to the file. Call it in the process that uses it: SQLite must not be forked.

        Raises:
            Unavailable: the file cannot be opened.
        """
        with _faults():
            self._connect()
        self._thread = ThreadPoolExecutor(1, "sqlite-commit")

    async def close(self) -> None:
        """Finish the units of work under way and close the file."""
        while self._group is not None:
            await self._group
        self._thread.shutdown()
        self._opened.close()

    def _connect(self) -> None:
        with ExitStack() as opened:
            self._writer = self._open_connection(opened)
            self._writer.pragma("synchronous", "full")
            self._writer.pragma("foreign_keys", "on")
            # SQLite keeps a copy of each page that a savepoint changes. In a temporary file, those
            # of an import would be as much to write as the import itself.
            self._writer.pragma("temp_store", "memory")
            # The log grows while a long read holds it; it is cut back once it starts anew.
            self._writer.pragma("journal_size_limit", _LARGEST_LOG)
            self._reader = self._open_connection(opened)
            # Readers wait for nobody but a recovery; and the event loop waits with them.
            self._reader.set_busy_timeout(_READER_WAIT)
            self._reader.pragma("query_only", "on")
            # One cursor each: making one for every statement costs as much as a small statement.
            self._read = self._reader.cursor().execute
            self._write = self._writer.cursor().execute
            for execute in (self._write, self._read):
                execute(_DATA_VERSION).fetchall()  # only who reads opens the files beside it
            self._files = OpenFiles(self._path)
            opened.callback(self._files.close)
            self._opened = opened.pop_all()
        self._versions_before += _VERSIONS

    def _open_connection(self, opened: ExitStack) -> apsw.Connection:
        connection = apsw.Connection(str(self._path), flags=apsw.SQLITE_OPEN_READWRITE)
        opened.callback(connection.close)
        # Else SQLite compiles a statement with LIMIT ?1 anew each time it runs, for what is bound.
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        # Another process that has just closed the file may hold it for a moment.
        connection.set_busy_timeout(self._patience)
        return connection

    async def check(self) -> None:
        """Return if the file is still there and can be read.

        If the log or its index was deleted, there is another then.

        Raises:
            Unavailable: it is not, or can not.
        """
        if not self._files.are_in_place():
            await self.write(_nothing())
        await self.version()

    async def version(self) -> int:
        """Return SQLite's data version, which every commit to the file changes.

        Raises:
            Unavailable: the file is out of reach or failing.
        """
        try:
            version: int = self._read(_DATA_VERSION).get
        except _FAULTS as error:
            raise _unavailable(error) from error
        return self._versions_before + version

    async def read(self, statement: Statement) -> list[Row]:
        """Run one SELECT on what has been committed.

        Raises:
            Unavailable: the file is out of reach or failing.
        """
        try:
            return self._read(statement.sql, statement.parameters).fetchall()
        except _FAULTS as error:
            raise _unavailable(error) from error

    async def write(self, unit: Unit[T]) -> T:
        """Run a unit of work in the next group and return its result once it is durable.

        Raises:
            Unavailable: the file is locked, full or failing, or the disk too slow.
            PetstoreError: what the unit itself raised; it changed nothing.
        """
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        self._waiting.append(_Waiting(unit, done, loop.time() + self._patience / 1000))
        if self._group is None:
            self._group = asyncio.create_task(self._commit_groups())
        return await done

    async def _commit_groups(self) -> None:
        try:
            while self._waiting:
                size = min(len(self._waiting), _LARGEST_GROUP)
                await self._commit([self._waiting.popleft() for _ in range(size)])
                # Who was just answered may write again at once: larger groups, fewer fsyncs.
                for _ in range(min(size, _TURNS)):
                    await asyncio.sleep(0)
                    if len(self._waiting) >= size:
                        break
        finally:
            self._group = None

    async def _commit(self, group: list[_Waiting]) -> None:
        outcomes: list[_Outcome] = []
        self._watch(group)
        try:
            with _faults():
                await self._begin()
                # A caller who was told 503 meanwhile must not find the change made.
                outcomes.extend(
                    (waiting.done, self._run(waiting.unit))
                    for waiting in group
                    if not waiting.done.done()
                )
                await self._commit_durably(outcomes)
                self.committed[len(outcomes)] += 1
        except BaseException as error:
            with suppress(apsw.Error):  # if it does not help, the next BEGIN fails
                if self._writer.in_transaction:
                    self._write("ROLLBACK")
            for waiting in group:
                _settle(waiting.done, error)
            if not isinstance(error, Exception):
                raise
        finally:
            self._watching.cancel()

    async def _commit_durably(self, outcomes: list[_Outcome]) -> None:
        """Commit in the thread, and tell whoever waits in the very next turn of the loop.

        What was committed to a log that lost its name is brought to safety before.
        """
        loop = asyncio.get_running_loop()
        committed: asyncio.Future[bool] = loop.create_future()

        def tell(error: BaseException | None) -> None:
            is_safe = error is None and self._files.log_is_in_place()
            if is_safe:
                _settle_all(outcomes)
            _settle(committed, error or is_safe)

        ended = self._thread.submit(self._write, "COMMIT")
        ended.add_done_callback(lambda _: loop.call_soon_threadsafe(tell, ended.exception()))
        if not await committed:
            await self._recover()
            _settle_all(outcomes)

    def _watch(self, group: list[_Waiting]) -> None:
        """Look after ``group`` and those behind it again and again, until it is done."""
        loop = asyncio.get_running_loop()
        self._watching = loop.call_later(_WATCH_SECONDS, self._give_up, group)

    def _give_up(self, group: list[_Waiting]) -> None:
        """Tell everybody whose time is over; units of theirs not yet run will not be."""
        self._watch(group)
        now = asyncio.get_running_loop().time()
        for waiting in (*group, *self._waiting):
            if waiting.deadline <= now:
                error = Unavailable("the database did not confirm the change in time")
                _settle(waiting.done, error)

    async def _begin(self) -> None:
        """Take the write lock on files that have their names.

        They are looked at under the lock: another process that finds a name gone goes on with new
        files, and from then on nobody may write to the old ones.
        """
        if not self._files.are_open:
            self._connect()
        try:
            await self._lock()
            is_safe = self._files.may_be_written()
        except apsw.IOError:  # it reads a log that another process has brought to safety
            is_safe = self._files.are_in_place()
            if is_safe:
                raise
        if not is_safe:
            await self._recover()
            await self._lock()

    async def _lock(self) -> None:
        """Take the write lock, waiting for another process's transaction in the thread."""
        try:
            self._writer.set_busy_timeout(0)
            self._write("BEGIN IMMEDIATE")
        except apsw.BusyError:
            self._writer.set_busy_timeout(self._patience)
            await asyncio.get_running_loop().run_in_executor(
                self._thread, self._write, "BEGIN IMMEDIATE"
            )

    async def _recover(self) -> None:
        """Open new files in place of a deleted log or index; all that was committed stays.

        Raises:
            Unavailable: the database itself is gone, or what was in the log cannot be saved.
        """
        if self._writer.in_transaction:
            self._write("ROLLBACK")
        self._files.check_database()
        missing = self._files.missing()
        if self._files.log in missing:
            # Through the descriptor that SQLite has of it.
            checkpoint, mode = self._writer.wal_checkpoint, apsw.SQLITE_CHECKPOINT_TRUNCATE
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(self._thread, checkpoint, "main", mode)
        self._files.check_log()
        for connection in (self._reader, self._writer):
            # The index of the last to close may be behind what is in the log by now.
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        self._opened.close()
        self._connect()
        _LOG.warning(
            "%s: deleted while in use; nothing is lost, and the service goes on with new files",
            ", ".join(missing) or "files beside the database",
        )

    def _run(self, unit: Unit[Any]) -> Any:
        """Run one unit in its savepoint; return its result, or the error that undid it."""
        execute = self._write
        execute("SAVEPOINT unit")
        try:
            statement = next(unit)
            while True:
                rows = execute(statement.sql, statement.parameters).fetchall()
                if statement.gives_id:
                    # RETURNING would open a table for the one row each time.
                    rows = [(self._writer.last_insert_rowid(),)]
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


def put_log_away(path: Path) -> None:
    """Bring the log into the database and remove it, as the last process to close it does.

    Of processes that close it at the same moment, each may leave that to the other.
    """
    with (
        suppress(apsw.Error),
        closing(apsw.Connection(str(path), apsw.SQLITE_OPEN_READWRITE)) as db,
    ):
        db.pragma("schema_version")  # only who reads opens the log


def _nothing() -> Unit[None]:
    """Change nothing: to have a group committed, and the files looked after with it."""
    yield Statement("SELECT 1", name="nothing")


def _settle_all(outcomes: list[_Outcome]) -> None:
    for done, outcome in outcomes:
        _settle(done, outcome)


def _settle(done: asyncio.Future[Any], outcome: object) -> None:
    if done.done():
        return
    if isinstance(outcome, BaseException):
        done.set_exception(outcome)
    else:
        done.set_result(outcome)


@contextmanager
def _unusable(path: Path) -> Iterator[None]:
    try:
        yield
    except apsw.Error as error:
        msg = f"{path}: {error}"
        raise UnusableDatabase(msg) from error
    except UnusableDatabase as error:
        msg = f"{path}: {error.message}"
        raise UnusableDatabase(msg) from error


@contextmanager
def _faults() -> Iterator[None]:
    try:
        yield
    except _FAULTS as error:
        raise _unavailable(error) from error


def _unavailable(error: Exception) -> Unavailable:
    return Unavailable(f"the database is not available: {error}")
