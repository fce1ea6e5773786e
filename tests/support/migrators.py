"""Processes that bring a store up to date at the same moment."""

import subprocess
import sys
from pathlib import Path

_COUNT = 10


def migrate_ten_times_at_once(program: str, address: str | Path) -> None:
    """Run ``program``, which waits for the end of its input, in ten processes; all must succeed."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program, address],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(_COUNT)
    ]
    for process in processes:
        assert process.stdin is not None
        process.stdin.close()
        process.stdin = None
    errors = [process.communicate(timeout=120)[1] for process in processes]
    assert errors == [""] * _COUNT
    assert [process.returncode for process in processes] == [0] * _COUNT
