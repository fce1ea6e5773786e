"""The files of a SQLite database, and how the processes that use it keep the same ones.

SQLite keeps two files beside the database. Commits go to the write-ahead log (``-wal``) first;
checkpoints bring them to the database. The index of that log (``-shm``) also has the locks that
keep processes from writing at the same time (https://www.sqlite.org/wal.html). SQLite opens each by
its name. So if one is deleted while in use, the next process to open the database gets another
file, and no lock keeps it from writing where others write.
"""

import fcntl
import os
import re
import struct
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct

from petstore.clock import SECOND, Milliseconds
from petstore.databases.private_files import replacing, require_own, sync_names
from petstore.errors import Unavailable

LOG, INDEX = "-wal", "-shm"

SAVED = "-wal-saved"
"""A copy of a deleted log whose changes are not all in the database."""

DATABASE_LOCKS = (0x40000000, 512)
"""First byte and length of SQLite's locks on a database (from PENDING_BYTE).

Every process that has a database with a write-ahead log open has a lock on one of these bytes.
"""

# And one on this byte of the index (UNIX_SHM_DMS).
_INDEX_LOCK = (128, 1)
# struct flock, as Linux has it.
_FLOCK = "hhqqi0q"
_RETRY_SECONDS = 0.01
_CHUNK = 1024 * 1024

_Identity: TypeAlias = tuple[int, ...]
"""Inode and device; empty if there is no such file."""


class _Descriptor(Struct):
    """The descriptor of a database file that all its users in this process share.

    To close one of several would drop the locks that SQLite has on the file (POSIX, fcntl).
    """

    number: int
    users: int = 0


_descriptors: dict[_Identity, _Descriptor] = {}


