"""A disk and a clock that fail on demand: a library loaded into the processes of the service."""

import mmap
import os
import shutil
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Final

from proof.experiment import Skipped

_SOURCE = Path(__file__).with_suffix(".c")
_CONTROL = struct.Struct("=iii")
_CLOCK = struct.Struct("=q")
_PAGE = 4096

NONE: Final = 0
WRITE_EIO: Final = 1
WRITE_ENOSPC: Final = 2
FSYNC_EIO: Final = 3
FSYNC_SLOW: Final = 4
READ_EIO: Final = 5


class FaultyDisk:
    """A disk for the files whose names begin with ``files``; ``env`` has it loaded.

    If it ``keeps_synced``, the power can be cut.

    Raises:
        Skipped: there is no C compiler, or it failed.
    """

    def __init__(self, folder: Path, files: Path, *, keeps_synced: bool = False) -> None:
        library, control = build(folder), folder / "control"
        self._files = files
        control.write_bytes(_CONTROL.pack(NONE, 0, 0))
        with control.open("r+b") as file:
            self._shared = mmap.mmap(file.fileno(), _CONTROL.size)
        self.env = {
            "LD_PRELOAD": str(library),
            "FAULTY_DISK_CONTROL": str(control),
            "FAULTY_DISK_FILES": str(files),
            **({"FAULTY_DISK_KEEPS_SYNCED": "1"} if keeps_synced else {}),
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

    def cut_power(self, random: Random) -> int:
        """Leave of the files what was confirmed, and of other pages, none or some at random.

        Nobody uses the files. Returns how many pages were lost.
        """
        lost, share = 0, random.choice((0, 0.5))
        for file in self._files.parent.glob(f"{self._files.name}*"):
            kept = file.with_name(f"{file.name}.synced")
            if ".part-" in file.name or file.suffix == ".synced":
                continue
            if not kept.exists():  # such as the index of the log, which is never confirmed
                file.unlink()
                continue
            before, after = kept.read_bytes(), file.read_bytes()
            survived = bytearray(before)
            for at in range(0, len(after), _PAGE):
                page = slice(at, at + _PAGE)
                if before[page] != after[page]:
                    if random.random() < share:
                        survived[len(survived) :] = bytes(max(0, at - len(survived)))
                        survived[page] = after[page]
                    else:
                        lost += 1
            file.write_bytes(survived)
        return lost


class FaultyClock:
    """A clock of the day that others can set; ``env`` has it loaded.

    Raises:
        Skipped: there is no C compiler, or it failed.
    """

    def __init__(self, folder: Path) -> None:
        library, file = build(folder), folder / "clock"
        file.write_bytes(bytes(_CLOCK.size))
        with file.open("r+b") as opened:
            self._shared = mmap.mmap(opened.fileno(), _CLOCK.size)
        self.env = {"LD_PRELOAD": str(library), "FAULTY_CLOCK": str(file)}

    def step_to(self, seconds: int) -> None:
        """Let the clock be so many seconds ahead, or behind."""
        _CLOCK.pack_into(self._shared, 0, seconds)


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
