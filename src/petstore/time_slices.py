"""Long work on the event loop, in slices that let others in."""

from collections import deque
from time import monotonic
from typing import TYPE_CHECKING, TypeAlias
from weakref import WeakKeyDictionary

if TYPE_CHECKING:  # else `petstore --help` would not be instant
    from asyncio import AbstractEventLoop, Future

_SLICE_SECONDS = 0.001


class TimeSlices:
    """Work that gives the event loop to others when it has had it for ``seconds``.

    Without a number that is a millisecond. However much such work there is at a time, the loop
    reads between two slices. Work that others wait for, as they do for a lock, does not queue: it
    goes on in the next round.

    In a thread it would disturb others more: Python lets a busy thread run for 5 ms whenever the
    loop waits for the interpreter, after each system call.
    """

    def __init__(self, seconds: float | None = None, *, queues: bool = True) -> None:
        self._seconds = _SLICE_SECONDS if seconds is None else seconds
        self._queues = queues
        self._ends = monotonic() + self._seconds

    async def begin(self) -> None:
        """Begin in a round of the loop in which no other work begins."""
        from asyncio import get_running_loop  # here, as above

        loop = get_running_loop()
        rounds = _rounds_of(_BEGINNING, loop)
        if rounds.is_free:
            rounds.end(loop)
        else:
            await rounds.wait(loop)
        self._ends = monotonic() + self._seconds

    async def rest(self) -> None:
        """Give the loop to others if the slice is over."""
        if monotonic() >= self._ends:
            from asyncio import get_running_loop, sleep  # here, as above

            if self._queues:
                loop = get_running_loop()
                await _rounds_of(_RESTING, loop).wait(loop)
            else:
                await sleep(0)
            self._ends = monotonic() + self._seconds


class _Rounds:
    """Lets one of those that wait go on in each round of an event loop, in order."""

    def __init__(self) -> None:
        self._waiting: deque[Future[None]] = deque()
        self.is_free = True
        """Whether nobody waits, and nobody has gone on in this round."""

    async def wait(self, loop: "AbstractEventLoop") -> None:
        """Return in a later round."""
        turn = loop.create_future()
        self._waiting.append(turn)
        if self.is_free:
            self.end(loop)
        await turn

    def end(self, loop: "AbstractEventLoop") -> None:
        """Let nobody else go on in this round."""
        self.is_free = False
        loop.call_soon(self._begin, loop)

    def _begin(self, loop: "AbstractEventLoop") -> None:
        if not self._waiting:
            self.is_free = True
            return
        turn = self._waiting.popleft()
        if not turn.cancelled():
            turn.set_result(None)
        self.end(loop)


_RoundsByLoop: TypeAlias = "WeakKeyDictionary[AbstractEventLoop, _Rounds]"
# Apart, because what begins would wait for all that rests.
_BEGINNING: _RoundsByLoop = WeakKeyDictionary()
_RESTING: _RoundsByLoop = WeakKeyDictionary()


def _rounds_of(kind: _RoundsByLoop, loop: "AbstractEventLoop") -> _Rounds:
    rounds = kind.get(loop)
    if rounds is None:
        rounds = kind[loop] = _Rounds()
    return rounds
