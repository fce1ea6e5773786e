"""Backups of a SQLite file: made while it is in use, and restored in its place."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import apsw

from petstore.databases.contract import OnProgress
from petstore.databases.migrations import APPLICATION_ID
from petstore.databases.migrations.sqlite import inspect, migrate
from petstore.databases.private_files import part_of, replacing, sync_names
from petstore.databases.sqlite_connection import connect, connected, reading, unusable
from petstore.databases.sqlite_files import DATABASE_LOCKS, INDEX, LOG, beside
from petstore.errors import Conflict, Unavailable, UnusableDatabase

_PAGES_AT_ONCE = 1000
_TIMEOUT = 10_000


def back_up(database: Path, backup: Path, on_progress: OnProgress) -> None:
    """Write what is in ``database`` now to the file ``backup``, while others use it."""
    # A link is replaced: another user may have put it there.
    path = backup.parent.resolve() / backup.name
    _replace(path, database, on_progress, as_newest=False)


def restore(backup: Path, database: Path, on_progress: OnProgress) -> None:
    path = database.resolve()
    if path.is_file():
        _checkpoint(path)
    _replace(path, backup, on_progress, as_newest=True)


def _checkpoint(path: Path) -> None:
    """Bring to ``path`` what a killed service has left in its log, which is removed later.

    A restore that fails then leaves every change. What is damaged or in use stays as it is.
    """
    faults = apsw.CorruptError, apsw.NotADBError, apsw.BusyError, Unavailable
    with unusable(path), suppress(*faults), connected(path, _TIMEOUT) as connection:
        connection.wal_checkpoint("main", apsw.SQLITE_CHECKPOINT_TRUNCATE)


def _replace(path: Path, source: Path, on_progress: OnProgress, *, as_newest: bool) -> None:
    part = part_of(path)
    if source.resolve() == path.resolve():
        raise Conflict(f"{source} is the database itself; expected another file")
    if source.resolve() == part:
        raise Conflict(f"{source} has the name of the temporary copy; rename it first")
    with _unused(path):
        with replacing(path) as file:
            with unusable(source, part):
                _copy(source, part, on_progress, as_newest=as_newest)
            os.fsync(file.fileno())
            # SQLite would take an old log for the new file's.
            for ending in (LOG, INDEX, "-journal"):
                path.with_name(path.name + ending).unlink(missing_ok=True)
            sync_names(path.parent)
        sync_names(path.parent)


def _copy(source: Path, part: Path, on_progress: OnProgress, *, as_newest: bool) -> None:
    with closing(connect(part, 0)) as writing:
        with reading(source, _TIMEOUT) as original:
            _copy_pages(original, writing, on_progress)
        # One file, without a log beside it.
        writing.pragma("journal_mode", "delete")
        found = writing.execute("PRAGMA integrity_check(1)").get
        if found != "ok":
            raise UnusableDatabase(f"it is damaged: {found}")
        inspect(writing)
        for table, _, other, _ in writing.execute("PRAGMA foreign_key_check"):
            msg = f"it is damaged: a row of {table} refers to one of {other} that does not exist"
            raise UnusableDatabase(msg)
        if as_newest:
            migrate(writing)


def _copy_pages(
    original: apsw.Connection, writing: apsw.Connection, on_progress: OnProgress
) -> None:
    original.execute("BEGIN")
    if original.pragma("application_id") != APPLICATION_ID:
        raise UnusableDatabase("it contains no petstore store")
    with writing.backup("main", original, "main") as copying:
        while not copying.done:
            copying.step(_PAGES_AT_ONCE)
            on_progress(copying.page_count - copying.remaining, copying.page_count)
    original.execute("ROLLBACK")


@contextmanager
def _unused(path: Path) -> Iterator[None]:
    """Lock the database as SQLite does, without it: the file may be damaged."""
    if path.exists() and not path.is_file():
        raise Conflict(f"{path}: expected a file, found a folder, pipe or device")
    try:
        file = path.open("r+b")
    except FileNotFoundError:
        yield
        return
    start, length = DATABASE_LOCKS
    with file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, length, start)
        except OSError as error:
            raise Conflict(f"{path} is in use: first stop the program that uses it") from error
        yield


def note_backup(database: Path, began: float) -> None:
    with replacing(note_of(database)) as file:
        os.utime(file.fileno(), (began, began))


def last_backup(database: Path) -> float:
    try:
        return note_of(database).stat().st_mtime
    except FileNotFoundError:
        return 0


def note_of(database: Path) -> Path:
    return beside(database, ".last-backup")
