"""Connections to a SQLite file, and what SQLite's errors mean to the service."""

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

import apsw

from petstore.clock import SECOND, Milliseconds
from petstore.databases.private_files import obstacle
from petstore.databases.sqlite_files import OpenFiles, has_lock
from petstore.errors import UnfinishedChange, UnusableDatabase

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


def connect(
    file: Path | str, timeout: Milliseconds, flags: int = apsw.SQLITE_OPEN_READWRITE
) -> apsw.Connection:
    """Open an existing file, waiting up to ``timeout`` for the locks of other processes.

    Only ``OpenFiles`` makes that safe for a database that others use (see ``connected``).
    """
    connection = apsw.Connection(str(file), flags=flags)
    connection.set_busy_timeout(timeout)
    return connection


@contextmanager
def connected(path: Path, timeout: Milliseconds) -> Iterator[apsw.Connection]:
    """Give a connection to the database at ``path``, beside the processes that have it open.

    Raises:
        apsw.Error: it cannot be opened.
        Unavailable: another user may change it, or others use files of it that were deleted.
    """
    require_writable(path)
    with files_of(path) as files, ExitStack() as opened:
        with files.opening(timeout):
            connection = opened.enter_context(closing(connect(path, timeout)))
            connection.pragma("schema_version")  # SQLite opens the log only to read it
        yield connection


@contextmanager
def read_only(path: Path, timeout: Milliseconds) -> Iterator[apsw.Connection]:
    """Give a connection that changes nothing but SQLite's index of an existing log.

    It raises what ``connected`` does, and ``apsw.ReadOnlyError`` if a killed process has left a
    change that must be undone first.
    """
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    with files_of(path) as files, files.opening(timeout):
        # Without a log, nobody uses the file. To read it, SQLite would make a log that a reader
        # cannot delete, if not "immutable". That takes no lock, so nobody else may open the file.
        is_alone = files.is_in_wal_mode and not Path(files.log).exists()
        query = "immutable=1" if is_alone else "mode=ro"
        uri = f"{path.resolve().as_uri()}?{query}"
        with closing(connect(uri, timeout, flags)) as connection:
            connection.pragma("schema_version")  # SQLite opens the log only to read it
            yield connection


@contextmanager
def reading(path: Path, timeout: Milliseconds) -> Iterator[apsw.Connection]:
    """Give a connection to read the database at ``path``, perhaps on a read-only file system."""
    connecting = read_only if why_read_only(path) else connected
    with connecting(path, timeout) as connection:
        yield connection


def why_read_only(path: Path) -> str:
    """Return why no file beside the database at ``path`` can be written, or nothing."""
    with suppress(OSError):  # there is no such folder
        if os.statvfs(path.resolve().parent).f_flag & os.ST_RDONLY:
            return "its file system is read-only"
    return ""


def require_writable(path: Path) -> None:
    """Raise ``apsw.ReadOnlyError`` with a reason: SQLite has none if it cannot create a log."""
    if reason := why_read_only(path):
        raise apsw.ReadOnlyError(reason)


@contextmanager
def files_of(path: Path) -> Iterator[OpenFiles]:
    """Give the files of the database at ``path``; raise ``apsw.CantOpenError`` if that fails."""
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
    """Turn every error of SQLite into ``UnusableDatabase``, which names the file at ``path``.

    With ``part``, to which it is copied, the message says when a disk is to blame.
    """
    try:
        yield
    except (apsw.Error, UnusableDatabase) as error:
        msg = f"{path}: {error}"
        if getattr(error, "extendedresult", 0) == apsw.SQLITE_READONLY_ROLLBACK:
            msg = f"{path}: a process was killed while it changed it; `petstore serve` undoes that"
            raise UnfinishedChange(msg) from error
        if part is not None and isinstance(error, apsw.FullError | apsw.IOError):
            msg = f"{path} cannot be copied to {part}: a disk is full or failing"
        raise UnusableDatabase(msg) from error
