"""Where the processes of one service put their figures, so that any can tell those of all.

A process has a seat, which another takes once it has ended, and never before. Each seat has a file,
with which the next process there goes on: so sums never fall, and there are never more files than
seats: one for each process, and one more for reloads. What a process put down last is too old for
its gauges some seconds after it ended.
"""

import time
from pathlib import Path

import msgspec

from petstore.observability.figures import WORKERS, Figures

_GAUGES_LAST_SECONDS = 3

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Figures).decode


class Board:
    """The seats of a service, as the process at one of them sees them."""

    def __init__(self, folder: Path, seat: int) -> None:
        self._folder = folder
        self._file = folder / str(seat)
        self._before = Figures()
        self.is_after_crash = False
        """Whether the process before at this seat ended without a clean stop."""
        if self._file.exists():
            self._before = _decode(self._file.read_bytes())
            self.is_after_crash = WORKERS.name in self._before.gauges
            self._before.gauges.clear()

    def encoded(self, figures: Figures) -> bytes:
        """Return what this process counted, with what was counted before at its seat."""
        total = Figures()
        total.add(self._before)
        total.add(figures)
        return _encode(total)

    def put(self, encoded: bytes) -> None:
        """Put down what ``encoded`` returned. It waits for the disk."""
        unfinished = self._folder / f"~{self._file.name}"
        unfinished.write_bytes(encoded)
        unfinished.replace(self._file)

    def total(self) -> Figures:
        """Return the sums over all seats. It waits for the disk."""
        total = Figures()
        for file in self._folder.glob("[0-9]*"):
            figures = _decode(file.read_bytes())
            if time.time() - file.stat().st_mtime > _GAUGES_LAST_SECONDS:
                figures.gauges.clear()
            total.add(figures)
        return total
