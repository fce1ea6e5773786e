"""Requests that take much time or room: how many at once, and whose turn it is."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from weakref import WeakValueDictionary, finalize

from petstore.errors import RateLimitExceeded, Unavailable
from petstore.http.messages import Response

_OPEN = 64
# Each of them has a batch of rows in memory.
_IN_WORK = 2


class Turns:
    """Keeps files or batches from taking all the time and all the room of a process.

    One is open from the request to the end of a response with a file. A key that has ``most`` open
    ones gets 429, with a ``refusal`` and the name of the ``limit``. If the process has many, others
    wait. One of a key is worked on at a time, and few of a process, in the order in which they
    arrived. So a file that arrives slowly keeps nobody from sending another one.
    """

    def __init__(self, most: int, refusal: str, limit: str) -> None:
        self._most = most
        self._refusal = partial(RateLimitExceeded, refusal, {"Retry-After": "1"}, limit)
        self._of_keys: Counter[int] = Counter()
        self._room = asyncio.Semaphore(_OPEN)
        self._workers = asyncio.Semaphore(_IN_WORK)
        self._turns: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()

    async def respond(self, key_id: int, respond: Callable[[], Awaitable[Response]]) -> Response:
        """Return what ``respond`` returns; the request is open until its file is sent.

        Raises:
            RateLimitExceeded: the key has too many open requests.
            Unavailable: the disk has no room for a file.
        """
        if self._of_keys[key_id] >= self._most:
            raise self._refusal()
        self._of_keys[key_id] += 1
        response = None
        try:
            await self._room.acquire()
            try:
                response = await respond()
            except OSError as error:
                detail = f"cannot write a file: {error}"
                raise Unavailable(detail, "there is no room for the file now; try again") from error
            finally:
                self._room.release()
        finally:
            if response is None or response.file is None:
                self._close(key_id)
            else:
                finalize(response.file, self._close, key_id)
        return response

    @asynccontextmanager
    async def turn(self, key_id: int) -> AsyncIterator[None]:
        """Wait until a request of the key may be worked on."""
        async with self._turns.setdefault(key_id, asyncio.Lock()), self._workers:
            yield

    def _close(self, key_id: int) -> None:
        self._of_keys[key_id] -= 1
        if not self._of_keys[key_id]:
            del self._of_keys[key_id]
