"""Processes that bring a store up to date at the same moment."""

import subprocess
import sys
from pathlib import Path

_COUNT = 4


def migrate_at_once(program: str, address: str | Path) -> None:
    """Run ``program``, which waits for the end of its input, in processes that must succeed."""
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
    assert "".join(errors) == ""
    assert [process.returncode for process in processes] == [0] * _COUNT
