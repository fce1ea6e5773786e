"""The application as a server holds it: not yet started, called with ASGI messages."""

import io
from collections.abc import MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from petstore.api.application import Application
from petstore.api.messages import Headers
from petstore.app import create_app, create_limiter, database_of
from petstore.clock import SECOND
from petstore.domain.plans import PlanName
from petstore.logs import RequestLog
from petstore.operations.api_keys import IssuedKey
from petstore.rate_limits.contract import RateLimiter
from petstore.settings import Settings
from petstore.storage.sqlite import SqliteStore
from support.keys import issue
from support.manual_clock import ManualClock


@dataclass
class BareApp:
    """An application on the SQLite file of ``settings``, and its parts."""

    app: Application
    settings: Settings
    store: SqliteStore
    limiter: RateLimiter
    clock: ManualClock
    log: io.BytesIO

    async def issue(
        self, plan: PlanName = "enterprise", *, expires_in: float | None = None, **wanted: Any
    ) -> IssuedKey:
        """Issue a key of the environment it serves, without limits unless they are wanted."""
        expires_at = None if expires_in is None else self.clock() + int(expires_in * SECOND)
        wanted = {"environment": self.settings.environment, "expires_at": expires_at, **wanted}
        return await issue(self.store, self.clock, plan=plan, **wanted)

    async def call(
        self, method: str, target: bytes, headers: Headers, *messages: dict[str, Any]
    ) -> list[MutableMapping[str, Any]]:
        """Make one request that arrives as ``messages``, and return what was sent back."""
        arriving = iter(messages)
        sent = []

        async def receive() -> dict[str, Any]:
            return next(arriving)

        async def send(message: MutableMapping[str, Any]) -> None:
            sent.append(message)

        await self.app(http_scope(method, target, headers), receive, send)
        return sent


def http_scope(method: str, target: bytes, headers: Headers) -> dict[str, Any]:
    """Return what a server tells an application of a request."""
    path, _, query = target.partition(b"?")
    return {
        "type": "http",
        "method": method,
        "raw_path": path,
        "query_string": query,
        "headers": headers,
        "client": ("192.0.2.1", 1),
    }


def bare_app(database: Path, clock: ManualClock | None = None, **settings: Any) -> BareApp:
    """Put an application together on the SQLite file ``database``."""
    chosen = Settings(database=f"sqlite:///{database}", **settings)
    clock = clock or ManualClock()
    store = database_of(chosen)
    assert isinstance(store, SqliteStore)
    store.migrate()
    limiter = create_limiter(chosen, store, clock)
    log = io.BytesIO()
    app = create_app(chosen, store, limiter, RequestLog(log, clock, for_person=False), clock)
    return BareApp(app, chosen, store, limiter, clock, log)
