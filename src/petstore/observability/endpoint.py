"""``/metrics`` on a port of its own, which the processes of one service share."""

import asyncio
import logging
import socket
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

_PATH = b"/metrics"
_LARGEST_HEAD = 8192
_SECONDS = 5
_LOG = logging.getLogger(__name__)


@asynccontextmanager
async def endpoint(
    listener: socket.socket, read: Callable[[], Awaitable[tuple[str, bytes]]]
) -> AsyncIterator[None]:
    """Answer ``GET /metrics`` until the block ends. ``read`` returns its media type and text."""

    async def answer(reader: StreamReader, writer: StreamWriter) -> None:
        try:
            async with asyncio.timeout(_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(await _response(head, read))
                await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # a caller that does not speak HTTP, or has gone
        finally:
            writer.close()

    server = await asyncio.start_server(answer, sock=listener, limit=_LARGEST_HEAD)
    try:
        yield
    finally:
        server.close()


async def _response(head: bytes, read: Callable[[], Awaitable[tuple[str, bytes]]]) -> bytes:
    method, _, rest = head.partition(b" ")
    path, _, _ = rest.partition(b" ")[0].partition(b"?")
    if (method, path) != (b"GET", _PATH):
        return _message("404 Not Found", "text/plain", b"expected GET /metrics\n")
    try:
        return _message("200 OK", *await read())
    except Exception:  # noqa: BLE001 - whatever it is, the service itself goes on
        _LOG.exception("metrics cannot be told")
        return _message("500 Internal Server Error", "text/plain", b"the log tells why\n")


def _message(status: str, content_type: str, body: bytes) -> bytes:
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode("ascii") + body
