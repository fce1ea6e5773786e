"""The library that makes a disk fail: which calls, of which files, and for how long."""

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from proof import faulty_disk
from proof.experiment import Skipped
from proof.faulty_disk import FaultyDisk

PROGRAM = """
import os, sys, time
concerned, other = (os.open(name, os.O_RDWR | os.O_CREAT) for name in sys.argv[1:3])
calls = {
    "write": lambda fd: os.write(fd, b"x"),
    "pwrite": lambda fd: os.pwrite(fd, b"x", 0),
    "pread": lambda fd: os.pread(fd, 1, 0),
    "fsync": os.fsync,
    "fdatasync": os.fdatasync,
}
for line in sys.stdin:
    name, of = line.split()
    started = time.monotonic()
    try:
        calls[name](concerned if of == "concerned" else other)
        error = 0
    except OSError as failed:
        error = failed.errno
    print(error, round(time.monotonic() - started, 3), flush=True)
"""


class Caller:
    """A process with the library, that makes one call after the other."""

    def __init__(self, disk: FaultyDisk, folder: Path) -> None:
        self.disk = disk
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, folder / "store.db", folder / "other"],
            env={**os.environ, **disk.env},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )

    def call(self, name: str, file: str = "concerned") -> tuple[int, float]:
        """Return the error of a call, 0 for none, and its seconds."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(f"{name} {file}\n")
        error, seconds = self.process.stdout.readline().split()
        return int(error), float(seconds)


@pytest.fixture(scope="module")
def caller(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Caller]:
    folder = tmp_path_factory.mktemp("disk")
    try:
        disk = FaultyDisk(folder, folder / "store")
    except Skipped as skipped:
        pytest.skip(str(skipped))
    caller = Caller(disk, folder)
    yield caller
    caller.process.communicate(timeout=30)


@pytest.mark.parametrize(
    ("fault", "calls", "error"),
    [
        (faulty_disk.WRITE_EIO, ("write", "pwrite"), errno.EIO),
        (faulty_disk.WRITE_ENOSPC, ("write", "pwrite"), errno.ENOSPC),
        (faulty_disk.FSYNC_EIO, ("fsync", "fdatasync"), errno.EIO),
        (faulty_disk.READ_EIO, ("pread",), errno.EIO),
    ],
)
def test_calls_fail_on_the_files_concerned_until_the_fault_is_over(
    caller: Caller, fault: int, calls: tuple[str, ...], error: int
) -> None:
    for name in calls:
        before = caller.disk.hits
        with caller.disk.failing(fault):
            assert caller.call(name)[0] == error
            assert caller.call(name, file="other")[0] == 0
        assert caller.call(name)[0] == 0
        assert caller.disk.hits == before + 1


def test_a_slow_fsync_takes_its_time_and_succeeds(caller: Caller) -> None:
    with caller.disk.failing(faulty_disk.FSYNC_SLOW, 50):
        error, seconds = caller.call("fdatasync")
    assert error == 0
    assert seconds >= 0.05


def test_without_a_compiler_the_faults_are_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(Skipped, match="needs a C compiler"):
        FaultyDisk(tmp_path, tmp_path)
