"""Copies of a SQLite file: made while it is in use, and put in its place."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import apsw

from petstore.databases.migrations import (
    APPLICATION_ID,
    UnusableDatabase,
    check_schema,
    migrate,
)
from petstore.databases.private_files import part_of, replacing
from petstore.errors import Conflict

OnProgress: TypeAlias = Callable[[int, int], object]
"""Takes how many pages of the file were copied, and how many it has."""

_PAGES_AT_ONCE = 1000
_WAIT = 10_000
# The bytes of a database that SQLite's locks are on (PENDING_BYTE and those after it). Whoever has
# a file with a write-ahead log open holds one of them for as long.
_LOCKS_START, _LOCKS_LENGTH = 0x40000000, 512


def back_up(database: Path, backup: Path, on_progress: OnProgress) -> None:
    """Write what is in ``database`` now to the file ``backup``, while others read and write.

    Raises:
        UnusableDatabase: it is damaged, or no store, or locked; or there is no room for the copy.
        Conflict: ``backup`` is a database in use, or ``database`` itself.
        OSError: a file cannot be written.
    """
    # A link is replaced: somebody else may have put it there.
    path = backup.parent.resolve() / backup.name
    _replace(path, database, on_progress, as_newest=False)


def restore(backup: Path, database: Path, on_progress: OnProgress) -> None:
    """Put what is in ``backup`` in the place of ``database``, brought up to date.

    Raises:
        UnusableDatabase: it is damaged, or no store, or of a newer version; or there is no room.
        Conflict: ``database`` is in use, or ``backup`` itself.
        OSError: a file cannot be written.
    """
    _replace(database.resolve(), backup, on_progress, as_newest=True)


def _replace(path: Path, source: Path, on_progress: OnProgress, *, as_newest: bool) -> None:
    """Put a copy of ``source`` in the place of ``path``, once it is whole, sound and on disk."""
    part = part_of(path)
    if source.resolve() == path.resolve():
        msg = f"{source} is the database itself; expected another file"
        raise Conflict(msg)
    if source.resolve() == part:
        msg = f"{source} is where the copy is made; rename it first"
        raise Conflict(msg)
    with _unused(path):
        with replacing(path) as file:
            with _faults(source, part):
                _copy(source, part, on_progress, as_newest=as_newest)
            os.fsync(file.fileno())
            # A log that was left behind would be taken for that of the new file.
            for ending in ("-wal", "-shm", "-journal"):
                path.with_name(path.name + ending).unlink(missing_ok=True)
            _sync_names(path.parent)
        _sync_names(path.parent)


def _copy(source: Path, part: Path, on_progress: OnProgress, *, as_newest: bool) -> None:
    with _opened(part) as writing:
        with _opened(source) as reading:
            _copy_pages(reading, writing, on_progress)
        # A file alone, without a log beside it.
        writing.pragma("journal_mode", "delete")
        found = writing.execute("PRAGMA integrity_check(1)").get
        if found != "ok":
            msg = f"it is damaged: {found}"
            raise UnusableDatabase(msg)
        check_schema(writing)
        for table, _, other, _ in writing.execute("PRAGMA foreign_key_check"):
            msg = f"it is damaged: a row of {table} refers to one of {other} that is not there"
            raise UnusableDatabase(msg)
        if as_newest:
            migrate(writing)


def _copy_pages(
    reading: apsw.Connection, writing: apsw.Connection, on_progress: OnProgress
) -> None:
    """Copy a store as it is at one moment.

    The transaction ends with the copy, before the copy is checked: as long as it lasts, the log of
    a store in use only grows.
    """
    reading.set_busy_timeout(_WAIT)
    # Within one transaction what is read stays the same, however much is written meanwhile.
    reading.execute("BEGIN")
    if reading.pragma("application_id") != APPLICATION_ID:
        msg = "there is no store of petstore in it"
        raise UnusableDatabase(msg)
    with writing.backup("main", reading, "main") as copying:
        while not copying.done:
            copying.step(_PAGES_AT_ONCE)
            on_progress(copying.page_count - copying.remaining, copying.page_count)
    reading.execute("ROLLBACK")


@contextmanager
def _opened(path: Path) -> Iterator[apsw.Connection]:
    """Open a file that is there."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        yield connection
    finally:
        connection.close()


@contextmanager
def _unused(path: Path) -> Iterator[None]:
    """Keep everybody else off the database ``path``, if it is there.

    By SQLite's own locks, without opening it by SQLite: it may be damaged.

    Raises:
        Conflict: somebody has it open.
    """
    try:
        file = path.open("r+b")
    except FileNotFoundError:
        yield
        return
    with file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, _LOCKS_LENGTH, _LOCKS_START)
        except OSError as error:
            msg = f"{path} is in use: stop what uses it first"
            raise Conflict(msg) from error
        yield


def _sync_names(folder: Path) -> None:
    """Let the disk confirm the names in a folder."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


@contextmanager
def _faults(source: Path, part: Path) -> Iterator[None]:
    try:
        yield
    except (apsw.FullError, apsw.IOError) as error:
        msg = f"{source} cannot be copied to {part}: a disk is full or failing"
        raise UnusableDatabase(msg) from error
    except (apsw.Error, UnusableDatabase) as error:
        msg = f"{source}: {error}"
        raise UnusableDatabase(msg) from error
