"""The pid file: ``petstore reload`` finds a service by it, and reads how a reload ended.

It has four lines: the id of the main process, the number of the last reload that was requested,
the number of the last one that ended, and why that one failed. Every process of the service holds a
lock on the file, so a file that was left behind is never taken for a service.
"""

import fcntl
import os
import re
import signal
import stat
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from petstore.databases.private_files import require_own

_MAX_BYTES = 4096
# Empty, an id alone as other programs write it, or the four lines. If a service was killed while it
# wrote, the rest of longer lines may follow.
_PID_FILE = re.compile(rb"([0-9]+\n?|([0-9]+\n){3}[^\n]*\n.*)?", re.DOTALL)
# The id is positive: a signal to 0 or to -1 reaches many processes.
_STATE = re.compile(r"([1-9]\d*)\n(\d+)\n(\d+)\n(.*)\n", re.ASCII)
# A reader holds its lock for less time.
_LOCK_TIMEOUT = 0.5
_LOCK_INTERVAL = 0.02
_READ_INTERVAL = 0.05


class ReloadState(NamedTuple):
    """The content of a pid file. Reloads are counted from 1; ``failure`` is of the last one."""

    pid: int
    requested: int = 0
    ended: int = 0
    failure: str = ""


class PidFile:
    """A pid file that this process has locked."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def write(self, state: ReloadState) -> None:
        """Replace the content by ``state``."""
        text = "".join(f"{value}\n" for value in state).encode()
        # In this order a reader always finds four lines.
        os.pwrite(self._descriptor, text, 0)
        os.ftruncate(self._descriptor, len(text))


@contextmanager
def locked_pid_file(path: Path) -> Iterator[PidFile]:
    """Create and lock a pid file, and remove it when the block ends.

    Raises:
        OSError: it cannot be written, belongs to another service, or is not a pid file.
    """
    descriptor = _open_locked(path)
    try:
        yield PidFile(descriptor)
    finally:
        if _is_at(path, descriptor):
            path.unlink()
        os.close(descriptor)


def read_pid_file(path: Path) -> ReloadState | None:
    """Return the state of the service that has ``path`` locked, if any.

    Raises:
        OSError: the file cannot be read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # a pipe would block
    except FileNotFoundError:
        return None
    try:
        is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
        if not is_file or _try_lock(descriptor, fcntl.LOCK_SH):  # no service has it locked
            return None
        _require_own(descriptor, path)
        lines = _STATE.match(os.pread(descriptor, _MAX_BYTES, 0).decode(errors="replace"))
    finally:
        os.close(descriptor)
    if lines is None:  # not written yet
        return None
    pid, requested, ended, failure = lines.groups()
    return ReloadState(int(pid), int(requested), int(ended), failure)


def require_free(path: Path) -> None:
    """Check that a service may use ``path`` as its pid file, and change nothing.

    Raises:
        OSError: it belongs to another service, or is not a pid file.
    """
    descriptor = _open(path, os.O_RDONLY)
    try:
        _require_pid_file(descriptor, path)
        if not _try_lock(descriptor, fcntl.LOCK_SH):
            raise _in_use(path)
    finally:
        os.close(descriptor)


def reload_service(path: Path, timeout: float) -> None:
    """Make the service of a pid file reload, and wait up to ``timeout`` seconds for the end.

    Raises:
        OSError: no service has the file locked, or the reload failed or did not end in time.
    """
    before = read_pid_file(path)
    if before is None:
        msg = f"{path}: no service runs with this --pid-file"
        raise OSError(msg)
    _require_process_of_owner(before.pid, path)
    deadline = time.monotonic() + timeout
    os.kill(before.pid, signal.SIGHUP)
    while (state := read_pid_file(path)) is None or state.ended <= before.requested:
        if state is None:
            msg = "the service stopped before the reload ended"
            raise OSError(msg)
        if time.monotonic() >= deadline:
            msg = f"the reload has not ended after {timeout:g} seconds; it continues"
            raise OSError(msg)
        time.sleep(_READ_INTERVAL)
    if state.failure:
        msg = f"the reload failed; the remaining old processes continue to serve: {state.failure}"
        raise OSError(msg)


def _open_locked(path: Path) -> int:
    """Open the file at ``path``, and lock it while it has that name."""
    deadline = time.monotonic() + _LOCK_TIMEOUT
    while True:
        descriptor = _open(path, os.O_RDWR | os.O_CREAT)
        with ExitStack() as opened:
            opened.callback(os.close, descriptor)
            _require_pid_file(descriptor, path)
            if not _try_lock(descriptor, fcntl.LOCK_EX):
                if time.monotonic() >= deadline:
                    raise _in_use(path)
                time.sleep(_LOCK_INTERVAL)  # a reader locks it, too, for a moment
            elif _is_at(path, descriptor):  # else its service has just removed it
                opened.pop_all()
                return descriptor


def _open(path: Path, flags: int) -> int:
    """Open a file: a link could lead to any other, and a pipe would block."""
    try:
        return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)
    except OSError as error:
        if path.is_symlink():
            msg = f"{path}: expected a pid file or no file; this is a link"
            raise OSError(msg) from error
        raise


def _require_pid_file(descriptor: int, path: Path) -> None:
    """Refuse a file that no service has written: it would be overwritten."""
    is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
    if not (is_file and _PID_FILE.fullmatch(os.pread(descriptor, _MAX_BYTES, 0))):
        msg = f"{path}: expected a pid file or no file; this is another file"
        raise OSError(msg)
    _require_own(descriptor, path)


def _require_own(descriptor: int, path: Path) -> None:
    """Refuse a file of another user, who could have any process signalled."""
    try:
        require_own(path, os.fstat(descriptor))
    except PermissionError as error:
        msg = f"{path}: {error}"
        raise OSError(msg) from error


def _require_process_of_owner(pid: int, path: Path) -> None:
    """Refuse a process of another user than the file: root could signal any."""
    with suppress(FileNotFoundError):  # not on Linux, or it has ended
        if Path(f"/proc/{pid}").stat().st_uid != path.stat().st_uid:
            msg = f"{path}: process {pid} belongs to another user than this file"
            raise OSError(msg)


def _in_use(path: Path) -> OSError:
    return OSError(f"{path}: another service has this pid file")


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False


def _try_lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
