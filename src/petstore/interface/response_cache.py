"""Pages of lists, each kept until a change shows on it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from msgspec import Struct

from petstore.databases.contract import Store
from petstore.events.changes import Extent, RecentChanges
from petstore.generations import Generations
from petstore.http.messages import Response

_GENERATION_BYTES = 16 * 1024 * 1024
_OVERHEAD = 1024
_LONGEST = 60  # s


_Target: TypeAlias = tuple[str, str, bytes]
"""What a GET asks for: the URL of the service, which the links of a page have, path and query."""

_Read: TypeAlias = Callable[[], Awaitable[tuple[Response, Extent | None]]]
"""Makes a response, and says what it shows. One without an extent is not kept."""


class _Page(Struct):
    """A response, what it shows, and the number of the changes that were known to leave it."""

    response: Response
    extent: Extent
    checked: int


class ResponseCache:
    """The responses to reads on which no change has shown since.

    A response is never older than a committed change, whichever process made it. Each of two
    generations has ``generation_bytes``.
    """

    def __init__(self, store: Store, generation_bytes: int = _GENERATION_BYTES) -> None:
        self._changes = RecentChanges(store)
        self._pages = Generations(generation_bytes, _size)
        self._known: int | None = None
        self._ends = 0.0

    async def get(self, target: _Target, read: _Read) -> Response:
        """Return the response to a GET; ``read`` makes it if it is not in the cache.

        Raises:
            Unavailable: the database is unreachable.
            PetstoreError: what ``read`` raises.
        """
        known = await self._catch_up() if self._known is None else self._known
        if known is None:
            return (await read())[0]
        page = self._pages.get(target)
        if page is not None and not self._changes.show_on(page.extent, page.checked):
            page.checked = known
            return page.response
        response, extent = await read()
        if extent is not None:
            self._pages.put(target, _Page(response, extent, known))
        return response

    async def _catch_up(self) -> int | None:
        """Learn of all changes; return how many there were, if the database has a way to tell.

        Once serves all requests that are ready in the event loop. Callbacks run in order, so a
        client that could know of a later change is served after ``_expire``.
        """
        self._known = await self._changes.catch_up()
        if self._known is None:
            return None
        loop = asyncio.get_running_loop()
        if loop.time() >= self._ends:  # what somebody changed by hand left no event
            self._ends = loop.time() + _LONGEST
            self._pages.clear()
        loop.call_soon(self._expire)
        return self._known

    def _expire(self) -> None:
        self._known = None


def _size(target: _Target, page: _Page) -> int:
    return sum(map(len, target)) + len(page.response.body) + _OVERHEAD
