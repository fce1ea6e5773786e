"""Files without a disk: where a commit takes no time, however busy the machine is."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

_MEMORY = Path("/dev/shm")  # noqa: S108 - in a fresh folder of it
_ROOM = 2 * 1024**3


def memory() -> Path | None:
    """Return the folder that Linux keeps in memory, if there is room for the tests' files."""
    has_room = _MEMORY.exists() and shutil.disk_usage(_MEMORY).free > _ROOM
    return _MEMORY if has_room else None


@contextmanager
def folder_in_memory() -> Iterator[Path]:
    with TemporaryDirectory(dir=memory()) as path:
        yield Path(path)
