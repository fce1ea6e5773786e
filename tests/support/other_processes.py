"""Other processes on a store: idle, writing until they are killed, and migrating it at once."""

import os
import subprocess
import sys
from itertools import islice
from pathlib import Path
from typing import Self

_WRITER = Path(__file__).parent.parent / "databases" / "endless_writer.py"
_IDLE = """
import apsw, sys
connection = apsw.Connection(sys.argv[1])
if sys.argv[2:]:
    connection.execute("BEGIN")
connection.pragma("schema_version")
print("open", flush=True)
sys.stdin.read()
connection.close()
"""


class IdleUser:
    """Has ``database`` open until the block ends; ``pid`` is its process.

    If it ``reads``, it has an open transaction: what is committed later stays in the log.
    """

    def __init__(self, database: Path, *, reads: bool = False) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _IDLE, database, *["reads"] * reads],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.pid = self._process.pid

    def __enter__(self) -> Self:
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"open\n"
        return self

    def end(self) -> None:
        """Let it close the database, as programs do that are not killed."""
        self._process.communicate()

    def __exit__(self, *_: object) -> None:
        with self._process:
            self._process.kill()


class EndlessWriter:
    """Writes to ``database`` in a process of its own; killed (SIGKILL) as the block ends."""

    def __init__(self, database: Path) -> None:
        self.acknowledged: list[int] = []
        self._process = subprocess.Popen(
            [sys.executable, _WRITER, database], stdout=subprocess.PIPE
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


def migrate_at_once(program: str, address: str | Path) -> None:
    """Run ``program``, which waits for the end of its input, in processes that must succeed."""
    gate, end = os.pipe()
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program, address], stdin=gate, stderr=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    os.close(gate)
    os.close(end)
    errors = [process.communicate(timeout=120)[1] for process in processes]
    assert "".join(errors) == ""
    assert {process.returncode for process in processes} == {0}
