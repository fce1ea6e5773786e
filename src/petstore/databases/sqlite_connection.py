"""Connections to a SQLite file, and what SQLite's errors mean to the service."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from petstore.clock import Milliseconds
from petstore.errors import UnusableDatabase

FAULTS = (
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
    """Open an existing file, waiting up to ``timeout`` for the locks of other processes."""
    connection = apsw.Connection(str(file), flags=flags)
    connection.set_busy_timeout(timeout)
    return connection


@contextmanager
def unusable(path: Path, part: Path | None = None) -> Iterator[None]:
    """Turn every error of SQLite into ``UnusableDatabase``, which names the file at ``path``.

    With ``part``, to which it is copied, the message says when a disk is to blame.
    """
    try:
        yield
    except (apsw.Error, UnusableDatabase) as error:
        msg = f"{path}: {error}"
        if part is not None and isinstance(error, apsw.FullError | apsw.IOError):
            msg = f"{path} cannot be copied to {part}: a disk is full or failing"
        raise UnusableDatabase(msg) from error
