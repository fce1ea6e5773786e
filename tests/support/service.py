"""The service in this process: the real application on a real SQLite file, driven by httpx."""

import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx

from petstore.app import create_app, create_limiter
from petstore.clock import SECOND
from petstore.domain.api_keys import DEFAULT_SCOPES, Scope
from petstore.domain.plans import PlanName
from petstore.logs import RequestLog
from petstore.operations.api_keys import IssuedKey, create_key
from petstore.rate_limits.contract import RateLimiter
from petstore.settings import Settings
from petstore.storage.api_keys import NewApiKey
from petstore.storage.sqlite import SqliteStore
from support.manual_clock import ManualClock


@dataclass
class Service:
    """A running service and what a test needs to talk to it."""

    client: httpx.AsyncClient
    clock: ManualClock
    store: SqliteStore
    limiter: RateLimiter
    settings: Settings
    log: io.BytesIO

    async def issue(
        self,
        plan: PlanName = "enterprise",
        *,
        per_minute: int | None = None,
        per_day: int | None = None,
        scopes: frozenset[Scope] = frozenset(DEFAULT_SCOPES),
        expires_in: float | None = None,
        name: str = "test",
    ) -> IssuedKey:
        """Issue a key of the service's environment."""
        expires_at = None if expires_in is None else self.clock() + int(expires_in * SECOND)
        new = NewApiKey(
            name, plan, per_minute, per_day, scopes, self.settings.environment, expires_at
        )
        return await create_key(self.store, new, self.clock)

    async def request(
        self, method: str, path: str, token: str | None = None, **options: Any
    ) -> httpx.Response:
        """Send one request, with ``token`` as its bearer token."""
        headers = httpx.Headers(options.pop("headers", None))
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        return await self.client.request(method, path, headers=headers, **options)


@asynccontextmanager
async def running_service(
    path: Path, clock: ManualClock | None = None, **settings: Any
) -> AsyncIterator[Service]:
    """Run the service on the SQLite file ``path``, until the block ends.

    Background work (saving counts, noticing changed keys) runs every 10 ms.
    """
    chosen = replace(
        Settings(key_refresh_seconds=0.01, limits_save_seconds=0.01),
        database=f"sqlite:///{path}",
        **settings,
    )
    clock = clock or ManualClock()
    store = SqliteStore(chosen.sqlite_path, int(chosen.database_seconds * SECOND))
    store.migrate()
    limiter = create_limiter(chosen, store, clock)
    log = io.BytesIO()
    app = create_app(chosen, store, limiter, RequestLog(log, clock, for_person=False), clock)
    async with app.lifespan():
        transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
        async with httpx.AsyncClient(
            transport=transport, base_url="http://petstore.test"
        ) as client:
            yield Service(client, clock, store, limiter, chosen, log)
