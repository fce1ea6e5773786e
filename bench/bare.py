"""The least an ASGI application can do: the measure of what the service adds to its server."""

from collections.abc import Awaitable, Callable
from typing import Any

_BODY = (
    b"[" + b",".join([b'{"id":1,"name":"Bella","categoryId":1,"status":"available"}'] * 20) + b"]"
)
_START = {
    "type": "http.response.start",
    "status": 200,
    "headers": [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(_BODY)).encode()),
    ],
}
_REST = {"type": "http.response.body", "body": _BODY}


async def app(
    scope: dict[str, Any],
    receive: Callable[[], Awaitable[dict[str, Any]]],
    send: Callable[[dict[str, Any]], Awaitable[None]],
) -> None:
    """Answer every request with the same 20 animals."""
    if scope["type"] == "lifespan":
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.complete"})
        return
    await send(_START)
    await send(_REST)
