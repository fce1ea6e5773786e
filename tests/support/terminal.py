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
from pathlib import Path
from typing import Self

from support.waiting import within

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


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
        return _ESCAPES.sub("", self.raw).replace("\r\n", "\n")

    def wait_for(self, text: str, seconds: float = 30) -> None:
        """Wait until ``text`` was shown."""
        assert within(seconds, lambda: text in self.text), f"no {text!r} in {self.text!r}"

    def wait(self, seconds: float = 30) -> int:
        """Wait for the end of the command and return its exit status."""
        status = self.process.wait(seconds)
        self._reader.join()
        return status

    def _read(self) -> None:
        try:
            while chunk := os.read(self._ours, 65536):
                self._seen += chunk
        except OSError:  # Linux says so when the other side has closed
            pass
        finally:
            os.close(self._ours)
