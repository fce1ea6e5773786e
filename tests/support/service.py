"""The service in this process: the real application on a real SQLite file, driven by httpx."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from support.bare_app import BareApp, InProcess, bare_app
from support.manual_clock import ManualClock
from support.waiting import eventually

SERVICE_URL = "http://petstore.test"
"""Where clients find the service."""


@dataclass
class Service(BareApp):
    client: httpx.AsyncClient

    async def request(
        self, method: str, path: str, token: str | None = None, **options: Any
    ) -> httpx.Response:
        headers = httpx.Headers(options.pop("headers", None))
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        return await self.client.request(method, path, headers=headers, **options)

    async def status_becomes(self, token: str, status: int, path: str = "/v1/x") -> None:
        """Wait until it has seen a change to a key."""

        async def is_status() -> bool:
            return (await self.request("GET", path, token)).status_code == status

        await eventually(is_status)


@asynccontextmanager
async def running_service(
    database: str | Path, clock: ManualClock | None = None, **settings: Any
) -> AsyncIterator[Service]:
    """Run the service on the store at an address or in a SQLite file, until the block ends.

    Background work (saving counts, noticing changed keys) runs every 50 ms.
    """
    usual: dict[str, Any] = {
        "key_refresh_seconds": 0.05,
        "limits_save_seconds": 0.05,
        "database_timeout": 10,  # on a busy machine slow is no failure
    }
    bare = bare_app(database, clock, **(usual | settings))
    async with bare.app.lifespan():
        transport = InProcess(bare.app)
        async with httpx.AsyncClient(transport=transport, base_url=SERVICE_URL) as client:
            yield Service(**vars(bare), client=client)
