"""How an MCP server runs: on standard input and output, or over HTTP. The SDK carries both."""

import asyncio
import logging
import os
import re
import signal
import socket
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from functools import lru_cache, partial
from typing import TypeAlias
from weakref import WeakValueDictionary

import anyio
import uvicorn
from anyio.to_thread import run_sync
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from petstore.agents.server import agent_server
from petstore.http.open_files import room_for
from petstore_client import AsyncClient
from petstore_client._transport import LoopTransport
from petstore_client._transport import Route as Network

_LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "[::1]")

# A batch of animals with the longest names, in any language, is smaller, and has fewer values. The
# SDK validates a message several times, and would hold everybody while it does that.
_MAX_MESSAGE = 256 * 1024
_MAX_VALUES = 2000
_MAX_REQUESTS = 64  # of an address at once; few of them are with the SDK, so that others are, too
_MAX_AT_WORK = 4
_ARRIVAL_SECONDS = 10  # for a head, and for a body
_STOP_SECONDS = 10
_MAX_CONNECTIONS = 10_000
_MAX_CLIENTS = 200
# An agent is told to wait, rather than kept waiting: its host gives up after a while.
_MAX_WAIT_SECONDS = 5
_TIMEOUT_SECONDS = 10  # three times, if the store is silent
_KEY = re.compile("[!-~]+")
_ClientFor: TypeAlias = Callable[[str], AsyncClient]


def clients_at(url: str) -> _ClientFor:
    """Return what gives the client of a key, which keeps to its limits, for the store at ``url``.

    All clients share their connections, and are closed with any of them.

    Raises:
        ValueError: the environment names a proxy that cannot be used.
    """
    opened = partial(
        AsyncClient,
        base_url=url,
        timeout=_TIMEOUT_SECONDS,
        max_wait=_MAX_WAIT_SECONDS,
        transport=LoopTransport(Network(url)),
    )
    return lru_cache(_MAX_CLIENTS)(opened)


def run_stdio(client: AsyncClient, *, writes: bool) -> None:
    """Serve the program that has started this process, until it closes standard input.

    Ctrl-C, or an agent that stops reading, ends the process at once.
    """

    async def run() -> None:
        server = agent_server(lambda _: client, writes=writes)
        async with client, stdio_server(_lines()) as (incoming, outgoing):  # type: ignore[arg-type]
            await server.run(incoming, outgoing, server.create_initialization_options())

    # Else it would wait for the thread that reads standard input. There is nothing to finish.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        asyncio.run(run())
    except* BrokenPipeError:  # the agent has left, and that thread still waits for its messages
        os._exit(0)


async def _lines() -> AsyncIterator[str]:
    """Give the lines of standard input. The SDK waits for its thread, also when nobody reads."""
    while line := await run_sync(sys.stdin.buffer.readline, abandon_on_cancel=True):
        yield line.decode(errors="replace")


def run_http(listener: socket.socket, app: Starlette, proxies: Iterable[object]) -> None:
    """Serve ``app`` on ``listener`` until a stop signal; ``proxies`` tell who calls."""
    for name in ("mcp", "uvicorn"):  # their warnings quote what clients send
        logging.getLogger(name).setLevel(logging.ERROR)
    for number in (signal.SIGINT, signal.SIGTERM):  # uvicorn raises them again when it has stopped
        signal.signal(number, lambda *_: None)
    room_for(_MAX_CONNECTIONS)
    http_server(app, proxies).run([listener])


def http_server(app: Starlette, proxies: Iterable[object] = ()) -> uvicorn.Server:
    """Return the HTTP server for ``app``."""
    config = uvicorn.Config(
        app,
        http=_Connection,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        forwarded_allow_ips=[str(proxy) for proxy in proxies],
        timeout_graceful_shutdown=_STOP_SECONDS,
    )
    return uvicorn.Server(config)


