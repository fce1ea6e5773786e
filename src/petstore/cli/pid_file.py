"""The file by which ``petstore reload`` finds a service, and learns when a reload has ended.

It has a line each for the id of the main process, the number of the last reload that was asked for,
the number of the last that ended, and what failed in that one. A lock is held on it as long as a
process of the service lives, so a file that was left behind is never taken for a service.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

_LINES = 4
_NUMBERS = 3  # the lines before the last
_LARGEST = 4096


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
        OSError: it cannot be written, another service has it, or it is a file of another kind.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        _lock(descriptor, path)
        _require_pid_file(descriptor, path)
        try:
            yield PidFile(descriptor)
        finally:
            path.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


def read_pid_file(path: Path) -> ReloadState | None:
    """Return what the service that holds ``path`` tells, or nothing if none does.

    Raises:
        OSError: the file cannot be read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        return _state_in(os.pread(descriptor, _LARGEST, 0)) if _is_held(descriptor) else None
    finally:
        os.close(descriptor)


def require_free(path: Path) -> None:
    """See that a service may have ``path`` as its pid file; nothing is made or changed.

    Raises:
        OSError: it may not.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        if _is_held(descriptor):
            raise _held(path)
        _require_pid_file(descriptor, path)
    finally:
        os.close(descriptor)


def _require_pid_file(descriptor: int, path: Path) -> None:
    """Refuse a file that is not empty and does not begin with a number: it would be lost."""
    text = os.pread(descriptor, _LARGEST, 0)
    if text and not text.partition(b"\n")[0].isdigit():
        msg = f"{path}: this file is there already, and is no pid file"
        raise OSError(msg)


def _held(path: Path) -> OSError:
    return OSError(f"{path}: another service has this pid file")


def _lock(descriptor: int, path: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise _held(path) from None


def _is_held(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def _state_in(text: bytes) -> ReloadState | None:
    """Return what the lines say; nothing if the service has not written them yet."""
    lines = text.decode(errors="replace").split("\n")
    if len(lines) <= _LINES or not all(line.isdigit() for line in lines[:_NUMBERS]):
        return None
    pid, requested, ended, failure = lines[:_LINES]
    return ReloadState(int(pid), int(requested), int(ended), failure)
