"""Answers that are good until the database changes."""

import asyncio
from collections.abc import Awaitable, Callable

from petstore.databases.contract import Store
from petstore.http.messages import Response

_LARGEST = 8 * 1024 * 1024
_OVERHEAD = 512


class ResponseCache:
    """The answers to reads since the last change to the database.

    One is taken from here only while the database is at the version it was read at, so it is never
    stale, whoever made the change. Callers choose what is asked, so the bytes kept are bounded.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._version = -1
        self._answers: dict[tuple[str, bytes], Response] = {}
        self._room = _LARGEST
        self._is_checked = False

    async def of(
        self, path: str, query: bytes, read: Callable[[], Awaitable[Response]]
    ) -> Response:
        """Return the answer to a GET, which ``read`` makes if there is none yet.

        Raises:
            Unavailable: the database is out of reach.
            PetstoreError: what ``read`` raises.
        """
        if not self._is_checked and not await self._check():
            return await read()
        answers, target = self._answers, (path, query)
        answer = answers.get(target)
        if answer is None:
            answer = await read()
            size = len(path) + len(query) + len(answer.body) + _OVERHEAD
            if size <= self._room:
                self._room -= size
                answers[target] = answer
        return answer

    async def _check(self) -> bool:
        """Forget the answers of another version; return whether the database tells its version.

        One check serves all requests that wait in the loop already. Callbacks run in the order in
        which they came: whoever could know of a later change comes after ``_expire``.
        """
        version = await self._store.version()
        if version is None:
            return False
        if version != self._version:
            self._version, self._answers, self._room = version, {}, _LARGEST
        self._is_checked = True
        asyncio.get_running_loop().call_soon(self._expire)
        return True

    def _expire(self) -> None:
        self._is_checked = False
