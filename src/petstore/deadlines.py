"""Who has so long for something, and whose time is over."""

import time
from typing import Generic, TypeVar

T = TypeVar("T")


class Deadlines(Generic[T]):
    """Gives each of many the same ``seconds``.

    A timer for each would cost more than all the rest that is done for it, so they are kept in one
    place, in the order in which their time passes, and whoever asks looks at the first.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._ends: dict[T, float] = {}

    def start(self, one: T) -> None:
        """Give ``one`` its time, from now on."""
        self._ends.pop(one, None)
        self._ends[one] = time.monotonic() + self._seconds

    def stop(self, one: T) -> None:
        """Let ``one`` have all the time, whether or not it had a deadline."""
        self._ends.pop(one, None)

    def __contains__(self, one: T) -> bool:
        return one in self._ends

    def take_passed(self) -> list[T]:
        """Return those whose time is over, and let go of them."""
        now, passed = time.monotonic(), []
        for one, end in self._ends.items():
            if end > now:
                break
            passed.append(one)
        for one in passed:
            del self._ends[one]
        return passed
