"""The clients of a store for the callers of an MCP server: one for each key."""

from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx2

from petstore_client import AsyncClient

_MAX_CLIENTS = 200

# An agent is told to wait, rather than kept waiting: its host gives up after a while.
_MAX_WAIT_SECONDS = 5
_TIMEOUT_SECONDS = 10  # three times, if the store is silent


@dataclass
class _Lease:
    client: AsyncClient
    users: int = 0


class Clients:
    """Keeps the clients of the keys used last, so that each keeps to the limits of its key.

    No two keys share a client. Beyond ``most`` of them, those that nobody uses now are closed.
    ``url`` is the base URL of the store.

    Raises:
        ValueError: the environment names a proxy that cannot be used.
    """

    def __init__(self, url: str, most: int = _MAX_CLIENTS) -> None:
        self.url = url
        self._most = most
        self._leases: OrderedDict[str, _Lease] = OrderedDict()
        self._tls = httpx2.create_ssl_context()  # it takes long to read the certificates
        self.open("any")  # so that it raises now, and not with the first request

    def __len__(self) -> int:
        return len(self._leases)

    def open(self, key: str) -> AsyncClient:
        """Return another client of a key, which the caller closes."""
        return AsyncClient(
            key,
            self.url,
            timeout=_TIMEOUT_SECONDS,
            max_wait=_MAX_WAIT_SECONDS,
            ssl_context=self._tls,
        )

    @asynccontextmanager
    async def use(self, key: str) -> AsyncIterator[AsyncClient]:
        """Give the client of a key, which stays open until the block ends."""
        lease = self._leases.get(key)
        if lease is None:
            lease = self._leases[key] = _Lease(self.open(key))
        self._leases.move_to_end(key)
        lease.users += 1
        try:
            yield lease.client
        finally:
            lease.users -= 1
            await self._close(len(self._leases) - self._most)

    async def close(self) -> None:
        """Close all clients that nobody uses."""
        await self._close(len(self._leases))

    async def _close(self, count: int) -> None:
        idle = [key for key, lease in self._leases.items() if not lease.users][: max(count, 0)]
        closed = [self._leases.pop(key).client for key in idle]
        for client in closed:
            await client.close()
