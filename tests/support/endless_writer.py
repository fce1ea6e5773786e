"""A process that adds pets to a SQLite file until it is killed, and what it acknowledged."""

import subprocess
import sys
from itertools import islice
from pathlib import Path
from typing import Self

_PROGRAM = Path(__file__).parent.parent / "databases" / "endless_writer.py"


class EndlessWriter:
    """Writes to ``database`` in a process of its own; killed (SIGKILL) as the block ends."""

    def __init__(self, database: Path) -> None:
        self.acknowledged: list[int] = []
        self._process = subprocess.Popen(
            [sys.executable, _PROGRAM, database], stdout=subprocess.PIPE
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._process:
            self._process.kill()
            self._read(None)

    def wait_for(self, count: int) -> None:
        """Wait until it has acknowledged ``count`` more pets."""
        before = len(self.acknowledged)
        self._read(count)
        assert len(self.acknowledged) == before + count, "the writer has ended"

    def _read(self, count: int | None) -> None:
        assert self._process.stdout is not None
        self.acknowledged += [int(line) for line in islice(self._process.stdout, count)]
