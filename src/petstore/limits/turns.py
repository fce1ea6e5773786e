"""How many at once, and whose turn is next."""

import asyncio
import sys
from collections.abc import Hashable
from contextlib import ExitStack
from weakref import WeakValueDictionary

from petstore.errors import Overloaded, RateLimitExceeded


class Turns:
    """Gives turns in the order of arrival: ``at_once`` in all, and ``each`` to a name.

    Further ones wait, for at most ``seconds``. With a ``refusal`` a name that has all of its turns
    gets 429 instead. So a name waits ``each`` times at most, and its crowd delays no other name.
    """

    def __init__(
        self,
        what: str,
        at_once: int = sys.maxsize,
        *,
        each: int = 1,
        seconds: float | None = None,
        refusal: str = "",
    ) -> None:
        self._what = what
        self._each = each
        self._seconds = seconds
        self._refusal = refusal
        self._all, self._others = asyncio.Semaphore(at_once), asyncio.Semaphore(at_once)
        self._names: WeakValueDictionary[Hashable, asyncio.Semaphore] = WeakValueDictionary()

    async def take(self, name: Hashable, *, goes_first: bool = True) -> ExitStack:
        """Wait for a turn, which ends when what this returns is closed.

        Whoever ``goes_first`` waits only for others who do.
        """
        own = self._names.setdefault(name, asyncio.Semaphore(self._each))
        if self._refusal and own.locked():
            raise RateLimitExceeded(self._refusal, {"Retry-After": "1"}, self._what)
        needs = (own, self._all) if goes_first else (own, self._others, self._all)
        with ExitStack() as taken:
            try:
                async with asyncio.timeout(self._seconds):
                    for needed in needs:
                        await needed.acquire()
                        taken.callback(needed.release)
            except TimeoutError:
                detail = f"too many {self._what} wait for their turn"
                raise Overloaded(detail) from None
            return taken.pop_all()
