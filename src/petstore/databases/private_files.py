"""Files that no other user can change, and that are replaced as a whole."""

import errno
import logging
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO

from petstore.errors import Conflict, WebhooksNotConfigured
from petstore.webhooks.signing import LENGTH, master_of_text, text_of_master


def create(path: Path) -> BinaryIO:
    return open(path, "x+b", opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW, 0o600))


def obstacle(path: Path) -> str:
    if path.is_symlink() and not path.exists():  # who planted it?
        return "it is a link that leads nowhere"
    folder = path.absolute().parent
    return "" if folder.is_dir() else f"there is no folder {folder}"


def require_private(path: Path, opened: os.stat_result, *, is_secret: bool = False) -> None:
    """Refuse a file that other users can change, or plant another file beside; name the command.

    The owner of the folder and the groups are the operator's choice. ``opened`` is the status of
    the open file. Others may not read a secret of this user either. Root decides who reads its own,
    and container platforms mount secrets in folders that are open to all, and read-only.
    """
    if not stat.S_ISREG(opened.st_mode):
        raise PermissionError("expected a file, found a folder, link or pipe")
    if opened.st_mode & (0o006 if is_secret and opened.st_uid == os.geteuid() else 0o002):
        verb = "read" if not opened.st_mode & 0o002 else "change"
        raise PermissionError(f"other users can {verb} it; run: chmod o-rw {path}")
    places = () if is_secret else (path.absolute(), Path(os.path.realpath(path)))
    for folder in [place.parent for place in places]:
        mode = folder.stat().st_mode
        if mode & 0o002:
            fix = "use a folder of your own" if mode & stat.S_ISVTX else f"run: chmod o-w {folder}"
            raise PermissionError(f"other users can create files in {folder}; {fix}")


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Create a file that replaces ``path``, or a link there, once the block ends without error."""
    if path.exists() and not path.is_file():  # root would replace /dev/null for everybody
        raise FileExistsError(errno.EEXIST, "expected a regular file", str(path))
    if not path.parent.is_dir():  # else the error would name the new file
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    part = part_of(path)
    with suppress(FileNotFoundError):  # what a killed run has left, and nothing else of that name
        left = part.lstat()
        if not stat.S_ISREG(left.st_mode) or left.st_uid != os.geteuid():
            reason = "it is a link, or not your file; remove it"
            raise FileExistsError(errno.EEXIST, reason, os.fspath(part))
        part.unlink()
    with create(part) as file:
        made = os.fstat(file.fileno())
        try:
            yield file
            if not _is(part, made):
                raise Conflict(f"{part} was written by another process at the same time")
            part.replace(path)
        finally:
            if _is(part, made):
                part.unlink()


def create_once(path: Path, content: bytes) -> None:
    """Create a file with ``content``, as a whole and on disk, unless something has its name."""
    part = path.with_name(f"{path.name}.{token_hex(8)}.part")
    with create(part) as file:
        try:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            with suppress(FileExistsError):
                path.hardlink_to(part)
        finally:
            part.unlink()
    sync_names(path.parent)


def sync_names(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def part_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.part")


def _is(part: Path, made: os.stat_result) -> bool:
    try:
        return os.path.samestat(made, part.lstat())
    except FileNotFoundError:
        return False


_MAX_BYTES = 4096
_LOG = logging.getLogger(__name__)


class SecretFile:
    """The file at ``path``, read once. If no other user can have made it, the service may."""

    def __init__(self, path: Path | None, *, may_create: bool) -> None:
        self._path = path
        self._may_create = may_create
        self._master: bytes | None = None
        self._reported = ""  # not again for each delivery that waits for the file

    def check(self) -> None:
        if self._path is not None and (os.path.lexists(self._path) or not self._may_create):
            master_of_text(_content(self._path))

    @property
    def is_set_up(self) -> bool:
        return self._path is not None

    def create(self) -> None:
        if self._path is None or not self._may_create:
            return
        try:
            if not self._path.exists():
                create_once(self._path, text_of_master(secrets.token_bytes(LENGTH)))
        except OSError as error:
            raise self._unusable(error) from error

    def read(self) -> bytes:
        if self._master is None:
            if self._path is None:
                raise WebhooksNotConfigured(
                    "the operator of this service has not set up webhooks: --secret-file is not set"
                )
            try:
                self._master = master_of_text(_content(self._path))
            except (OSError, ValueError) as error:
                raise self._unusable(error) from error
        return self._master

    def _unusable(self, error: OSError | ValueError) -> WebhooksNotConfigured:
        if (cause := str(error)) != self._reported:
            self._reported = cause
            _LOG.warning("the secret file %s cannot be used: %s", self._path, cause)
        return WebhooksNotConfigured(
            "the secret file of this service cannot be used; tell its operator"
        )


def _content(path: Path) -> bytes:
    if reason := obstacle(path):
        raise FileNotFoundError(reason)
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # a pipe would block
    try:
        require_private(path, os.fstat(descriptor), is_secret=True)
        return os.read(descriptor, _MAX_BYTES)
    finally:
        os.close(descriptor)
