"""The machine that is measured on."""

import os
import platform
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from petstore import __version__

_FSYNCS = 300


def machine() -> str:
    """Return the number of cores and their kind."""
    return f"{os.cpu_count()} cores, {_processor()}"


def system() -> str:
    """Return the kernel and its version, and the version and the commit of the service."""
    kernel = f"{platform.system()} {platform.release()}"
    return f"{kernel}; Petstore {__version__}, commit {_commit() or 'unknown'}"


def load_average() -> float:
    """Return how many processes wanted a core, on average over the last minute."""
    return os.getloadavg()[0]


def fsync_times(folder: Path) -> list[float]:
    """Return the times in µs until 8 kB are on the disk of this folder, in ascending order."""
    times = []
    with tempfile.TemporaryFile(dir=folder) as file:
        for _ in range(_FSYNCS):
            file.write(bytes(8192))
            file.flush()
            started = time.perf_counter()
            os.fdatasync(file.fileno())
            times.append((time.perf_counter() - started) * 1e6)
    return sorted(times)


def _commit() -> str:
    """Return the last commit of the code that is measured; without a repository, nothing."""
    git = ["git", "log", "-1", "--format=%h", "--", "src"]
    with suppress(OSError, subprocess.CalledProcessError):
        return subprocess.check_output(git, cwd=Path(__file__).parent.parent, text=True).rstrip()
    return ""


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next(line.partition(": ")[2] for line in lines if line.startswith("model name"))
