"""How an MCP server runs: on standard input and output, or over HTTP. The SDK carries both."""

import asyncio
import logging
import os
import re
import signal
import socket
import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import Any
from urllib.parse import quote

from anyio.to_thread import run_sync
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from petstore import errors
from petstore.agents.server import agent_server
from petstore.domain.networks import client_address
from petstore.http.messages import Receive, Request, Response
from petstore.interface.authentication import bearer_token
from petstore.interface.bodies import BodyReader
from petstore.interface.messages import error_response, refusal_response
from petstore.limits.admission import Turns
from petstore.server.listeners import http_server
from petstore.settings import Settings
from petstore_client import AsyncClient

_LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "[::1]")
_PORT = re.compile(rb":\d*$")
# A batch of pets with the longest names, in any language, is smaller, and has fewer values. The
# SDK validates a message several times, and blocks all others meanwhile.
_MAX_MESSAGE = 256 * 1024
_MAX_VALUES = 2000
_ARRIVAL_SECONDS = 10
_STOP_SECONDS = 10
_MAX_CLIENTS = 200


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
    """Give the lines of standard input. The SDK waits for its thread even without a reader."""
    while line := await run_sync(sys.stdin.buffer.readline, abandon_on_cancel=True):
        yield line.decode(errors="replace")


def run_http(listener: socket.socket, endpoint: "Endpoint", settings: Settings) -> None:

    async def run() -> None:
        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        async with endpoint.running():
            server = http_server(settings, listener, endpoint)
            serving = asyncio.create_task(server.serve())
            await stop.wait()
            server.stop()
            await asyncio.wait([serving], timeout=_STOP_SECONDS)

    logging.getLogger("mcp").setLevel(logging.ERROR)  # its warnings quote what clients send
    asyncio.run(run())


class Endpoint:
    """Responds to requests that have a key: each is complete in itself, and there are no sessions.

    A key has one request at a time, and an address a few. Requests of web pages, which have an
    ``Origin``, and those for other hosts, which a page may have made a browser send, are refused.
    """

    def __init__(
        self, client: AsyncClient, hosts: Iterable[str], settings: Settings, *, writes: bool
    ) -> None:
        self._client = client
        self._root = quote(client.base_url.removesuffix("/v1"), safe=":/[]%")
        self._client_for = lru_cache(_MAX_CLIENTS)(lambda key: client.with_options(api_key=key))
        self._hosts = {host.lower().encode() for host in (*_LOOPBACK_HOSTS, *hosts)}
        self._proxies = settings.trusted_networks
        self._bodies = BodyReader(_MAX_MESSAGE, _ARRIVAL_SECONDS)
        # Of an address, of a key, and of an address while the SDK works, so that others work too.
        self._requests = Turns("requests", each=64, refusal="too many requests at once")
        self._of_keys = Turns("requests")
        self._working = Turns("requests", each=4)
        server = agent_server(lambda context: context.request.state.client, writes=writes)  # type: ignore[union-attr]
        self._sdk = StreamableHTTPSessionManager(server, json_response=True, stateless=True)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with self._client, self._sdk.run():
            yield

    async def __call__(self, request: Request, receive: Receive) -> Response:
        try:
            response = await self._respond(request, receive)
        except errors.PetstoreError as error:
            response = error_response(error, self._root)
        body = b"" if request.method == "HEAD" else response.body
        length = b"content-length: %d" % len(response.body)
        return Response(response.status, body, [*response.headers, length])

    async def _respond(self, request: Request, receive: Receive) -> Response:
        if request.refusal is not None:
            return refusal_response(request.refusal, self._root)
        host = _PORT.sub(b"", request.fields.get(b"host", b"").lower())
        if host not in self._hosts or b"origin" in request.fields:
            msg = "expected no Origin, and a Host that is this machine or an --allowed-host"
            raise errors.CrossSiteRequest(msg)
        if (request.method, request.path) != ("POST", "/mcp"):
            msg = "expected POST /mcp: there are no streams and no sessions"
            raise errors.MethodNotAllowed(msg, {"Allow": "POST"})
        forwarded = request.fields.get(b"x-forwarded-for")
        address = client_address(request.client, forwarded, self._proxies)
        key = bearer_token(request).decode("latin-1")
        try:
            client = self._client_for(key)
        except ValueError as error:
            raise errors.InvalidKey(str(error), {"WWW-Authenticate": "Bearer"}) from None
        # So the limits and networks of the store see who calls, if it trusts this process.
        client = client.with_options(headers={"X-Forwarded-For": address})
        request.on_lost = asyncio.current_task().cancel  # type: ignore[union-attr]
        try:
            with await self._requests.take(address):
                async with asyncio.timeout(_ARRIVAL_SECONDS) as arrival:
                    with await self._of_keys.take(key):
                        body = await self._bodies.read(request, receive)
                        if sum(map(body.count, (b"[", b"{", b",", b":"))) > _MAX_VALUES:
                            msg = f"the body: expected at most {_MAX_VALUES} values"
                            raise errors.ContentTooLarge(msg)
                        with await self._working.take(address):
                            arrival.reschedule(None)
                            return await self._ask(request, body, client)
        except TimeoutError:
            msg = "the body did not arrive in time, or another request of this key is under way"
            raise errors.RequestTimeout(msg) from None

    async def _ask(self, request: Request, body: bytes, client: AsyncClient) -> Response:
        """Return what the SDK responds to a message, as an ASGI application."""
        headers = {**request.fields, b"accept": b"application/json"}  # many send none
        scope: dict[str, Any] = {"type": "http", "method": "POST", "path": "/mcp"}
        scope |= {"query_string": b"", "headers": [*headers.items()], "state": {"client": client}}
        incoming, sent = [{"type": "http.request", "body": body}], list[Any]()

        async def receive() -> dict[str, Any]:
            if not incoming:
                await asyncio.Event().wait()  # if the agent leaves, this task is cancelled
            return incoming.pop()

        async def send(message: Any) -> None:
            sent.append(message)

        await self._sdk.handle_request(scope, receive, send)
        start, *pieces = sent
        fields = [b"%b: %b" % each for each in start["headers"] if each[0] != b"content-length"]
        content = b"".join(piece.get("body", b"") for piece in pieces)
        return Response(start["status"], content, fields)
