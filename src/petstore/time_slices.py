"""Whose turn it is on the event loop: a few in each round, and long work in slices."""

from collections import deque
from collections.abc import Callable
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:  # else `petstore --help` would not be instant
    from asyncio import AbstractEventLoop, Future

_SLICE_SECONDS = 0.001


class Rounds:
    """Lets a few of those that wait continue in each round of the event loop, in order.

    The loop reads between two rounds. So whoever does not wait is delayed by a few, however many
    wait.
    """

    def __init__(self, loop: "AbstractEventLoop", at_once: int = 1) -> None:
        self._loop = loop
        self._at_once = at_once
        self._waiting: deque[Callable[[], object]] = deque()
        self.is_free = True  # whether no task waits, and none has continued in this round

    def add(self, resume: Callable[[], object]) -> None:
        """Call ``resume`` in a later round, after all that already wait."""
        self._waiting.append(resume)
        if self.is_free:
            self.end()

    async def wait(self) -> None:
        turn = self._loop.create_future()
        self.add(partial(_resume, turn))
        await turn

    def end(self) -> None:
        self.is_free = False
        self._loop.call_soon(self._begin)

    def _begin(self) -> None:
        if not self._waiting:
            self.is_free = True
            return
        self.end()  # first, so the error of one does not end the turns of all
        for _ in range(min(self._at_once, len(self._waiting))):
            self._waiting.popleft()()


class TimeSlices:
    """Work that gives the event loop to others when it has had it for ``seconds``.

    Without a number that is a millisecond. However much such work there is at a time, the loop
    reads between two slices. Work that others wait for, as they do for a lock, does not queue: it
    continues in the next round.

    In a thread it would disturb others more: Python lets a busy thread run for 5 ms whenever the
    loop waits for the interpreter, after each system call.
    """

    def __init__(self, seconds: float | None = None, *, queues: bool = True) -> None:
        self._seconds = _SLICE_SECONDS if seconds is None else seconds
        self._queues = queues
        self._ends = monotonic() + self._seconds

    async def begin(self) -> None:
        beginning, _ = _rounds()
        if beginning.is_free:
            beginning.end()
        else:
            await beginning.wait()
        self._ends = monotonic() + self._seconds

    async def rest(self) -> None:
        if monotonic() >= self._ends:
            if self._queues:
                _, resting = _rounds()
                await resting.wait()
            else:
                from asyncio import sleep  # here, as above

                await sleep(0)
            self._ends = monotonic() + self._seconds


# Those that begin and those that rest, apart: else what begins would wait for all that rests.
_ROUNDS: "WeakKeyDictionary[AbstractEventLoop, tuple[Rounds, Rounds]]" = WeakKeyDictionary()


def _rounds() -> tuple[Rounds, Rounds]:
    from asyncio import get_running_loop  # here, as above

    loop = get_running_loop()
    if loop not in _ROUNDS:
        _ROUNDS[loop] = Rounds(loop), Rounds(loop)
    return _ROUNDS[loop]


def _resume(turn: "Future[None]") -> None:
    if not turn.cancelled():
        turn.set_result(None)
