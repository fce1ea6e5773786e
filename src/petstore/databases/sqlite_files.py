"""The files of a SQLite database: their names, sizes, and the time of the last backup.

SQLite keeps two files beside the database. Commits go to the write-ahead log (``-wal``) first;
checkpoints bring them to the database. The index of that log (``-shm``) also has the locks that
keep processes from writing at the same time. No process removes either in good order while another
has the database open (https://www.sqlite.org/wal.html).
"""

import os
from contextlib import suppress
from pathlib import Path

from petstore.databases.private_files import replacing
from petstore.errors import Unavailable

LOG, INDEX = "-wal", "-shm"


class OpenFiles:
    """The open files of the database at ``path``, which a connection has just read.

    A deleted or replaced file leaves a name of another file, or of none.

    Raises:
        OSError: one of them does not exist.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.log, self.index = (os.fspath(_beside(path, ending)) for ending in (LOG, INDEX))
        self._database = os.fspath(path)
        # Of the log only: closing a descriptor of the others would drop SQLite's locks on them
        # (POSIX, fcntl).
        self._log = os.open(self.log, os.O_RDONLY)
        self._log_link = f"/proc/self/fd/{self._log}"
        self._opened = self._identities()
        self._database_opened, self._log_opened, _ = self._opened
        self._are_suspect = False
        self.are_open = True

    def close(self) -> None:
        """Note that no connection has them open anymore."""
        self.are_open, self._are_suspect = False, True
        os.close(self._log)

    def are_in_place(self) -> bool:
        """Return whether every name is that of the open file."""
        try:
            self._are_suspect = not self.are_open or self._identities() != self._opened
        except OSError:
            self._are_suspect = True
        return not self._are_suspect

    def may_be_written(self) -> bool:
        """Tell the same without checking the index, unless ``are_in_place`` found a difference."""
        if self._are_suspect or not self.log_is_in_place():
            return self.are_in_place()
        try:
            return _identity(self._database) == self._database_opened
        except OSError:
            return False

    def log_is_in_place(self) -> bool:
        """Return whether the name of the log is that of the open log.

        On Linux we read the current name of the open file. A ``stat`` would read its times too,
        which since Linux 6.13 makes the next write of the file slower.
        """
        with suppress(OSError):
            if os.readlink(self._log_link) == self.log:  # noqa: PTH115 - for each commit
                return True
        with suppress(OSError):  # not on Linux, or it was deleted
            return _identity(self.log) == self._log_opened
        return False

    def check_database(self) -> None:
        """Refuse a database file that was deleted (``OSError``) or replaced (``Unavailable``)."""
        if _identity(self._database) != self._database_opened:
            msg = f"{self._path} was replaced while in use: restart the service"
            raise Unavailable(msg)

    def missing(self) -> list[str]:
        """Return the names of the deleted files beside the database."""
        return [name for name in (self.log, self.index) if not os.path.lexists(name)]

    def check_log(self) -> None:
        """Refuse a log that lost its name, unless a checkpoint has saved all of it."""
        if not self.log_is_in_place() and os.fstat(self._log).st_size:
            msg = f"{self.log} was deleted or replaced while in use: restart the service"
            raise Unavailable(msg)

    def _identities(self) -> list[tuple[int, ...]]:
        return [_identity(name) for name in (self._database, self.log, self.index)]


def _identity(name: str) -> tuple[int, ...]:
    """Return inode and device."""
    return os.stat(name)[1:3]  # noqa: PTH116 - quicker than Path.stat, for each commit


def database_bytes(database: Path) -> int:
    """Return the size of the file and of the log beside it."""
    log = _beside(database, LOG)
    return database.stat().st_size + (log.stat().st_size if log.exists() else 0)


def note_backup(database: Path, began: float) -> None:
    """Note beside the file that a good backup of it ``began``, in seconds since the epoch.

    The note is the time of an empty file, so any user who makes backups can ``touch`` it.

    Raises:
        Conflict: another process notes a backup at this moment.
        OSError: it cannot be noted.
    """
    with replacing(note_of(database)) as file:
        os.utime(file.fileno(), (began, began))


def last_backup(database: Path) -> float:
    """Return when the last successful backup began, in Unix seconds; 0 if none is known."""
    try:
        return note_of(database).stat().st_mtime
    except FileNotFoundError:
        return 0


def note_of(database: Path) -> Path:
    """Return the file with the time of the last successful backup."""
    return _beside(database, ".last-backup")


def _beside(database: Path, ending: str) -> Path:
    """Return the name of a file beside the database: SQLite, too, follows a link first."""
    path = database.resolve()
    return path.with_name(path.name + ending)
