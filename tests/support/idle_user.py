"""A process that has a SQLite file open and does nothing with it."""

import subprocess
import sys
from pathlib import Path
from typing import Self

_PROGRAM = """
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
            [sys.executable, "-c", _PROGRAM, database, *["reads"] * reads],
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