def agent_app(client_for: _ClientFor, hosts: Iterable[str], *, writes: bool) -> Starlette:
    """Return an application for agents of this machine, and those that reach it by ``hosts``."""
    server = agent_server(lambda context: context.request.state.client, writes=writes)  # type: ignore[union-attr]
    manager = StreamableHTTPSessionManager(server, json_response=True, stateless=True)
    allowed = [host.lower() for host in (*_LOOPBACK_HOSTS, *hosts)]
    allowed += [f"{host}:*" for host in allowed]
    security = TransportSecuritySettings(allowed_hosts=allowed)

    @asynccontextmanager
    async def running(_: Starlette) -> AsyncIterator[None]:
        async with client_for("any"), manager.run():
            yield

    endpoint = Endpoint(manager, client_for, TransportSecurityMiddleware(security))
    route = Route("/mcp", endpoint, methods=["POST"], max_body_size=_MAX_MESSAGE)
    return Starlette(routes=[route], lifespan=running)


class Endpoint:
    """Answers requests that have a key: each is complete in itself, and there are no sessions.

    A key has one request at a time, and an address a few. Requests of web pages, which have an
    ``Origin``, and those for other hosts, which a page may have made a browser send, are refused.
    """

    def __init__(
        self,
        manager: StreamableHTTPSessionManager,
        client_for: _ClientFor,
        security: TransportSecurityMiddleware,
    ) -> None:
        self._manager = manager
        self._client_for = client_for
        self._security = security
        self._requests = Counter[str]()
        self._turns = WeakValueDictionary[str, asyncio.Semaphore]()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to a request."""
        headers = {**dict(scope["headers"]), b"accept": b"application/json"}  # many send none
        headers[b"host"] = headers.get(b"host", b"").lower()
        request = Request({**scope, "headers": [*headers.items()]}, receive)
        address = scope["client"][0]
        self._requests[address] += 1
        try:
            refusal = await self._security.validate_request(request, is_post=True)
            if refusal is None:
                await self._respond(request, address, send)
            else:
                await refusal(scope, receive, send)
        finally:
            self._requests[address] -= 1
            self._requests += Counter()  # without those that have none now

    async def _respond(self, request: Request, address: str, send: Send) -> None:
        if self._requests[address] > _MAX_REQUESTS:
            raise HTTPException(429, "too many requests at once", {"Retry-After": "1"})
        scheme, _, key = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not _KEY.fullmatch(key):
            msg = "expected Authorization: Bearer <API_KEY>"
            raise HTTPException(401, msg, {"WWW-Authenticate": 'Bearer realm="petstore"'})
        try:
            async with asyncio.timeout(_ARRIVAL_SECONDS) as arrival, self._turn(key, 1):
                body = await request.body()
                if sum(map(body.count, (b"[", b"{", b",", b":"))) > _MAX_VALUES:
                    raise HTTPException(413, f"expected at most {_MAX_VALUES} values")
                async with self._turn(f"of {address}", _MAX_AT_WORK):
                    arrival.reschedule(None)
                    await self._ask(request, key, address, send)
        except TimeoutError:
            msg = "the body did not arrive in time, or another request of this key is under way"
            raise HTTPException(408, msg) from None
        except ClientDisconnect:
            pass  # nobody waits for the response

    def _turn(self, name: str, count: int) -> asyncio.Semaphore:
        return self._turns.setdefault(name, asyncio.Semaphore(count))

    async def _ask(self, request: Request, key: str, address: str, send: Send) -> None:
        """Let the SDK respond to a message, until the agent leaves."""
        messages: list[Message] = [{"type": "http.request", "body": await request.body()}]
        try:  # so the limits and networks of the store see who calls, if it trusts this process
            client = self._client_for(key).with_options(headers={"X-Forwarded-For": address})
        except ValueError:
            raise HTTPException(400, "X-Forwarded-For: expected addresses") from None

        async def receive() -> Message:
            if not messages:
                await anyio.sleep_forever()
            return messages.pop()

        async def cancel_if_left() -> None:
            while (await request.receive())["type"] != "http.disconnect":
                pass
            tasks.cancel_scope.cancel()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(cancel_if_left)
            scope = {**request.scope, "state": {"client": client}}
            await self._manager.handle_request(scope, receive, send)
            tasks.cancel_scope.cancel()


class _Connection(H11Protocol):
    """A connection on which each head begins and ends in time: uvicorn would wait for it."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect_request()

    def on_response_complete(self) -> None:
        self._expect_request()
        super().on_response_complete()

    def _expect_request(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_later(_ARRIVAL_SECONDS, self._close_without, self.cycle)

    def _close_without(self, last: object) -> None:
        if self.cycle is last:  # there is no other request since
            self.transport.abort()
