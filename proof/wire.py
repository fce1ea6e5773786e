"""A client connection to the service, for one request at a time."""

import asyncio
from typing import Any, NamedTuple

import msgspec

LONGEST = 10.0
"""Seconds to wait for a response."""


class Lost(Exception):
    """No complete response arrived, so the outcome of the request is unknown."""


class Response(NamedTuple):
    """A response as it arrived."""

    status: int
    head: bytes
    body: bytes

    @property
    def content(self) -> Any:
        """The body, decoded."""
        return msgspec.json.decode(self.body)


class Wire:
    """A connection to a port of the loopback address, once it is connected, from an address."""

    def __init__(self, address: str = "127.0.0.1") -> None:
        self._address = address
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    @property
    def is_connected(self) -> bool:
        """Whether the service has not closed it, as far as we know."""
        return self._streams is not None and not self._streams[0].at_eof()

    async def connect(self, port: int) -> None:
        """Connect.

        Raises:
            OSError: the connection is refused.
        """
        self.close()
        self._streams = await asyncio.open_connection(
            "127.0.0.1", port, local_addr=(self._address, 0)
        )

    async def ask(self, request: bytes, seconds: float = LONGEST) -> Response:
        """Send a request and return its response.

        Raises:
            Lost: the connection ended, or there was no response within ``seconds``.
        """
        assert self._streams is not None
        reader, writer = self._streams
        try:
            async with asyncio.timeout(seconds):
                writer.write(request)
                response = await read_response(reader)
        except (OSError, EOFError, TimeoutError) as error:
            self.close()
            raise Lost(type(error).__name__) from error
        if b"\r\nconnection: close" in response.head:
            self.close()
        return response

    def close(self) -> None:
        """Close the connection, if there is one."""
        if self._streams is not None:
            self._streams[1].transport.abort()
            self._streams = None


async def read_response(reader: asyncio.StreamReader) -> Response:
    """Read one response to a request that is no HEAD.

    Raises:
        EOFError: the connection ended before.
        OSError: it was reset.
    """
    head = await reader.readuntil(b"\r\n\r\n")
    length = head.partition(b"\r\ncontent-length: ")[2].partition(b"\r\n")[0]
    body = await reader.readexactly(int(length)) if length else b""
    return Response(int(head[9:12]), head, body)


def request(method: str, target: str, token: str, body: object = None, line: str = "") -> bytes:
    """Return a request as bytes; ``line`` is an extra field, such as an Idempotency-Key."""
    head = f"{method} {target} HTTP/1.1\r\nHost: proof\r\nAuthorization: Bearer {token}\r\n"
    if line:
        head += f"{line}\r\n"
    if body is None:
        return f"{head}\r\n".encode()
    content = msgspec.json.encode(body)
    return f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content
