"""The files of a SQLite database in use: whether each name still stands for the file that is open.

The database's file has two beside it. What is committed goes to the write-ahead log (``-wal``)
first, and from there to the database in checkpoints. The index of that log (``-shm``) also has the
locks that keep processes from writing at the same time. As long as a process has the database open,
nobody removes either in good order.

https://www.sqlite.org/wal.html
"""

import os
from contextlib import suppress
from pathlib import Path

from petstore.errors import Unavailable

LOG, INDEX = "-wal", "-shm"


class OpenFiles:
    """The files of the database at ``path``, which a connection has just read.

    Raises:
        OSError: one of them is not there.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        # SQLite follows a link to the database before it names the others.
        beside = os.fspath(path.resolve())
        self.log, self.index = beside + LOG, beside + INDEX
        self._database = os.fspath(path)
        # Only of the log: closing a descriptor of another would drop the locks that SQLite has on
        # that file (POSIX, fcntl).
        self._log = os.open(self.log, os.O_RDONLY)
        self._log_link = f"/proc/self/fd/{self._log}"
        self._opened = self._identities()
        self._database_opened, self._log_opened, _ = self._opened
        self._are_suspect = False
        self.are_open = True

    def close(self) -> None:
        """Note that no connection has them open any more."""
        self.are_open, self._are_suspect = False, True
        os.close(self._log)

    def are_in_place(self) -> bool:
        """Tell whether every name stands for the file that is open."""
        try:
            self._are_suspect = not self.are_open or self._identities() != self._opened
        except OSError:
            self._are_suspect = True
        return not self._are_suspect

    def may_be_written(self) -> bool:
        """Tell the same without a look at the index, unless ``are_in_place`` found something."""
        if self._are_suspect or not self.log_is_in_place():
            return self.are_in_place()
        try:
            return _identity(self._database) == self._database_opened
        except OSError:
            return False

    def log_is_in_place(self) -> bool:
        """Tell whether the name of the log stands for the log that is open.

        Linux tells what name an open file has by now. That is no look at its times, which since
        Linux 6.13 makes the next write of the file slower.
        """
        with suppress(OSError):
            if os.readlink(self._log_link) == self.log:  # noqa: PTH115 - for each commit
                return True
        with suppress(OSError):  # not on Linux, or it was deleted
            return _identity(self.log) == self._log_opened
        return False

    def check_database(self) -> None:
        """Refuse a database file that was deleted or replaced: it is not to be had back from here.

        Raises:
            OSError: there is none of its name.
            Unavailable: there is another.
        """
        if _identity(self._database) != self._database_opened:
            msg = f"{self._path} was replaced while in use: restart the service"
            raise Unavailable(msg)

    def missing(self) -> list[str]:
        """Return the names of those beside the database that were deleted."""
        return [name for name in (self.log, self.index) if not os.path.lexists(name)]

    def check_log(self) -> None:
        """Refuse a log that lost its name and still has something in it.

        A checkpoint that truncated it has brought all of it into the database, whichever process
        made that checkpoint.

        Raises:
            Unavailable: there is something in it.
        """
        if not self.log_is_in_place() and os.fstat(self._log).st_size:
            msg = f"{self.log} was deleted or replaced while in use: restart the service"
            raise Unavailable(msg)

    def _identities(self) -> list[tuple[int, ...]]:
        return [_identity(name) for name in (self._database, self.log, self.index)]


def _identity(name: str) -> tuple[int, ...]:
    """Return inode and device."""
    return os.stat(name)[1:3]  # noqa: PTH116 - quicker than Path.stat, for each commit
