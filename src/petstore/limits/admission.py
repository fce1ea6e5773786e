"""Every budget beside the plans of keys: how many a minute, by whom, and how many at once."""

import asyncio
import sys
from collections.abc import Hashable
from contextlib import ExitStack
from weakref import WeakValueDictionary

from petstore.clock import Clock
from petstore.errors import Overloaded, RateLimitExceeded
from petstore.limits.decide import Budget
from petstore.limits.memory import MinuteLimiter
from petstore.settings import Settings


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
        """Take a turn, which ends with the result. ``goes_first``: wait only for others who do."""
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
                raise Overloaded(f"too many {self._what} wait for their turn") from None
            return taken.pop_all()


KEY = Budget("key", "this key")
"""Its plan, which a ``RateLimiter`` judges, with its day and its bans."""

PASSWORD = Budget("password", "wrong passwords for this login", 10)
"""Of a login in a network, or in a browser that knows the person, or of a session."""

PASSWORD_OF_NETWORK = Budget("password", "wrong passwords from your network", 60)
"""Of a network, for all logins together."""

_LOOK_UP = Budget("lookup", "this address without a key that the service knows")
_UNCHARGED = Budget("operation", "this key for requests that cost nothing")
_PAGE = Budget("console", "your pages in the console")


class Admission:
    """The budgets of a process. Those that processes share are counted by the ``RateLimiter``."""

    def __init__(self, clock: Clock, settings: Settings) -> None:
        each, addresses = settings.anonymous_per_minute, settings.max_tracked_addresses
        self.address = Budget("address", "this address without a valid key", each, addresses)
        """Requests without a valid key, of a network; processes share it."""
        look_up = _LOOK_UP._replace(per_minute=each, capacity=addresses)
        self.look_ups = MinuteLimiter[str](clock, look_up)
        """Look-ups of keys that are not valid, and forms of strangers, of a network."""
        self.uncharged = MinuteLimiter[int](
            clock, _UNCHARGED._replace(per_minute=settings.usage_per_minute)
        )
        """Requests of a key that cost nothing of its plan."""
        self.pages = MinuteLimiter[tuple[int, str]](
            clock, _PAGE._replace(per_minute=settings.console_per_minute)
        )
        """Pages of the console, of a caller in a network."""
        msg = "this key has 8 batches in progress: wait until one has its response"
        self.batches = Turns("batches", each=8, refusal=msg)  # each has its body in memory
        self.working_batches = Turns("batches", 2)
        msg = "you have 4 files on their way: wait until one has arrived"
        self.files = Turns("console_files", 64, each=4, refusal=msg)
        """Files of a caller: in the console to the end of the response, over the interface too."""
        self.working_files = Turns("console_files", 2)  # each has a batch of rows in memory
        self.readings = Turns("files", 2, seconds=20)  # each has the words of a file in memory
        self.reading = asyncio.Lock()  # may take 200 MiB and a processor
        self.passwords = Turns("passwords", 2, seconds=5)  # each takes 64 MiB meanwhile
