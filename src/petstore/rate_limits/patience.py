"""How long to wait for Redis, which may be on the same busy machine."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from math import inf
from pathlib import Path

PRESSURE = Path("/proc/pressure/cpu")
"""Where Linux says for how long tasks have waited for a processor."""

_SLICES = 5
_MOST_SLICES = 15


@asynccontextmanager
async def patience(seconds: float, pressure: Path) -> AsyncIterator[None]:
    """End the block with ``TimeoutError`` after so many seconds in which an answer could have come.

    They pass in slices. One does not count if this process was busy at its end, or if somebody on
    the machine waited for a processor for half of it: Redis may be the one that waits. On a machine
    so busy it may take three times as long.
    """
    async with asyncio.timeout(None) as timeout:
        wait = _Wait(timeout, seconds / _SLICES, pressure)
        try:
            yield
        finally:
            wait.end()


class _Wait:
    def __init__(self, timeout: asyncio.Timeout, seconds: float, pressure: Path) -> None:
        self._timeout = timeout
        self._seconds = seconds
        self._pressure = pressure
        self._counted = self._passed = 0
        # Not read before a slice is over, so that a prompt answer costs a timer alone.
        self._shortage = inf
        self._begin()

    def end(self) -> None:
        self._timer.cancel()

    def _begin(self) -> None:
        self._due = time.monotonic() + self._seconds
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._pass)

    def _pass(self) -> None:
        late = time.monotonic() - self._due
        before, self._shortage = self._shortage, _shortage(self._pressure)
        self._counted += max(late, self._shortage - before) < self._seconds / 2
        self._passed += 1
        if self._counted < _SLICES and self._passed < _MOST_SLICES:
            self._begin()
        else:
            self._timeout.reschedule(asyncio.get_running_loop().time())


def _shortage(pressure: Path) -> float:
    """Return for how many seconds so far there were more tasks than processors."""
    try:
        # some avg10=0.00 avg60=0.00 avg300=0.00 total=<microseconds>
        some = pressure.read_text().partition("\n")[0]
        return int(some.rpartition("=")[2]) / 1_000_000
    except (OSError, ValueError):  # another system, or one that does not tell
        return 0
