"""``/metrics`` on a port of its own, which the processes of one service share."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from petstore.http.messages import Receive, Request, Respond, Response
from petstore.http.server import ConnectionLimits, HttpServer

_LIMITS = ConnectionLimits(connections=64, per_address=64, seconds=5)
_LAST_SECONDS = 1.0
_LOG = logging.getLogger(__name__)


@asynccontextmanager
async def endpoint(
    listener: socket.socket, read: Callable[[], Awaitable[tuple[str, bytes]]]
) -> AsyncIterator[None]:
    """Serve ``GET /metrics`` until the block ends. ``read`` returns its media type and text."""
    server = HttpServer(_respond_with(read), listener, _LIMITS)
    serving = asyncio.create_task(server.serve())
    try:
        yield
    finally:
        server.stop()
        await asyncio.wait([serving], timeout=_LAST_SECONDS)


def _respond_with(read: Callable[[], Awaitable[tuple[str, bytes]]]) -> Respond:
    async def respond(request: Request, _: Receive) -> Response:
        if request.refusal is not None:
            return _response(request.refusal.status, "text/plain", b"expected HTTP/1.1\n")
        if (request.method, request.path) != ("GET", "/metrics"):
            return _response(404, "text/plain", b"expected GET /metrics\n")
        try:
            return _response(200, *await read())
        except Exception:  # noqa: BLE001 - whatever it is, the service itself goes on
            _LOG.exception("metrics cannot be told")
            return _response(500, "text/plain", b"the log tells why\n")

    return respond


def _response(status: int, content_type: str, body: bytes) -> Response:
    lines = f"content-type: {content_type}\r\ncontent-length: {len(body)}"
    return Response(status, body, [lines.encode("ascii")], is_last=True)
