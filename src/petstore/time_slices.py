"""Long work on the event loop, in slices that let others in."""

from collections import deque
from time import monotonic
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:  # else `petstore --help` would not be instant
    from asyncio import AbstractEventLoop, Future

_SLICE_SECONDS = 0.001
_WAITING: "WeakKeyDictionary[AbstractEventLoop, deque[Future[None]]]" = WeakKeyDictionary()


class TimeSlices:
    """Work that gives the event loop to others when it has had it for ``seconds``.

    Without a number that is a millisecond. However much such work there is at a time, the loop
    reads between two slices.

    In a thread it would disturb others more: Python lets a busy thread run for 5 ms whenever the
    loop waits for the interpreter, after each system call.
    """

    def __init__(self, seconds: float | None = None) -> None:
        self._seconds = _SLICE_SECONDS if seconds is None else seconds
        self._ends = monotonic() + self._seconds

    async def rest(self) -> None:
        """Give the loop to others if the slice is over."""
        if monotonic() >= self._ends:
            from asyncio import get_running_loop  # here for the same reason

            loop = get_running_loop()
            waiting = _WAITING.setdefault(loop, deque())
            turn = loop.create_future()
            waiting.append(turn)
            if len(waiting) == 1:
                loop.call_soon(_give_turn, loop, waiting)
            await turn
            self._ends = monotonic() + self._seconds


def _give_turn(loop: "AbstractEventLoop", waiting: "deque[Future[None]]") -> None:
    """Let one work go on in this round of the loop, and the next one in the next round."""
    turn = waiting.popleft()
    if not turn.cancelled():
        turn.set_result(None)
    if waiting:
        loop.call_soon(_give_turn, loop, waiting)
