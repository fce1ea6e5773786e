"""How an MCP server runs: on standard input and output, or over HTTP."""

import asyncio
import re
import signal
import socket
from collections.abc import Callable, Collection
from contextlib import asynccontextmanager
from ipaddress import ip_address
from typing import Any

from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings

from petstore.agents.clients import Clients
from petstore.agents.documents import Documents
from petstore.agents.endpoint import Endpoint
from petstore.agents.server import AgentServer, ClientFor, Context
from petstore.agents.tools import TOOLS
from petstore.chores import background
from petstore.clock import system_clock
from petstore.http.server import ConnectionLimits, HttpServer
from petstore.interface.site import service_site
from petstore_client import AsyncClient

LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "[::1]")

_HOST = re.compile(r"[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]")
_LIMITS = ConnectionLimits(connections=400)
_STOP_SECONDS = 10


def agent_server(client_for: ClientFor, *, writes: bool) -> AgentServer:
    """Return a server with all tools, and with those that change something if it ``writes``."""
    documents = Documents(service_site())
    return AgentServer(TOOLS, client_for, documents, system_clock, writes=writes)


async def serve_stdio(client: AsyncClient, *, writes: bool) -> None:
    """Serve the program that has started this process, until it closes standard input."""

    @asynccontextmanager
    async def one_client(_: Context) -> Any:
        yield client

    protocol = agent_server(one_client, writes=writes).protocol
    async with client, stdio_server() as (incoming, outgoing):
        await protocol.run(incoming, outgoing, protocol.create_initialization_options())


def run_stdio(client: AsyncClient, *, writes: bool) -> None:
    """Run ``serve_stdio``. Ctrl-C ends the process at once."""
    # Else it would wait for the thread that reads standard input. There is nothing to finish.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    asyncio.run(serve_stdio(client, writes=writes))


async def serve_http(
    listener: socket.socket,
    clients: Clients,
    hosts: Collection[str],
    stop: asyncio.Event,
    *,
    writes: bool,
) -> None:
    """Serve clients on ``listener`` until ``stop`` is set, each with its own key.

    They reach it by ``hosts``, with any port. Requests of web pages, which have an ``Origin``, are
    refused.
    """
    protocol = agent_server(lambda context: clients.use(_key_of(context)), writes=writes).protocol
    allowed = [name for host in hosts for name in (host, f"{host}:*")]
    manager = StreamableHTTPSessionManager(
        protocol,
        json_response=True,
        stateless=True,
        security_settings=TransportSecuritySettings(allowed_hosts=allowed),
    )
    endpoint = Endpoint(manager, clients.url.removesuffix("/v1"))
    async with manager.run(), background(endpoint.bodies.chore):
        server = HttpServer(endpoint, listener, _LIMITS, _counted_as)
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
    writes: bool,
) -> None:
    """Run ``serve_http`` until a stop signal; ``report_ready`` is called first."""

    async def run() -> None:
        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        report_ready()
        await serve_http(listener, clients, hosts, stop, writes=writes)

    asyncio.run(run())


def is_loopback(host: str) -> bool:
    """Return whether only this machine can connect to ``host``."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def is_host(text: str) -> bool:
    """Return whether ``text`` is a host as clients send it, without a port."""
    return _HOST.fullmatch(text) is not None


def _counted_as(address: str) -> str | None:
    # A proxy on this machine brings many callers.
    return None if is_loopback(address) else address


def _key_of(context: Context) -> str:
    """Return the key that a request came with; ``Endpoint`` has seen that it has one."""
    authorization: str = context.request.headers["authorization"]  # type: ignore[union-attr]
    return authorization.partition(" ")[2].strip(" ")
