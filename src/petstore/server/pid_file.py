"""The file by which ``petstore reload`` finds a service, and learns when a reload has ended.

It has a line each for the id of the main process, the number of the last reload that was asked for,
the number of the last that ended, and what failed in that one. A lock is held on it as long as a
process of the service lives, so a file that was left behind is never taken for a service.
"""

import fcntl
import os
import re
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

_LARGEST = 4096
# Nothing, an id alone as other programs write it, or the lines; of a service that was killed as it
# wrote, the rest of longer ones may follow.
_PID_FILE = re.compile(rb"([0-9]+\n?|([0-9]+\n){3}[^\n]*\n.*)?", re.DOTALL)
# The id is of one process: a signal to 0 or to -1 is for many.
_TOLD = re.compile(r"([1-9]\d*)\n(\d+)\n(\d+)\n(.*)\n", re.ASCII)
# Nobody looks at the file for longer.
_LOOK_SECONDS = 0.5
_PAUSE_SECONDS = 0.02


class ReloadState(NamedTuple):
    """What a service tells of itself. Reloads are counted from 1; ``failure`` is of the last."""

    pid: int
    requested: int = 0
    ended: int = 0
    failure: str = ""


class PidFile:
    """A pid file that this process has locked."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def write(self, state: ReloadState) -> None:
        """Write ``state`` in place of what was written before."""
        text = "".join(f"{value}\n" for value in state).encode()
        # First the text, then its end: a reader never finds less than all lines.
        os.pwrite(self._descriptor, text, 0)
        os.ftruncate(self._descriptor, len(text))


@contextmanager
def held_pid_file(path: Path) -> Iterator[PidFile]:
    """Make a pid file, and remove it when the block ends.

    Raises:
        OSError: it cannot be written, another service has it, or it is something else.
    """
    descriptor = _open_locked(path)
    try:
        yield PidFile(descriptor)
    finally:
        if _is_at(path, descriptor):
            path.unlink()
        os.close(descriptor)


def read_pid_file(path: Path) -> ReloadState | None:
    """Return what the service that holds ``path`` tells, or nothing if none does.

    Raises:
        OSError: the file cannot be read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # or a pipe would be waited for
    except FileNotFoundError:
        return None
    try:
        is_told = stat.S_ISREG(os.fstat(descriptor).st_mode) and _is_held(descriptor)
        return _state_in(os.pread(descriptor, _LARGEST, 0)) if is_told else None
    finally:
        os.close(descriptor)


def require_free(path: Path) -> None:
    """See that a service may have ``path`` as its pid file; nothing is made or changed.

    Raises:
        OSError: it may not.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        _refuse_other(descriptor, path)
        if _is_held(descriptor):
            raise _held(path)
    finally:
        os.close(descriptor)


def _open_locked(path: Path) -> int:
    """Open and lock the file that has the name ``path`` from then on."""
    while True:
        # A link may lead to what is not to be written, and a pipe would be waited for.
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
        descriptor = os.open(path, flags, 0o644)
        try:
            _refuse_other(descriptor, path)
            _lock(descriptor, path)
            if _is_at(path, descriptor):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # whoever had it has just removed it


def _refuse_other(descriptor: int, path: Path) -> None:
    """Refuse a file that no service has written: it would be lost."""
    is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
    if not (is_file and _PID_FILE.fullmatch(os.pread(descriptor, _LARGEST, 0))):
        msg = f"{path}: expected a pid file, or none; this is something else"
        raise OSError(msg)


def _lock(descriptor: int, path: Path) -> None:
    deadline = time.monotonic() + _LOOK_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise _held(path) from None
            time.sleep(_PAUSE_SECONDS)  # one who reads it has it locked, too, for a moment
        else:
            return


def _held(path: Path) -> OSError:
    return OSError(f"{path}: another service has this pid file")


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False


def _is_held(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def _state_in(text: bytes) -> ReloadState | None:
    """Return what the lines say; nothing if the service has not written them yet."""
    told = _TOLD.match(text.decode(errors="replace"))
    if told is None:
        return None
    pid, requested, ended, failure = told.groups()
    return ReloadState(int(pid), int(requested), int(ended), failure)
