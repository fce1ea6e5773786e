"""One attempt to deliver an event: a request without redirects, proxy or reused connection."""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from ipaddress import ip_address
from threading import Thread
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import quote, urlsplit

import httptools

from petstore.coalescing import SingleFlight, settle
from petstore.domain.networks import Network
from petstore.errors import ForbiddenAddress
from petstore.webhooks.model import Address, check_target

Resolve: TypeAlias = Callable[[str], Awaitable[Collection[Address]]]
"""Returns the addresses of a host, or raises ``OSError``."""

_CONNECT_SECONDS = 5
_TOTAL_SECONDS = 15
# The status decides the outcome; only so long is the rest of the response worth waiting for.
_BODY_SECONDS = 1
_MAX_BODY = 1024
_MAX_HEAD = 64 * 1024
_READ_BYTES = 4096
_PORTS = {"https": 443, "http": 80}
_PATH_CHARACTERS = "!$%&'()*+,-./:;=?@[]_~"


class DeliveryFailed(Exception):
    """There was no response; the message says why, for the owner of the webhook."""


class EndpointResponse(NamedTuple):
    status: int
    retry_after: str | None
    body: str


class Resolver:
    """Resolves names, each in a thread. Requests for one name share the look-up in progress."""

    def __init__(self) -> None:
        self._look_ups: SingleFlight[str, list[Address]] = SingleFlight()

    async def __call__(self, host: str) -> list[Address]:
        with suppress(ValueError):  # it is a name
            return [ip_address(host)]

        async def look_up() -> list[Address]:
            found: asyncio.Future[list[Address]] = asyncio.get_running_loop().create_future()
            # A thread of a pool would keep the process from ending until the look-up has.
            Thread(target=_resolve, args=(host, found), daemon=True).start()
            return await found

        return await self._look_ups.call(host, look_up)


def _resolve(host: str, found: asyncio.Future[list[Address]]) -> None:
    outcome: list[Address] | OSError
    try:
        rows = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        outcome = [ip_address(str(address[0])) for *_, address in rows]
    except (OSError, UnicodeError) as error:  # of a label that is too long, say
        reason = getattr(error, "strerror", None) or "not a valid name"
        outcome = OSError(f"host not found (DNS): {reason}")
    with suppress(RuntimeError):  # the loop has ended
        found.get_loop().call_soon_threadsafe(settle, found, outcome)


@dataclass
class Sender:
    """Sends requests to public addresses, and to those in ``networks``."""

    resolve: Resolve
    networks: Collection[Network]
    user_agent: str
    tls: ssl.SSLContext | None = None
    seconds: float = _TOTAL_SECONDS

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> EndpointResponse:
        try:
            async with asyncio.timeout(self.seconds):
                return await self._post(url, headers, body)
        except TimeoutError:
            msg = f"no response within {self.seconds} seconds"
        except ssl.SSLCertVerificationError as error:
            msg = f"no secure connection (TLS): {error.verify_message}"
        except ssl.SSLError as error:
            msg = f"no secure connection (TLS): {error.reason or 'the handshake failed'}"
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            msg = "the response is not valid HTTP/1.1"
        except ForbiddenAddress as error:
            msg = error.message
        except OSError as error:
            msg = error.strerror or str(error) or "the connection failed"
        raise DeliveryFailed(msg)

    async def _post(self, url: str, headers: Mapping[str, str], body: bytes) -> EndpointResponse:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or _PORTS[parts.scheme]
        fields = {
            "host": parts.netloc,
            "user-agent": self.user_agent,
            "content-type": "application/json",
            "content-length": str(len(body)),
            "connection": "close",
            **headers,
        }
        target = quote(parts.path or "/", _PATH_CHARACTERS)
        if parts.query:
            target += "?" + quote(parts.query, _PATH_CHARACTERS)
        lines = [f"POST {target} HTTP/1.1", *(f"{name}: {fields[name]}" for name in fields)]
        head = "\r\n".join([*lines, "\r\n"]).encode("ascii")
        reader, writer = await self._connect(parts.scheme, host, port)
        try:
            writer.write(head + body)
            return await _receive(reader)
        finally:
            writer.transport.abort()

    async def _connect(
        self, scheme: str, host: str, port: int
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to one of the addresses of ``host``, if deliveries may go to all of them."""
        tls: dict[str, Any] = {}
        if scheme == "https":
            # The certificates of all authorities take some memory, and not every shop has webhooks.
            self.tls = self.tls or ssl.create_default_context()
            tls = {"ssl": self.tls, "server_hostname": host}
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                addresses = list(await self.resolve(host))
                check_target(scheme, port, addresses, self.networks)
                for left, address in zip(range(len(addresses), 0, -1), addresses, strict=True):
                    try:
                        async with asyncio.timeout(_CONNECT_SECONDS / left):
                            return await asyncio.open_connection(str(address), port, **tls)
                    except OSError:  # a timeout, too
                        if left == 1:
                            raise
                raise OSError("host not found (DNS): no address")
        except TimeoutError:
            raise ConnectionError(f"no connection within {_CONNECT_SECONDS} seconds") from None


class _Parser:
    def __init__(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._head_bytes = 0
        self.retry_after: str | None = None
        self.status = 0
        self.body = b""
        self.is_complete = False

    def feed(self, data: bytes) -> None:
        if not self.status:
            self._head_bytes += len(data)
            if self._head_bytes > _MAX_HEAD:
                raise httptools.HttpParserError("the head is too large")
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            if not self.status:
                raise
            self.is_complete = True

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"retry-after":
            self.retry_after = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status >= HTTPStatus.OK:  # else it is an interim response
            self.status = status

    def on_body(self, body: bytes) -> None:
        self.body += body[: _MAX_BODY - len(self.body)]
        self.is_complete = len(self.body) == _MAX_BODY

    def on_message_complete(self) -> None:
        self.is_complete = self.status > 0


async def _receive(reader: asyncio.StreamReader) -> EndpointResponse:
    parser = _Parser()
    while not parser.status:
        data = await reader.read(_READ_BYTES)
        if not data:
            raise ConnectionError("the connection was closed before a response")
        parser.feed(data)
    with suppress(OSError):
        async with asyncio.timeout(_BODY_SECONDS):
            while not parser.is_complete and (data := await reader.read(_READ_BYTES)):
                parser.feed(data)
    # PostgreSQL cannot store U+0000.
    body = parser.body.decode("utf-8", "replace").replace("\0", "\ufffd")
    return EndpointResponse(parser.status, parser.retry_after, body)
