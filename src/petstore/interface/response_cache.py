"""Pages of lists, each kept until a change shows on it."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from petstore.databases.contract import Store
from petstore.events.changes import Extent, RecentChanges
from petstore.generations import Generations
from petstore.http.messages import Response

_GENERATION_BYTES = 16 * 1024 * 1024
_OVERHEAD = 1792  # what a page takes beside its text


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

    async def get(self, target: _Target, read: _Read) -> Response:
        """Return the response to a GET; ``read`` makes it if it is not in the cache."""
        changes, page = self._changes, self._pages.get(target)
        known = changes.count if changes.is_current else await changes.catch_up()
        if page is not None and (
            page.checked == known or not changes.show_on(page.extent, page.checked)
        ):
            page.checked = known
            return page.response
        response, extent = await read()
        if extent is not None:
            # Behind what it encodes, msgspec leaves a third more room. A copy has none.
            response = replace(response, body=memoryview(response.body).tobytes())
            self._pages.put(target, _Page(response, extent, known))
        return response


def _size(target: _Target, page: _Page) -> int:
    response = page.response
    return sum(map(len, (*target, response.body, *response.headers))) + _OVERHEAD
