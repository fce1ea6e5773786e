"""The files of a SQLite database, and how the processes that use it keep the same ones.

SQLite keeps two files beside the database. Commits go to the write-ahead log (``-wal``) first;
checkpoints bring them to the database. The index of that log (``-shm``) also has the locks that
keep processes from writing at the same time (https://www.sqlite.org/wal.html). SQLite opens each by
its name. So if one is deleted while in use, the next process to open the database gets another
file, and no lock keeps it from writing where others write. Therefore a process opens files only if
no other one has the database open, or if they are the ones that the others have open.
"""

import fcntl
import os
import struct
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct

from petstore.clock import SECOND, Milliseconds
from petstore.databases.private_files import require_private
from petstore.errors import Unavailable

LOG, INDEX = "-wal", "-shm"

DATABASE_LOCKS = (0x40000000, 512)
"""First byte and length of SQLite's locks on a database (from PENDING_BYTE).

Every process that has a database with a write-ahead log open has a lock on one of these bytes.
"""

# And one on this byte of the index (UNIX_SHM_DMS).
_INDEX_LOCK = (128, 1)
# struct flock, as Linux has it.
_FLOCK = "hhqqi0q"
_RETRY_SECONDS = 0.01

_Identity: TypeAlias = tuple[int, ...]  # inode and device; empty if there is no such file


class _Descriptor(Struct):
    """The descriptor of a database file that all its users in this process share.

    To close one of several would drop the locks that SQLite has on the file (POSIX, fcntl).
    """

    number: int
    users: int = 0


_descriptors: dict[_Identity, _Descriptor] = {}


class OpenFiles:
    """The files of the database at ``path``: made before SQLite opens them, closed after it has."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.log, self.index = (os.fspath(beside(path, ending)) for ending in (LOG, INDEX))
        self.database = os.fspath(path)
        self._descriptor = _open(path)
        self._opened: list[_Identity] = []

    @contextmanager
    def opening(self, timeout: Milliseconds) -> Iterator[None]:
        self._lock(timeout)
        are_shared = self._is_shared()
        before = self._identities()
        try:
            yield
            self._opened = self._identities()
            # Who closes the database last deletes the files beside it.
            are_shared = are_shared and self._is_shared()
            if are_shared and self._opened != before:
                raise Unavailable(f"{self._path}: a file beside it was deleted while it was opened")
        finally:
            if are_shared and _identity(self.log) != before[1]:
                # SQLite has just made it, and no process may take it for the log of the others.
                Path(self.log).unlink(missing_ok=True)
            fcntl.flock(self._descriptor.number, fcntl.LOCK_UN)

    def close(self) -> None:
        self._descriptor.users -= 1
        if not self._descriptor.users:
            del _descriptors[_identity_of(os.fstat(self._descriptor.number))]
            os.close(self._descriptor.number)

    def lost(self) -> str:
        names = self.database, self.log, self.index
        found = zip(names, self._identities(), self._opened, strict=True)
        return next((name for name, now, opened in found if now != opened), "")

    def has_database(self) -> bool:
        return _identity(self.database) == self._opened[0]

    def remove_foreign_log(self) -> None:
        """Remove a file that took the name of the log: the next process would replay it."""
        if self.has_database() and _identity(self.log) not in ((), self._opened[1]):
            Path(self.log).unlink(missing_ok=True)

    def user(self) -> str:
        """Say which other process has the database open, if any."""
        user = self._user()
        return "no other program" if user is None else process_text(user)

    def _lock(self, timeout: Milliseconds) -> None:
        deadline = time.monotonic() + timeout / SECOND
        while True:
            if has_lock(self._descriptor.number):
                obstacle = self._obstacle()
                if not obstacle:
                    return
                fcntl.flock(self._descriptor.number, fcntl.LOCK_UN)
            else:
                obstacle = f"{self._path}: another process is opening it"
            if time.monotonic() >= deadline:
                raise Unavailable(obstacle)
            time.sleep(_RETRY_SECONDS)

    @property
    def is_in_wal_mode(self) -> bool:
        """Whether the database has a log in use: not while it is being made, nor in a backup."""
        # Its write version (https://www.sqlite.org/fileformat.html).
        return os.pread(self._descriptor.number, 1, 18) == b"\2"

    def _is_shared(self) -> bool:
        return self.is_in_wal_mode and self._user() is not None

    def _user(self) -> int | None:
        return _locked_by(self._descriptor.number, DATABASE_LOCKS)

    def _obstacle(self) -> str:
        """Say why no process may open the files now: by another name, others have old ones open."""
        if self._descriptor.users > 1:
            return ""
        user, index_user = self._user(), self._index_user()
        if user is None and index_user is not None:
            return f"{self._path} was replaced while {process_text(index_user)} uses the old file"
        if user is None or not self.is_in_wal_mode:
            return ""
        gone = [] if Path(self.log).exists() else [self.log]
        gone += [] if index_user is not None else [self.index]
        if not gone:
            return ""
        names = ", ".join(gone)
        return f"{names}: deleted while in use, and {process_text(user)} still uses the old one"

    def _index_user(self) -> int | None:
        try:
            descriptor = os.open(self.index, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except FileNotFoundError:
            return None
        try:
            return _locked_by(descriptor, _INDEX_LOCK)
        finally:
            os.close(descriptor)

    def _identities(self) -> list[_Identity]:
        return [_identity(name) for name in (self.database, self.log, self.index)]


def _open(path: Path) -> _Descriptor:
    descriptor = _descriptors.get(_identity(os.fspath(path)))
    if descriptor is None:
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # a pipe would block
        try:
            require_private(path, os.fstat(number))
        except PermissionError as error:
            os.close(number)
            raise Unavailable(f"{path}: {error}") from error
        descriptor = _descriptors[_identity_of(os.fstat(number))] = _Descriptor(number)
    descriptor.users += 1
    return descriptor


def _identity(name: str) -> _Identity:
    try:
        return _identity_of(os.stat(name))  # noqa: PTH116 - quicker than Path.stat, for each commit
    except OSError:
        return ()


def _identity_of(status: os.stat_result) -> _Identity:
    return status[1:3]


def has_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _locked_by(descriptor: int, lock: tuple[int, int]) -> int | None:
    """Return the id of another process that has a lock on these bytes; 0 of another container."""
    if sys.platform == "linux":  # pragma: no branch - flock has the layout of Linux
        wanted = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, *lock, 0)
        kind, *_, pid = struct.unpack(_FLOCK, fcntl.fcntl(descriptor, fcntl.F_GETLK, wanted))
        if kind != fcntl.F_UNLCK:
            return int(pid)
    return None


def process_text(pid: int) -> str:
    try:
        return f"process {pid} ({Path(f'/proc/{pid}/comm').read_text().strip()})"
    except OSError:  # it has ended, or is one of another container
        return f"process {pid}" if pid else "a process of another container"


def database_bytes(database: Path) -> int:
    log = beside(database, LOG)
    return database.stat().st_size + (log.stat().st_size if log.exists() else 0)


def beside(database: Path, ending: str) -> Path:
    """Return the name of a file beside the database: SQLite, too, follows a link first."""
    path = Path(os.path.realpath(database))  # of a link to itself, too
    return path.with_name(path.name + ending)
