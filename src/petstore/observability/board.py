"""Where the processes of one service put their figures, so that any can tell those of all.

A process keeps its figures in memory and puts them down each second, each time it is asked, and
at its end. What a process counted that has ended stays in the sums, so they never fall; its gauges
go with it.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import msgspec

from petstore.observability.figures import Figures

_ENDED = "ended"

encode_figures = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Figures).decode


class Board:
    """A folder with a file for each process. Its methods wait for the disk."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._name = f"{os.getpid()}.{uuid4().hex}"

    def put(self, figures: bytes) -> None:
        """Put down the figures of this process in place of those before."""
        self._write(self._name, figures)

    def total(self) -> Figures:
        """Return the sums over all processes, those that ended included."""
        with self._may_tidy() as may_tidy:
            running, ended = Figures(), Figures()
            gone = []
            for path in self._folder.glob("[0-9]*.*"):
                if _is_running(int(path.stem)):
                    running.add(self._read(path.name))
                else:
                    ended.add(self._read(path.name))
                    gone.append(path)
            ended.gauges.clear()
            ended.add(self._read(_ENDED))
            if gone and may_tidy:
                # So there are never more files than processes that run.
                self._write(_ENDED, encode_figures(ended))
                for path in gone:
                    path.unlink()
        running.add(ended)
        return running

    def _read(self, name: str) -> Figures:
        try:
            return _decode((self._folder / name).read_bytes())
        except FileNotFoundError:  # nobody has ended yet; or another process has just tidied up
            return Figures()

    def _write(self, name: str, figures: bytes) -> None:
        unfinished = self._folder / f"~{name}"
        unfinished.write_bytes(figures)
        unfinished.replace(self._folder / name)

    @contextmanager
    def _may_tidy(self) -> Iterator[bool]:
        """Tell whether no other process is at it; waiting for one that is stopped might not end."""
        with (self._folder / "lock").open("wb") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
