"""Files that people send and get: how many at once, and whose turn it is."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from weakref import finalize

from petstore.errors import Unavailable
from petstore.http.messages import Response
from petstore.interface.turns import Turns

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
        msg = f"you have {OPEN_OF_KEY} files on their way: wait until one has arrived"
        self._of_keys = Turns(OPEN_OF_KEY, msg, "console_files")
        self._room = asyncio.Semaphore(_OPEN)
        self._workers = asyncio.Semaphore(_IN_WORK)

    async def respond(self, key_id: int, respond: Callable[[], Awaitable[Response]]) -> Response:
        """Return what ``respond`` returns; the file of the request is open until it is sent.

        Raises:
            RateLimitExceeded: the key has too many open files.
            Unavailable: the disk has no room for a file.
        """
        close, response = self._of_keys.enter(key_id), None
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
                close()
            else:
                finalize(response.file, close)
        return response

    @asynccontextmanager
    async def turn(self, key_id: int) -> AsyncIterator[None]:
        """Wait until a file of the key may be worked on."""
        async with self._of_keys.turn(key_id), self._workers:
            yield