class OpenFiles:
    """The files of the database at ``path``: made before SQLite opens them, closed after it has.

    A deleted or replaced file leaves a name of another file, or of none.

    Raises:
        OSError: the database cannot be opened.
        Unavailable: another user has put it there, or may change it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._database = os.fspath(path)
        self._descriptor = _open(path)  # first: it refuses a link to itself
        self.log, self.index = (os.fspath(_beside(path, ending)) for ending in (LOG, INDEX))
        self._saved = _beside(path, SAVED)
        self._copied: tuple[int, int] | None = None
        self._database_opened = _identity_of(os.fstat(self._descriptor.number))
        self._log = -1
        self._opened: list[_Identity] = []
        self._are_suspect = False
        self.are_open = True

    @contextmanager
    def opening(self, timeout: Milliseconds) -> Iterator[None]:
        """Let SQLite open the files in this block: those that others have open, if any have.

        Raises:
            Unavailable: others have a file open that was deleted; or another process is opening it;
                or a deleted log was saved beside it.
        """
        self._lock(timeout, self._obstacle)
        are_shared = self._is_shared()
        before = self._identities()
        try:
            if self._saved.exists():
                raise Unavailable(self.way_on())
            self._require_own()
            yield
            self._require_own()
            self._opened = self._identities()
            # Who closes the database last deletes the files beside it.
            are_shared = are_shared and self._is_shared()
            if are_shared and self._opened != before:
                msg = f"{self._path}: a file beside it was deleted while it was opened"
                raise Unavailable(msg)
            self._note_log()
        finally:
            if are_shared and _identity(self.log) != before[1]:
                # SQLite has just made it, and nobody may take it for the log of the others.
                Path(self.log).unlink(missing_ok=True)
            fcntl.flock(self._descriptor.number, fcntl.LOCK_UN)

    def close(self) -> None:
        """Note that no connection has them open anymore."""
        self.are_open, self._are_suspect = False, True
        if self._log >= 0:
            os.close(self._log)
        _close(self._descriptor)

    def save_log(
        self, timeout: Milliseconds, checkpoint: Callable[[], bool], *, is_last: bool = False
    ) -> bool:
        """Keep a copy of the deleted log for as long as ``checkpoint`` returns that it is needed.

        Whoever commits to the log afterwards finds that it was deleted, and makes a new copy. A
        process that ends (``is_last``) makes one even if another process has the lock.

        Raises:
            Unavailable: another process opens the files or saves the log.
            OSError: the copy cannot be written.
        """
        try:
            self._lock(timeout, lambda: "")
        except Unavailable:
            if not is_last:
                raise
            self._copy_log()
            return False
        try:
            is_in_database = checkpoint()
            if is_in_database:
                self._remove_copy()
            else:
                self._copy_log()
            return is_in_database
        finally:
            fcntl.flock(self._descriptor.number, fcntl.LOCK_UN)

    def _remove_copy(self) -> None:
        if self._saved.exists():
            self._saved.unlink()
            # If it came back after a power cut, it would be older than the database.
            sync_names(self._saved.parent)

    def _copy_log(self) -> None:
        status = os.fstat(self._log)
        found = (status.st_size, status.st_mtime_ns)
        if found == self._copied and self._saved.exists():
            return
        with replacing(self._saved) as file:
            offset = 0
            while chunk := os.pread(self._log, _CHUNK, offset):
                file.write(chunk)
                offset += len(chunk)
            file.flush()
            os.fsync(file.fileno())
        sync_names(self._saved.parent)
        self._copied = found

    def _lock(self, timeout: Milliseconds, find_obstacle: Callable[[], str]) -> None:
        """Wait until no other process opens the files, and there is no obstacle."""
        deadline = time.monotonic() + timeout / SECOND
        while True:
            if has_lock(self._descriptor.number):
                obstacle = find_obstacle()
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
        """Return whether another process has a log open."""
        return self.is_in_wal_mode and self._user() is not None

    def _user(self) -> int | None:
        return _locked_by(self._descriptor.number, DATABASE_LOCKS)

    def _obstacle(self) -> str:
        """Say why nobody may open the files now: by another name, others have old ones open."""
        if self._descriptor.users > 1:
            return ""
        user, index_user = self._user(), self._index_user()
        if user is None and index_user is not None:
            return f"{self._path} was replaced while {process_text(index_user)} uses the old file"
        if user is None or not self.is_in_wal_mode:
            return ""
        gone = [] if Path(self.log).exists() else [self.log]
        gone += [] if index_user is not None else [self.index]
        if gone:
            return _kept(gone, list(map(process_text, self._holders() or [user])))
        if self._saved.exists():
            return self.way_on(f" ({process_text(user)} still does)")
        return ""

    def way_on(self, still_used: str = "") -> str:
        """Say what to do with a saved log."""
        return (
            f"{self._saved} has confirmed changes that are not in {self._path}. Once no process"
            f" uses the database{still_used}, rename it to {self.log}, and start again"
        )

    def _index_user(self) -> int | None:
        try:
            _require_own(Path(self.index))  # a link has a message of its own
            descriptor = os.open(self.index, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except FileNotFoundError:
            return None
        try:
            return _locked_by(descriptor, _INDEX_LOCK)
        finally:
            os.close(descriptor)

    def _require_own(self) -> None:
        """Refuse files beside the database that another user has put there, or may change."""
        for name in (self.log, self.index):
            with suppress(FileNotFoundError):
                _require_own(Path(name))

    def _note_log(self) -> None:
        with suppress(FileNotFoundError):  # a database may have none yet
            self._log = os.open(self.log, os.O_RDONLY | os.O_NOFOLLOW)
            self._log_link = f"/proc/self/fd/{self._log}"

    def are_in_place(self) -> bool:
        """Return whether every name is that of the open file."""
        self._are_suspect = not self.are_open or self._identities() != self._opened
        return not self._are_suspect

    def may_be_written(self) -> bool:
        """Tell the same without checking the index, unless ``are_in_place`` found a difference.

        All processes that have a deleted index open still share it: it may be noticed later.
        """
        if self._are_suspect or not self.log_is_in_place():
            return self.are_in_place()
        return _identity(self._database) == self._database_opened

    def log_is_in_place(self) -> bool:
        """Return whether the name of the log is that of the open log.

        On Linux we read the current name of the open file. A ``stat`` would read its times too,
        which since Linux 6.13 makes the next write of the file slower.
        """
        with suppress(OSError):
            if os.readlink(self._log_link) == self.log:  # noqa: PTH115 - for each commit
                return True
        # Not on Linux, or it was deleted.
        return _identity(self.log) == self._opened[1] != ()

    def sync_log(self) -> None:
        """Return once what was committed to the log is on disk."""
        os.fsync(self._log)

    def check_database(self) -> None:
        """Refuse a database file that was deleted or replaced (``Unavailable``)."""
        found = _identity(self._database)
        if found != self._database_opened:
            what = "replaced while in use: restart the service" if found else "deleted while in use"
            msg = f"{self._path} was {what}"
            raise Unavailable(msg)

    def check_log(self) -> None:
        """Refuse a log whose name is that of another file: somebody may have written to that."""
        if _identity(self.log) not in {self._opened[1], ()}:
            msg = f"{self.log} was replaced while in use: restart the service"
            raise Unavailable(msg)

    def missing(self) -> list[str]:
        """Return the names of the deleted files beside the database."""
        return [name for name in (self.log, self.index) if not os.path.lexists(name)]

    def kept(self) -> str:
        """Say which files were deleted, and which other processes have the database open."""
        return _kept(self.missing(), [process_text(pid) for pid in self._holders()])

    def _holders(self) -> list[int]:
        """Return the other processes that have the database open, but those of other containers.

        ``/proc/locks`` has lines like ``7: POSIX ADVISORY READ 4711 08:01:12345 1073741826 …``.
        """
        inode, first = self._database_opened[0], DATABASE_LOCKS[0]
        pattern = rf" ([1-9]\d*) \S+:{inode} {first + 2} "
        locks = Path("/proc/locks")
        found = re.findall(pattern, locks.read_text() if locks.exists() else "")
        return sorted({int(pid) for pid in found} - {os.getpid()})

    def _identities(self) -> list[_Identity]:
        return [_identity(name) for name in (self._database, self.log, self.index)]


def _open(path: Path) -> _Descriptor:
    """Return the descriptor of a database file, a new one if this process has none."""
    descriptor = _descriptors.get(_identity(os.fspath(path)))
    if descriptor is None:
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # a pipe would block
        try:
            _require_own(path, os.fstat(number))
        except (OSError, Unavailable):
            os.close(number)
            raise
        descriptor = _descriptors[_identity_of(os.fstat(number))] = _Descriptor(number)
    descriptor.users += 1
    return descriptor


def _require_own(path: Path, opened: os.stat_result | None = None) -> None:
    """Refuse a file that another user has put there, or may change, and name it."""
    try:
        require_own(path, opened)
    except PermissionError as error:
        msg = f"{path}: {error}"
        raise Unavailable(msg) from error


def _close(descriptor: _Descriptor) -> None:
    descriptor.users -= 1
    if not descriptor.users:
        del _descriptors[_identity_of(os.fstat(descriptor.number))]
        os.close(descriptor.number)


def _identity(name: str) -> _Identity:
    try:
        return _identity_of(os.stat(name))  # noqa: PTH116 - quicker than Path.stat, for each commit
    except OSError:
        return ()


def _identity_of(status: os.stat_result) -> _Identity:
    return status[1:3]


def has_lock(descriptor: int) -> bool:
    """Return whether this process has the lock of a file or a folder now, without waiting."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _locked_by(descriptor: int, lock: tuple[int, int]) -> int | None:
    """Return the id of another process that has a lock on these bytes; 0 of another container."""
    if sys.platform == "linux":  # pragma: no branch - the layout of flock is that of Linux
        wanted = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, *lock, 0)
        kind, *_, pid = struct.unpack(_FLOCK, fcntl.fcntl(descriptor, fcntl.F_GETLK, wanted))
        if kind != fcntl.F_UNLCK:
            return int(pid)
    return None


def process_text(pid: int) -> str:
    """Return the id and the program of a process."""
    if not pid:
        return "a process of another container"
    try:
        return f"process {pid} ({Path(f'/proc/{pid}/comm').read_text().strip()})"
    except OSError:  # it has ended, or this is not Linux
        return f"process {pid}"


def _kept(names: list[str], processes: list[str]) -> str:
    """Say which deleted files are in use by which other processes."""
    message = f"{', '.join(names) or 'files beside the database'}: deleted while in use"
    if processes:
        verb = "uses" if len(processes) == 1 else "use"
        message += f", and {' and '.join(processes)} still {verb} the old one"
    return message


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
