"""Files that only their owner may use: another user can neither plant nor change one."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO

from petstore.errors import Conflict


def create(path: Path) -> BinaryIO:
    """Create a file that only its owner may read and write, and open it.

    Raises:
        FileExistsError: the name is taken, perhaps by a broken link.
        OSError: it cannot be created.
    """
    return open(path, "x+b", opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW, 0o600))


def obstacle(path: Path) -> str:
    """Return why no file can be at ``path``, or nothing."""
    if path.is_symlink() and not path.exists():  # who planted it?
        return "it is a link that leads nowhere"
    folder = path.absolute().parent
    return "" if folder.is_dir() else f"there is no folder {folder}"


def require_own(
    path: Path, opened: os.stat_result | None = None, *, is_secret: bool = False
) -> None:
    """Refuse a file that another user may have put at ``path``, or may change.

    It belongs to this user, to root, or to whoever owns the folder and could replace it anyway. A
    group may write where the folder is the group's, as Kubernetes mounts volumes. A secret of this
    user may not be read by others either; root decides who reads its own. ``opened`` is the status
    of the open file.

    Raises:
        PermissionError: the reason alone, without the name.
        OSError: there is no such file.
    """
    found, folder = path.lstat(), path.absolute().parent.stat()
    owners = {os.geteuid(), 0, folder.st_uid}
    _require_owner(found, owners)
    if stat.S_ISLNK(found.st_mode) and opened is not None:
        require_own(path.resolve(), opened, is_secret=is_secret)
        return
    status = opened or found
    _require_owner(status, owners)
    if not stat.S_ISREG(status.st_mode):
        msg = "expected a file, found a folder, link or pipe"
        raise PermissionError(msg)
    refused = 0o066 if is_secret and status.st_uid == os.geteuid() else 0o022
    if status.st_gid == folder.st_gid and folder.st_mode & 0o020:
        refused &= 0o006
    if status.st_mode & refused:
        verb = "change" if status.st_mode & refused & 0o022 else "read"
        mode = f"{status.st_mode & 0o777:04o}"
        msg = f"other users may {verb} it (mode {mode}); chmod 600 keeps them out"
        raise PermissionError(msg)


def _require_owner(status: os.stat_result, owners: set[int]) -> None:
    if status.st_uid not in owners:
        msg = f"it belongs to user {status.st_uid}; expected user {os.geteuid()} or root"
        raise PermissionError(msg)


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Create a file beside ``path`` that replaces it once the block ends without an error.

    A link at ``path`` is replaced, not followed.

    Raises:
        FileExistsError: ``path`` is a device, a pipe or a folder; or the name of the new file is
            taken, and not by an earlier run.
        FileNotFoundError: ``path`` is in a folder that there is not.
        Conflict: another process has created such a file in the meantime.
        OSError: it cannot be created.
    """
    if path.exists() and not path.is_file():  # root would replace /dev/null for everybody
        raise FileExistsError(errno.EEXIST, "expected a regular file", str(path))
    if not path.parent.is_dir():  # else the error would name the new file
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    part = part_of(path)
    _remove_left_over(part)
    with create(part) as file:
        made = os.fstat(file.fileno())
        try:
            yield file
            if not _is(part, made):
                msg = f"{part} was written by another process at the same time"
                raise Conflict(msg)
            part.replace(path)
        finally:
            if _is(part, made):
                part.unlink()


def create_once(path: Path, content: bytes) -> None:
    """Create a file with ``content``, as a whole and on disk, unless something has its name.

    Of several processes that do so at once, the first one decides what is in it.

    Raises:
        OSError: it cannot be created.
    """
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
    """Flush the names in a folder to disk."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def part_of(path: Path) -> Path:
    """Return the name of the file that will replace ``path``."""
    return path.with_name(f"{path.name}.part")


def _remove_left_over(part: Path) -> None:
    """Remove what a killed run has left, and nothing else of that name."""
    try:
        found = part.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
        raise FileExistsError(
            errno.EEXIST, "it is a link, or not your file; remove it", os.fspath(part)
        )
    part.unlink()


def _is(part: Path, made: os.stat_result) -> bool:
    try:
        return os.path.samestat(made, part.lstat())
    except FileNotFoundError:
        return False
