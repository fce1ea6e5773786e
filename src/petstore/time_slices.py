"""Long work on the event loop, in slices that let others in."""

from time import monotonic

_SLICE_SECONDS = 0.001


class TimeSlices:
    """Work that gives the event loop to others when it has had it for ``seconds``.

    Without a number that is a millisecond.

    In a thread it would disturb them more: Python lets a busy thread run for 5 ms whenever the
    loop waits for the interpreter, after each system call.
    """

    def __init__(self, seconds: float | None = None) -> None:
        self._seconds = _SLICE_SECONDS if seconds is None else seconds
        self._ends = monotonic() + self._seconds

    async def rest(self) -> None:
        """Give the loop to others if the slice is over."""
        if monotonic() >= self._ends:
            import asyncio  # here, so that `petstore --help` is instant

            await asyncio.sleep(0)
            self._ends = monotonic() + self._seconds
