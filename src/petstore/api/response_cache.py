"""Responses that are valid until the database changes."""

import asyncio
from collections.abc import Awaitable, Callable

from petstore.api.messages import Response
from petstore.databases.contract import Store

_LARGEST = 8 * 1024 * 1024
_OVERHEAD = 512


class ResponseCache:
    """The responses to reads since the last change to the database.

    A response is valid only while the database has the version it was read at, so it is never
    stale, whichever process made the change. The cache has a maximum size in bytes.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._version = -1
        self._responses: dict[tuple[str, bytes], Response] = {}
        self._room = _LARGEST
        self._is_checked = False

    async def of(
        self, path: str, query: bytes, read: Callable[[], Awaitable[Response]]
    ) -> Response:
        """Return the response to a GET; ``read`` makes it if it is not in the cache.

        Raises:
            Unavailable: the database is out of reach.
            PetstoreError: what ``read`` raises.
        """
        if not self._is_checked and not await self._check():
            return await read()
        responses, target = self._responses, (path, query)
        response = responses.get(target)
        if response is None:
            response = await read()
            size = len(path) + len(query) + len(response.body) + _OVERHEAD
            if size <= self._room:
                self._room -= size
                responses[target] = response
        return response

    async def _check(self) -> bool:
        """Forget responses of another version; return whether the database has versions.

        One check serves all requests that are ready in the event loop. Callbacks run in order, so a
        client that could know of a later change is served after ``_expire``.
        """
        version = await self._store.version()
        if version is None:
            return False
        if version != self._version:
            self._version, self._responses, self._room = version, {}, _LARGEST
        self._is_checked = True
        asyncio.get_running_loop().call_soon(self._expire)
        return True

    def _expire(self) -> None:
        self._is_checked = False
