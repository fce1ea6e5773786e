"""Followers: clients that read the feed of events, whatever happens to the service."""

import asyncio
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from proof.wire import Lost, Response, Wire, request

_LATEST = re.compile(rb'\r\nlink: .*<(?:https?://[^/]+)?(/[^>]+)>; rel="latest"')
_RETRY_PAUSE = 0.02  # s


class Follower:
    """Reads the feed of the service at ``port()`` along its links, waiting up to ``wait`` seconds.

    A request without a response is sent again. ``unexpected`` has responses that no client should
    ever see.
    """

    def __init__(self, port: Callable[[], int], token: str, wait: int) -> None:
        self.events: list[dict[str, Any]] = []
        self.unexpected: list[str] = []
        self._port = port
        self._token = token
        self._target = f"/v1/events?limit=100&wait={wait}"
        self._wire = Wire()

    async def follow(self) -> None:
        """Read on until this task is cancelled."""
        try:
            while True:
                if not await self._read():
                    await asyncio.sleep(_RETRY_PAUSE)
        finally:
            self._wire.close()

    async def read_to_the_end(self) -> None:
        """Read until there is no more event."""
        while await self._read():
            pass
        self._wire.close()

    async def _read(self) -> int:
        """Read the next page; return how many events were in it."""
        response = await self._ask()
        while response is None or response.status == 503:
            await asyncio.sleep(_RETRY_PAUSE)
            response = await self._ask()
        link = _LATEST.search(response.head)
        if response.status != 200 or link is None:
            self.unexpected.append(f"{self._target}: {response.status} {response.body[:200]!r}")
            return 0
        self._target = link[1].decode("ascii")
        self.events += response.content
        return len(response.content)

    async def _ask(self) -> Response | None:
        with suppress(OSError, Lost):
            if not self._wire.is_connected:
                await self._wire.connect(self._port())
            return await self._wire.ask(request("GET", self._target, self._token))
        return None
