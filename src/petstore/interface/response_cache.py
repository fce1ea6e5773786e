"""Responses that are valid until the database changes."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from petstore.databases.contract import Store
from petstore.generations import Generations
from petstore.http.messages import Response

_GENERATION_BYTES = 16 * 1024 * 1024
_OVERHEAD = 512


Target: TypeAlias = tuple[str, str, bytes]
"""What a GET asks for: the URL of the service, which the links of a page have, path and query."""


class ResponseCache:
    """The responses to reads since the last change to the database.

    A response is valid only while the database has the version it was read at, so it is never
    stale, whichever process made the change. Each of two generations has ``generation_bytes``.
    """

    def __init__(self, store: Store, generation_bytes: int = _GENERATION_BYTES) -> None:
        self._store = store
        self._responses = Generations(generation_bytes, _size)
        self._version = -1
        self._is_checked = False

    async def get(self, target: Target, read: Callable[[], Awaitable[Response]]) -> Response:
        """Return the response to a GET; ``read`` makes it if it is not in the cache.

        Raises:
            Unavailable: the database is unreachable.
            PetstoreError: what ``read`` raises.
        """
        if not self._is_checked and not await self._check():
            return await read()
        response = self._responses.get(target)
        if response is None:
            version = self._version
            response = await read()
            if version == self._version:
                self._responses.put(target, response)
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
            self._version = version
            self._responses.clear()
        self._is_checked = True
        asyncio.get_running_loop().call_soon(self._expire)
        return True

    def _expire(self) -> None:
        self._is_checked = False


def _size(target: Target, response: Response) -> int:
    return sum(map(len, target)) + len(response.body) + _OVERHEAD
