"""What a SQLite file takes up on its disk, and when it was last backed up."""

import os
from pathlib import Path

from petstore.databases.private_files import replacing


def database_bytes(database: Path) -> int:
    """Return the size of the file and of the log beside it.

    Raises:
        OSError: the file is not there.
    """
    log = _beside(database, "-wal")
    return database.stat().st_size + (log.stat().st_size if log.exists() else 0)


def disk_bytes(database: Path) -> int:
    """Return the size of the disk that the file is on.

    Raises:
        OSError: its folder is not there.
    """
    disk = os.statvfs(database.resolve().parent)
    return disk.f_frsize * disk.f_blocks


def free_bytes(database: Path) -> int:
    """Return how much more fits on the disk that the file is on.

    Raises:
        OSError: its folder is not there.
    """
    disk = os.statvfs(database.resolve().parent)
    return disk.f_frsize * disk.f_bavail


def note_backup(database: Path, began: float) -> None:
    """Note beside the file that a good backup of it ``began``, in seconds since the epoch.

    It is the time of an empty file. Whoever makes backups, even a user whose files the service may
    not read, can note it by ``touch``.

    Raises:
        Conflict: another backup is noted at this moment.
        OSError: it cannot be noted.
    """
    with replacing(note_of(database)) as file:
        os.utime(file.fileno(), (began, began))


def last_backup(database: Path) -> float:
    """Return when the last good backup began, in seconds since the epoch; 0 if none is known."""
    try:
        return note_of(database).stat().st_mtime
    except FileNotFoundError:
        return 0


def note_of(database: Path) -> Path:
    """Return the file whose time is that of the last good backup."""
    return _beside(database, ".last-backup")


def _beside(database: Path, ending: str) -> Path:
    """Return the name of a file beside the database, where SQLite too would have it."""
    path = database.resolve()
    return path.with_name(path.name + ending)
