"""Connections to a SQLite file, and what SQLite's errors mean to the service."""

import asyncio
import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeAlias

import apsw

from petstore.clock import SECOND, Milliseconds
from petstore.coalescing import settle
from petstore.databases.contract import T, as_unavailable
from petstore.databases.private_files import obstacle
from petstore.databases.sqlite_files import OpenFiles, has_lock
from petstore.errors import LostFiles, Unavailable, UnusableDatabase

OPERATIONAL_ERRORS = (
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
"""Errors of the file and its disk; any other one is a fault of a statement."""

DATA_VERSION = "PRAGMA data_version"
# With SQLite's 1,000, pages that many changes share are copied more often: 0.93 of a create.
_LOG_PAGES = 4_000
_MAX_LOG_BYTES = 16 * 1024 * 1024
_READER_TIMEOUT: Milliseconds = 50
_RETRY_SECONDS = 0.02
_LOG = logging.getLogger(__name__)

_Call: TypeAlias = tuple[asyncio.AbstractEventLoop, Callable[[], object], Callable[[Any], object]]
"""A function, and the one that gets what it returned or raised, in that event loop."""


def connect(
    file: Path | str, timeout: Milliseconds, flags: int = apsw.SQLITE_OPEN_READWRITE
) -> apsw.Connection:
    connection = apsw.Connection(str(file), flags=flags)
    connection.set_busy_timeout(timeout)
    return connection


@contextmanager
def connected(path: Path, timeout: Milliseconds) -> Iterator[apsw.Connection]:
    """Give a connection to the database at ``path``, beside the processes that have it open."""
    require_writable(path)
    with files_of(path) as files, ExitStack() as opened:
        with files.opening(timeout):
            connection = opened.enter_context(closing(connect(path, timeout)))
            connection.pragma("schema_version")  # SQLite opens the log only to read it
        yield connection


@contextmanager
def reading(path: Path, timeout: Milliseconds) -> Iterator[apsw.Connection]:
    if not why_read_only(path):
        with connected(path, timeout) as connection:
            yield connection
        return
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    with files_of(path) as files, files.opening(timeout):
        # SQLite reads a log that is there. It cannot make one, and needs none if "immutable".
        query = "mode=ro" if Path(files.log).exists() else "immutable=1"
        with closing(connect(f"{path.resolve().as_uri()}?{query}", timeout, flags)) as connection:
            yield connection


def why_read_only(path: Path) -> str:
    """Return why no file beside the database at ``path`` can be written, or nothing."""
    with suppress(OSError):  # there is no such folder
        if os.statvfs(Path(os.path.realpath(path)).parent).f_flag & os.ST_RDONLY:
            return "its file system is read-only"
    return ""


def require_writable(path: Path) -> None:
    if reason := why_read_only(path):
        raise apsw.ReadOnlyError(reason)


@contextmanager
def files_of(path: Path) -> Iterator[OpenFiles]:
    try:
        files = OpenFiles(path)
    except OSError as error:
        msg = obstacle(path) or "unable to open database file"
        raise apsw.CantOpenError(msg) from error
    with closing(files):
        yield files


@contextmanager
def one_at_a_time(path: Path, timeout: Milliseconds) -> Iterator[None]:
    """Run the block alone among the processes that do so for the database at ``path``.

    SQLite changes to a log, and deletes it at the end, without waiting for others. A process that
    takes longer than ``timeout`` is not waited for.
    """
    with ExitStack() as opened:
        with suppress(OSError):  # SQLite says what is wrong
            folder = os.open(Path(os.path.realpath(path)).parent, os.O_RDONLY)
            opened.callback(os.close, folder)
            deadline = time.monotonic() + timeout / SECOND
            while not has_lock(folder) and time.monotonic() < deadline:
                time.sleep(0.01)
        yield


@contextmanager
def unusable(path: Path, part: Path | None = None) -> Iterator[None]:
    """Turn every error of SQLite into ``UnusableDatabase``, which names the file at ``path``."""
    try:
        yield
    except (apsw.Error, UnusableDatabase) as error:
        msg = f"{path}: {error}"
        if part is not None and isinstance(error, apsw.FullError | apsw.IOError):
            msg = f"{path} cannot be copied to {part}: a disk is full or failing"
        raise UnusableDatabase(msg) from error


class SqliteConnections:
    """A reader and a writer on the file ``path``, once they are open.

    The thread of the event loop uses both. What waits for the disk or for a lock is put into
    ``calls``, for a thread that has the writer while the loop waits for it. ``read`` and ``write``
    execute a statement and return a cursor. ``lost`` says which file was deleted or replaced since.
    """

    def __init__(self, path: Path, timeout: Milliseconds) -> None:
        self.timeout = timeout
        self._path = path
        self.lost = ""

    async def open(self) -> None:
        with as_unavailable(OPERATIONAL_ERRORS), ExitStack() as opened:
            require_writable(self._path)
            self.files = opened.enter_context(files_of(self._path))
            with self.files.opening(self.timeout):
                self.writer = self._connect(opened, self.timeout)
                # A backup that was restored since the migration is in rollback mode.
                self.writer.pragma("journal_mode", "wal")
                self.writer.pragma("synchronous", "full")
                self.writer.pragma("foreign_keys", "on")
                # Personal data that is deleted is overwritten.
                self.writer.pragma("secure_delete", "on")
                # SQLite copies each page that a savepoint changes. In a temporary file, the copies
                # of an import would be as much to write as the import itself.
                self.writer.pragma("temp_store", "memory")
                self.writer.wal_autocheckpoint(_LOG_PAGES)
                # The log grows during a long read; SQLite truncates it once it starts over.
                self.writer.pragma("journal_size_limit", _MAX_LOG_BYTES)
                # Readers only wait for a recovery; and the event loop waits with them.
                reader = self._connect(opened, _READER_TIMEOUT)
                reader.pragma("query_only", "on")
                # One cursor each: a new one for every statement costs as much as a small statement.
                self.write, self.read = self.writer.cursor().execute, reader.cursor().execute
                for execute in (self.write, self.read):
                    execute(DATA_VERSION).fetchall()  # SQLite opens the log only to read it
            self._opened = opened.pop_all()
        self.lost = ""
        # A ThreadPoolExecutor takes as long for a call as SQLite for the statements of a change.
        self.calls = SimpleQueue[_Call | None]()
        self._thread = Thread(
            target=_make_each, args=(self.calls,), name="sqlite-commit", daemon=True
        )
        self._thread.start()

    def _connect(self, opened: ExitStack, timeout: Milliseconds) -> apsw.Connection:
        connection = connect(self._path, timeout)
        opened.callback(connection.close)
        # Otherwise SQLite compiles a statement with LIMIT ?1 again for each value of ?1.
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        return connection

    async def close(self) -> None:
        """Close the file, and bring to it what is only in a deleted log."""
        if self._thread.is_alive() and self.has_lost_files() and (reason := await self.rescue()):
            _LOG.critical("%s does not have all changes: %s", self._path, reason)
        self.lost = "the database is closed"
        self.calls.put(None)
        self._thread.join()
        self._opened.close()

    async def in_thread(self, function: Callable[[], T]) -> T:
        if not self._thread.is_alive():
            raise Unavailable("the database is closed")
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        self.calls.put((loop, function, partial(settle, done)))
        return await done

    def has_lost_files(self) -> bool:
        """Return whether a file was deleted or replaced since it was opened; log that once."""
        if not self.lost and (name := self.files.lost()):
            self.lost = f"{name} was deleted or replaced while in use"
            _LOG.critical("%s; changes are refused until the service has started again", self.lost)
        return bool(self.lost)

    async def rescue(self) -> str:
        """Bring the log to the database, even without a name; return why not all of it is there."""
        self.has_lost_files()
        return await self.in_thread(self._checkpoint)

    async def is_safe(self) -> bool:
        """Return whether what was committed stays, although a file has lost its name."""
        return not await self.rescue() and self.files.has_database()

    async def refusal(self) -> Unavailable:
        """Return why there are no more changes: ``LostFiles`` once the process may end."""
        reason = await self.rescue()
        if not self._path.exists():  # the next start would make an empty one
            return Unavailable(f"{self.lost}: put it back, or restart the service without it")
        if reason:
            return Unavailable(f"{self.lost}, and {reason}")
        return LostFiles(self.lost)

    def _checkpoint(self) -> str:
        """Empty the log, too: no process may take it for the log of another database."""
        ends = time.monotonic() + self.timeout / 2 / SECOND
        self.writer.set_busy_timeout(_READER_TIMEOUT)
        while True:
            try:
                self.writer.wal_checkpoint("main", apsw.SQLITE_CHECKPOINT_TRUNCATE)
                self.files.remove_foreign_log()
            except apsw.BusyError:  # or another process does it just now
                reason = f"{self.files.user()} still reads the old one: let it end, do not kill it"
            except OPERATIONAL_ERRORS as error:
                reason = f"it cannot be saved: {error}"
            else:
                return ""
            if time.monotonic() >= ends:
                return reason
            time.sleep(_RETRY_SECONDS)


def _make_each(calls: SimpleQueue[_Call | None]) -> None:
    for call in iter(calls.get, None):
        loop, function, take_outcome = call
        outcome: object
        try:
            outcome = function()
        except BaseException as error:  # noqa: BLE001 - its caller gets it
            outcome = error
        with suppress(RuntimeError):  # the loop was closed meanwhile
            loop.call_soon_threadsafe(take_outcome, outcome)
        # Or what it refers to stays in memory until the next one.
        del call, loop, function, take_outcome, outcome
