"""The service in this process: the real application on a real store, driven by httpx or by hand."""

import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import httpx

from petstore.app import create_app
from petstore.backends import create_limiter, database_of
from petstore.clock import SECOND
from petstore.databases.contract import Store
from petstore.domain.plans import PlanName
from petstore.http.messages import Request, Response
from petstore.interface.application import Application
from petstore.keys.model import KeyWithToken
from petstore.limits.decide import RateLimiter
from petstore.logs import RequestLog
from petstore.observability.hooks import Observers
from petstore.settings import Settings, is_postgres, sqlite_path
from support.keys import issue
from support.manual_clock import ManualClock
from support.stores import address_of, migrate
from support.waiting import eventually

Fields: TypeAlias = list[tuple[bytes, bytes]]

SERVICE_URL = "http://petstore.test"
"""Where clients find the service."""

MASTER_SECRET = Path(__file__).with_name("master_secret.txt")
"""The master secret of services on PostgreSQL, which the operator makes."""
MASTER_SECRET.chmod(0o600)  # as a service wants it


@dataclass
class Service:
    app: Application
    settings: Settings
    store: Store
    limiter: RateLimiter
    clock: ManualClock
    log: io.BytesIO
    client: httpx.AsyncClient

    async def issue(
        self, plan: PlanName = "enterprise", *, expires_in: float | None = None, **wanted: Any
    ) -> KeyWithToken:
        """Issue a key of the environment it serves, without limits unless they are wanted."""
        expires_at = None if expires_in is None else self.clock() + int(expires_in * SECOND)
        wanted = {"environment": self.settings.environment, "expires_at": expires_at, **wanted}
        return await issue(self.store, self.clock, plan=plan, **wanted)

    async def call(
        self, method: str, target: bytes, headers: Fields, *body: bytes, is_cut_off: bool = False
    ) -> Response:
        """Make one request whose body arrives in pieces; the last one is empty or never arrives."""
        arriving = iter(body)

        async def receive() -> bytes:
            piece = next(arriving, None)
            if piece is None and is_cut_off:
                raise ConnectionError
            return piece or b""

        return await self.app(http_request(method, target, headers), receive)

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


def http_request(method: str, target: bytes, headers: Fields, client: str = "127.0.0.1") -> Request:
    path, _, query = target.partition(b"?")
    joined: dict[bytes, bytes] = {}
    for name, value in headers:
        joined[name] = joined[name] + b", " + value if name in joined else value
    names = [name for name, _ in headers]
    repeated = frozenset(name for name in names if names.count(name) > 1)
    request = Request(method, path.decode("latin-1"), query, client, joined, repeated)
    if joined.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in joined:
        request.body = "waiting"
    return request


def fields(response: Response) -> Fields:
    lines = b"\r\n".join(response.headers).split(b"\r\n")
    return [(name, value) for name, _, value in (line.partition(b": ") for line in lines)]


class InProcess(httpx.AsyncBaseTransport):
    """Hands the requests of httpx to an application, without a server."""

    def __init__(self, app: Application) -> None:
        self._app = app

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        assert isinstance(request.stream, httpx.AsyncByteStream)
        # httpx has an empty piece for an empty file; to an application it is the end.
        pieces = (piece async for piece in request.stream if piece)
        headers = [(name.lower(), value.strip(b" \t")) for name, value in request.headers.raw]
        asked = http_request(request.method, request.url.raw_path, headers)
        response = await self._app(asked, lambda: anext(pieces, b""))
        headers = [*fields(response), *([(b"connection", b"close")] if response.is_last else [])]
        content = response.body
        if response.file is not None:
            with response.file as file:
                content = file.read()
        return httpx.Response(response.status, headers=headers, content=content)


def bare_app(
    database: str | Path,
    clock: ManualClock | None = None,
    store: Store | None = None,
    observers: Observers = (),
    **settings: Any,
) -> Service:
    """Put a service together, not yet started, on ``store`` or the one at ``database``."""
    address = address_of(database)
    if is_postgres(address):
        settings = {"secret_file": str(MASTER_SECRET), **settings}
    chosen = Settings(database=address, **settings)
    clock = clock or ManualClock()
    store = store or database_of(chosen, observers)
    if not is_postgres(address):
        migrate(store, sqlite_path(address))
    limiter = create_limiter(chosen, store, clock)
    log = io.BytesIO()
    request_log = RequestLog(log, clock, for_person=False)
    app = create_app(chosen, store, limiter, request_log, clock, observers=observers)
    client = httpx.AsyncClient(transport=InProcess(app), base_url=SERVICE_URL)
    return Service(app, chosen, store, limiter, clock, log, client)


@asynccontextmanager
async def running_service(
    database: str | Path, clock: ManualClock | None = None, **settings: Any
) -> AsyncIterator[Service]:
    """Run the service until the block ends, with background work every 50 ms."""
    usual: dict[str, Any] = {
        "key_refresh_seconds": 0.05,
        "limits_save_seconds": 0.05,
        "database_timeout": 10,  # on a busy machine slow is no failure
    }
    service = bare_app(database, clock, **(usual | settings))
    async with service.app.lifespan(), service.client:
        yield service
