"""Files without a disk: where a commit takes no time, however busy the machine is."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory


@contextmanager
def folder_in_memory() -> Iterator[Path]:
    """Make a folder in memory, as Linux has it, until the block ends."""
    with TemporaryDirectory(dir="/dev/shm") as path:
        yield Path(path)
