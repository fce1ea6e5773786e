"""A disk that fails on demand: a library loaded before others into the processes of the service."""

import mmap
import os
import shutil
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from proof.experiment import Skipped

_SOURCE = Path(__file__).with_suffix(".c")
_CONTROL = struct.Struct("=iii")

NONE: Final = 0
WRITE_EIO: Final = 1
WRITE_ENOSPC: Final = 2
FSYNC_EIO: Final = 3
FSYNC_SLOW: Final = 4
READ_EIO: Final = 5


class FaultyDisk:
    """A disk for the files whose names begin with ``files``; ``env`` has it loaded.

    Raises:
        Skipped: there is no C compiler, or it failed.
    """

    def __init__(self, folder: Path, files: Path) -> None:
        library, control = build(folder), folder / "control"
        control.write_bytes(_CONTROL.pack(NONE, 0, 0))
        with control.open("r+b") as file:
            self._shared = mmap.mmap(file.fileno(), _CONTROL.size)
        self.env = {
            "LD_PRELOAD": str(library),
            "FAULTY_DISK_CONTROL": str(control),
            "FAULTY_DISK_FILES": str(files),
        }

    @property
    def hits(self) -> int:
        """How many calls had a fault."""
        hits: int = _CONTROL.unpack(self._shared)[2]
        return hits

    def fail(self, fault: int, milliseconds: int = 0) -> None:
        """Have every further call fail in this way, until the next."""
        struct.pack_into("=ii", self._shared, 0, fault, milliseconds)

    @contextmanager
    def failing(self, fault: int, milliseconds: int = 0) -> Iterator[None]:
        """Have calls fail until the block ends."""
        self.fail(fault, milliseconds)
        try:
            yield
        finally:
            self.fail(NONE)


def build(folder: Path) -> Path:
    """Compile the library into ``folder``.

    Raises:
        Skipped: there is no C compiler, or it failed.
    """
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        msg = "needs a C compiler (cc)"
        raise Skipped(msg)
    library = folder / "faulty_disk.so"
    flags = ("-shared", "-fPIC", "-O1", "-Wall", "-Werror")
    command = [compiler, *flags, "-o", str(library), str(_SOURCE), "-ldl"]
    built = subprocess.run(command, check=False, capture_output=True, text=True)
    if built.returncode:
        msg = f"{compiler} could not build {_SOURCE.name}: {built.stderr[-200:]}"
        raise Skipped(msg)
    return library
