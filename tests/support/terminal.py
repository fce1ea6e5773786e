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
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Self

import pytest

from petstore.cli.main import main
from support.waiting import within

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Shown(NamedTuple):
    """How a command ended, and all that a terminal showed of it, escape sequences included."""

    status: object
    raw: str

    @property
    def text(self) -> str:
        return _without_escapes(self.raw)


def shown_on_terminal(*arguments: str, **environment: str) -> Shown:
    """Run ``petstore`` in this process, with its output and errors on a terminal.

    That takes a tenth of the time of a process, but it cannot be interrupted.
    """
    ours, theirs = pty.openpty()
    seen: list[bytes] = []
    reader = threading.Thread(target=lambda: seen.extend(_chunks(ours)))
    reader.start()
    with pytest.MonkeyPatch.context() as patch, os.fdopen(theirs, "w") as terminal:
        patch.delenv("NO_COLOR", raising=False)
        sizes = {"COLUMNS": "80", "LINES": "24", "TERM": "xterm-256color"}
        for name, value in (sizes | environment).items():
            patch.setenv(name, value)
        patch.setattr(sys, "stdout", terminal)
        patch.setattr(sys, "stderr", terminal)
        with pytest.raises(SystemExit) as ended:
            main(arguments)
    reader.join()
    return Shown(ended.value.code, b"".join(seen).decode())


def _without_escapes(raw: str) -> str:
    return _ESCAPES.sub("", raw).replace("\r\n", "\n")


def _chunks(terminal: int) -> Iterator[bytes]:
    """Yield what is written to the other side, and close this one after it."""
    with os.fdopen(terminal, "rb", buffering=0) as output:
        try:
            while chunk := output.read(65536):
                yield chunk
        except OSError:  # Linux says so when the other side has closed
            pass


class Terminal:
    """``petstore`` with its input, output and errors on a terminal of ``columns`` columns."""

    def __init__(self, *arguments: str, cwd: Path, columns: int = 80) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        environment = {k: v for k, v in os.environ.items() if k not in {"COLUMNS", "NO_COLOR"}}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "petstore", *arguments],
            cwd=cwd,
            env={**environment, "TERM": "xterm-256color"},
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
        """All that was shown so far, escape sequences included."""
        # What was read last may end within a character.
        return self._seen.decode(errors="replace")

    @property
    def text(self) -> str:
        """All that was shown so far, without escape sequences."""
        return _without_escapes(self.raw)

    def wait_for(self, text: str, seconds: float = 30) -> None:
        assert within(seconds, lambda: text in self.text), f"no {text!r} in {self.text!r}"

    def wait(self, seconds: float = 30) -> int:
        status = self.process.wait(seconds)
        self._reader.join()
        return status

    def _read(self) -> None:
        for chunk in _chunks(self._ours):
            self._seen += chunk
