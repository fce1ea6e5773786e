"""How an MCP server runs: on standard input and output, or over HTTP."""

import asyncio
import logging
import os
import re
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from ipaddress import ip_address
from typing import Any

from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings

from petstore.agents.callers import Callers
from petstore.agents.clients import Clients
from petstore.agents.documents import Documents
from petstore.agents.endpoint import AgentRequest, Endpoint
from petstore.agents.lines import Lines
from petstore.agents.server import AgentServer, ClientFor, Context
from petstore.agents.tools import TOOLS, InvalidArguments
from petstore.chores import background
from petstore.clock import system_clock
from petstore.limits.minutes import MinuteLimiter, network_of
from petstore.logs import RequestLine
from petstore.server.listeners import http_server
from petstore.settings import Settings
from petstore_client import AsyncClient, PetstoreError

LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "[::1]")

_HOST = re.compile(r"[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]")
_STOP_SECONDS = 10


def agent_server(client_for: ClientFor, *, writes: bool) -> AgentServer:
    """Return a server with all tools, and with those that change something if it ``writes``."""
    documents = Documents()
    return AgentServer(TOOLS, client_for, documents, system_clock, writes=writes)


async def serve_stdio(client: AsyncClient, *, writes: bool) -> None:
    """Serve the program that has started this process, until it closes standard input."""

    @asynccontextmanager
    async def one_client(_: Context) -> Any:
        yield client

    protocol = agent_server(one_client, writes=writes).protocol
    lines = Lines(sys.stdin.buffer)
    async with client, stdio_server(stdin=lines) as (incoming, outgoing):  # type: ignore[arg-type]
        lines.send = outgoing.send
        await protocol.run(incoming, outgoing, protocol.create_initialization_options())


def run_stdio(client: AsyncClient, *, writes: bool) -> None:
    """Run ``serve_stdio``. Ctrl-C, or an agent that stops reading, ends the process at once."""
    # Else it would wait for the thread that reads standard input. There is nothing to finish.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        asyncio.run(serve_stdio(client, writes=writes))
    except* BrokenPipeError:  # the agent has left, and that thread still waits for its messages
        os._exit(0)


async def serve_http(
    listener: socket.socket,
    clients: Clients,
    hosts: Collection[str],
    stop: asyncio.Event,
    *,
    settings: Settings,
    note: Callable[[RequestLine], None],
    writes: bool,
) -> None:
    """Serve clients on ``listener`` until ``stop`` is set, each with its own key.

    They reach it by ``hosts``, with any port. Requests of web pages, which have an ``Origin``, are
    refused. ``note`` gets a line about each request.
    """

    @asynccontextmanager
    async def client_of(context: Context) -> AsyncIterator[AsyncClient]:
        request: AgentRequest = context.request.state.exchange  # type: ignore[union-attr]
        async with clients.use(request.key) as client:
            try:
                # So the log of the store has the same id, and tells whose key it is.
                yield client.with_options(headers={"X-Request-Id": request.request_id})
            except PetstoreError as error:
                request.code = error.code or "no_response"
                raise
            except InvalidArguments:
                request.code = "invalid_request"
                raise

    protocol = agent_server(client_of, writes=writes).protocol
    allowed = [name for host in hosts for name in (host.lower(), f"{host.lower()}:*")]
    manager = StreamableHTTPSessionManager(
        protocol,
        json_response=True,
        stateless=True,
        security_settings=TransportSecuritySettings(allowed_hosts=allowed),
    )
    per_minute, table = settings.anonymous_per_minute, settings.max_tracked_addresses
    look_ups = MinuteLimiter[str](system_clock, per_minute, table, network_of)
    callers = Callers(clients, look_ups)
    endpoint = Endpoint(manager, callers, hosts, settings, note, clients.url.removesuffix("/v1"))
    async with manager.run(), background(endpoint.bodies.chore, callers.chore):
        server = http_server(settings, listener, endpoint)
        serving = asyncio.ensure_future(server.serve())
        await stop.wait()
        server.stop()
        await asyncio.wait([serving], timeout=_STOP_SECONDS)
    await clients.close()


def run_http(
    listener: socket.socket,
    clients: Clients,
    hosts: Collection[str],
    report_ready: Callable[[], object],
    *,
    settings: Settings,
    writes: bool,
) -> None:
    """Run ``serve_http`` until a stop signal; ``report_ready`` is called first."""
    from petstore.app import open_log  # here, because only this needs all the rest of the service

    async def run() -> None:
        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        report_ready()
        await serve_http(
            listener, clients, hosts, stop, settings=settings, note=log.add, writes=writes
        )

    log = open_log(settings)
    # Its warnings quote what clients send.
    logging.getLogger("mcp").setLevel(logging.ERROR)
    try:
        asyncio.run(run())
    finally:
        log.close()


def is_loopback(host: str) -> bool:
    """Return whether only this machine can connect to ``host``."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def is_host(text: str) -> bool:
    """Return whether ``text`` is a host as clients send it, without a port."""
    return _HOST.fullmatch(text) is not None
