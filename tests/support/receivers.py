"""Endpoints of webhooks: real sockets, each with a behaviour of its own."""

import asyncio
import json
import socket
import ssl
import struct
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeAlias

from standardwebhooks import Webhook

from support.silent_server import listening

Reader: TypeAlias = asyncio.StreamReader
Writer: TypeAlias = asyncio.StreamWriter

OK = b"HTTP/1.1 204 No Content\r\n\r\n"

Behaviour: TypeAlias = Callable[["Request", Writer], Awaitable[None]]
"""Responds to a request, or does what a receiver should not do."""


class Request(NamedTuple):
    line: str
    headers: dict[str, str]
    body: bytes

    @property
    def event(self) -> dict[str, Any]:
        event: dict[str, Any] = json.loads(self.body)
        return event

    def verified(self, secret: bytes) -> dict[str, Any]:
        """Return the event as the public library of Standard Webhooks does, or raise its error."""
        verifier = _Patient(f"whsec_{b64encode(secret).decode()}")
        event: dict[str, Any] = verifier.verify(self.body, self.headers)
        assert event["id"] == self.headers["webhook-id"]
        return event


class _Patient(Webhook):
    """Verifies all but that the timestamp is of today: a test sets its clock as it likes."""

    def _Webhook__verify_timestamp(self, timestamp_header: str) -> Any:  # noqa: N802
        return datetime.fromtimestamp(int(timestamp_header), UTC)


class Receiver:
    def __init__(self, behaviour: Behaviour) -> None:
        self.behaviour = behaviour
        self.requests: list[Request] = []
        self.connections = 0
        self.under_way = 0
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hooks"

    @property
    def events(self) -> list[dict[str, Any]]:
        return [request.event for request in self.requests]

    async def serve(self, reader: Reader, writer: Writer) -> None:
        self.connections += 1
        self.under_way += 1
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("ascii").split("\r\n")
            fields = (line.partition(": ") for line in head[1:] if line)
            headers = {name.lower(): value for name, _, value in fields}
            body = await reader.readexactly(int(headers["content-length"]))
            self.requests.append(request := Request(head[0], headers, body))
            await self.behaviour(request, writer)
        finally:
            self.under_way -= 1


def saying(response: bytes) -> Behaviour:
    async def respond(_: Request, writer: Writer) -> None:
        writer.write(response)

    return respond


async def silent(_: Request, writer: Writer) -> None:
    await writer.wait_closed()


async def reset(_: Request, writer: Writer) -> None:
    sock: socket.socket = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


@asynccontextmanager
async def receiving(
    behaviour: Behaviour | bytes = OK, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Receiver]:
    receiver = Receiver(saying(behaviour) if isinstance(behaviour, bytes) else behaviour)
    async with listening(receiver.serve, tls) as receiver.port:
        yield receiver
