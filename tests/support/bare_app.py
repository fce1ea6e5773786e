"""The application as a server holds it: not yet started, called with ASGI messages."""

import io
from collections.abc import MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from petstore.api.application import Application
from petstore.api.messages import Headers
from petstore.app import create_app, create_limiter, sqlite_store
from petstore.domain.api_keys import DEFAULT_SCOPES
from petstore.logs import RequestLog
from petstore.operations.api_keys import create_key
from petstore.settings import Settings
from petstore.storage.api_keys import NewApiKey
from petstore.storage.sqlite import SqliteStore
from support.manual_clock import ManualClock


@dataclass
class BareApp:
    """An application on the SQLite file of ``settings``, and its parts."""

    app: Application
    store: SqliteStore
    clock: ManualClock

    async def issue(self) -> str:
        """Issue a key without limits and return its token."""
        scopes = frozenset(DEFAULT_SCOPES)
        new = NewApiKey("test", "enterprise", None, None, scopes, "production", None)
        return (await create_key(self.store, new, self.clock)).token

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

        path, _, query = target.partition(b"?")
        scope = {
            "type": "http",
            "method": method,
            "raw_path": path,
            "query_string": query,
            "headers": headers,
            "client": ("192.0.2.1", 1),
        }
        await self.app(scope, receive, send)
        return sent


def bare_app(database: Path, **settings: Any) -> BareApp:
    """Put an application together on the SQLite file ``database``."""
    chosen = Settings(database=f"sqlite:///{database}", **settings)
    clock = ManualClock()
    store = sqlite_store(chosen)
    store.migrate()
    log = RequestLog(io.BytesIO(), clock, for_person=False)
    app = create_app(chosen, store, create_limiter(chosen, store, clock), log, clock)
    return BareApp(app, store, clock)
