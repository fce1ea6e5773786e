"""Expensive requests, one of each key at a time."""

import asyncio
from collections import Counter
from collections.abc import Callable
from functools import partial
from weakref import WeakValueDictionary

from petstore.errors import RateLimitExceeded


class Turns:
    """Lets one request of a key run at a time, in the order of arrival.

    A key that has ``most`` in progress gets 429 for another one, with the ``message`` and the name
    of the ``limit``.
    """

    def __init__(self, most: int, message: str, limit: str) -> None:
        self._most = most
        self._refusal = partial(RateLimitExceeded, message, {"Retry-After": "1"}, limit)
        self._in_progress: Counter[int] = Counter()
        self._turns: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()

    def enter(self, key_id: int) -> Callable[[], None]:
        """Count a request as in progress until the returned function is called.

        Raises:
            RateLimitExceeded: the key has too many.
        """
        if self._in_progress[key_id] >= self._most:
            raise self._refusal()
        self._in_progress[key_id] += 1
        return partial(self._leave, key_id)

    def turn(self, key_id: int) -> asyncio.Lock:
        """Return what a request of the key holds while it runs."""
        return self._turns.setdefault(key_id, asyncio.Lock())

    def _leave(self, key_id: int) -> None:
        self._in_progress[key_id] -= 1
        if not self._in_progress[key_id]:
            del self._in_progress[key_id]
