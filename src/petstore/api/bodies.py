"""Request bodies, received within their size and time."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from petstore.api.messages import Request
from petstore.errors import (
    ContentTooLarge,
    PetstoreError,
    RequestTimeout,
    UnsupportedMediaType,
)

Receive = Callable[[], Awaitable[dict[str, Any]]]


class ClientDisconnected(PetstoreError):
    """The client went away before its body was whole; nobody is left to be told."""

    status = 400
    code = "client_disconnected"


def check_head(request: Request, largest: int) -> None:
    """Refuse a body by what its head says.

    Raises:
        UnsupportedMediaType: it is not plain ``application/json``.
        ContentTooLarge: it is longer than ``largest`` bytes.
    """
    fields = request.fields
    media_type = fields.get(b"content-type")
    if media_type is not None and not _is_json(media_type):
        msg = "Content-Type: expected application/json"
        raise UnsupportedMediaType(msg)
    if b"content-encoding" in fields:
        msg = "Content-Encoding: expected none, the body must come as it is"
        raise UnsupportedMediaType(msg)
    length = fields.get(b"content-length", b"0")
    if length.isdigit() and int(length[:20]) > largest:
        raise _too_large(largest)


async def receive_body(receive: Receive, largest: int, seconds: float) -> bytes:
    """Return the whole body.

    Raises:
        ContentTooLarge: it is longer than ``largest`` bytes; the rest was not read.
        RequestTimeout: it was not whole after ``seconds``.
        ClientDisconnected: the client went away.
    """
    try:
        async with asyncio.timeout(seconds):
            return await _receive(receive, largest)
    except TimeoutError:
        msg = f"the body: expected whole within {seconds:g} seconds"
        raise RequestTimeout(msg) from None


async def _receive(receive: Receive, largest: int) -> bytes:
    body = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            msg = "the client disconnected"
            raise ClientDisconnected(msg)
        body += message.get("body", b"")
        if len(body) > largest:
            raise _too_large(largest)
        if not message.get("more_body", False):
            return body


def _is_json(media_type: bytes) -> bool:
    return media_type.partition(b";")[0].strip().lower() == b"application/json"


def _too_large(largest: int) -> ContentTooLarge:
    return ContentTooLarge(f"the body: expected at most {largest} bytes")
