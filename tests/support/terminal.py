"""A command on a terminal, and its output there."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Self

from support.waiting import within

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """``petstore`` with its input, output and errors on a terminal of ``columns`` columns."""

    def __init__(
        self,
        *arguments: str,
        cwd: Path | None = None,
        columns: int = 80,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        inherited = {k: v for k, v in os.environ.items() if k not in {"COLUMNS", "NO_COLOR"}}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "petstore", *arguments],
            cwd=cwd,
            env={**inherited, "TERM": "xterm-256color", **(env or {})},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        self._seen = b""
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.wait()

    @property
    def raw(self) -> str:
        # What was read last may end within a character.
        return self._seen.decode(errors="replace")

    @property
    def text(self) -> str:
        return _ESCAPES.sub("", self.raw).replace("\r\n", "\n")

    def wait_for(self, text: str, seconds: float = 30) -> None:
        assert within(seconds, lambda: text in self.text), f"no {text!r} in {self.text!r}"

    def wait(self, seconds: float = 30) -> int:
        status = self.process.wait(seconds)
        self._reader.join()
        return status

    def _read(self) -> None:
        # Linux says with an error that the other side has closed.
        with os.fdopen(self._ours, "rb", buffering=0) as output, suppress(OSError):
            while chunk := output.read(65536):
                self._seen += chunk


def shown_on_terminal(*arguments: str, **environment: str) -> Terminal:
    with Terminal(*arguments, env=environment) as terminal:
        assert terminal.wait() == 0
    return terminal
