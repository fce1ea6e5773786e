"""Files that people send and get: how many at once, and whose turn it is."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary, finalize

from petstore.errors import RateLimitExceeded, Unavailable
from petstore.http.messages import Response

OPEN_OF_KEY = 4
"""How many files of a key may be on their way at once."""

_OPEN = 64
# Each of them has a batch of rows in memory.
_IN_WORK = 2


class Files:
    """Keeps files from taking all the time and all the room of a process.

    A file is open from the request to the end of the response. A key that has ``OPEN_OF_KEY`` open
    files gets 429 for another one. If the process has many, others wait, and are not received. One
    file of a key is worked on at a time, and few of a process, in the order in which they arrived.
    So a file that arrives slowly keeps nobody from sending another one.
    """

    def __init__(self) -> None:
        self._of_keys: Counter[int] = Counter()
        self._room = asyncio.Semaphore(_OPEN)
        self._workers = asyncio.Semaphore(_IN_WORK)
        self._turns: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()

    async def respond(self, key_id: int, respond: Callable[[], Awaitable[Response]]) -> Response:
        """Return what ``respond`` returns; the file of the request is open until it is sent.

        Raises:
            RateLimitExceeded: the key has too many open files.
            Unavailable: the disk has no room for a file.
        """
        if self._of_keys[key_id] >= OPEN_OF_KEY:
            msg = f"you have {OPEN_OF_KEY} files on their way: wait until one has arrived"
            raise RateLimitExceeded(msg, {"Retry-After": "1"}, "console_files")
        self._of_keys[key_id] += 1
        response = None
        try:
            await self._room.acquire()
            try:
                response = await respond()
            except OSError as error:
                detail = f"cannot write a file of the console: {error}"
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
        """Wait until a file of the key may be worked on."""
        async with self._turns.setdefault(key_id, asyncio.Lock()), self._workers:
            yield

    def _close(self, key_id: int) -> None:
        self._of_keys[key_id] -= 1
        if not self._of_keys[key_id]:
            del self._of_keys[key_id]
