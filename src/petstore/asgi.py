"""The service for any ASGI server: ``granian --interface asgi petstore.asgi:app``."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

from petstore.api.application import Servable
from petstore.api.messages import error_response
from petstore.app import serve_settings
from petstore.cli.options import settings_from_environment
from petstore.cli.stores import migrate
from petstore.errors import Unavailable
from petstore.http.messages import Request, Response

Message: TypeAlias = MutableMapping[str, Any]
ReceiveEvent: TypeAlias = Callable[[], Awaitable[Message]]
SendEvent: TypeAlias = Callable[[Message], Awaitable[None]]

_PIECE_OF_FILE = 32 * 1024
_LOG = logging.getLogger(__name__)


class AsgiApp:
    """Runs the service with the settings of the environment, from startup to shutdown."""

    _app: Servable | None = None

    async def __call__(self, scope: Message, receive: ReceiveEvent, send: SendEvent) -> None:
        """Handle one request, or the lifespan of the service."""
        if scope["type"] == "lifespan":
            await self._run(receive, send)
        elif scope["type"] == "http":
            response = await self._respond(scope, receive)
            await _send(response, send, is_http_1=scope["http_version"].startswith("1"))
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close"})  # the server responds with 403
        else:
            msg = f"expected the scope http or lifespan, not {scope['type']}"
            raise ValueError(msg)

    async def _respond(self, scope: Message, receive: ReceiveEvent) -> Response:
        if self._app is None:
            msg = "the service has not started: the ASGI server must use the lifespan protocol"
            _LOG.error(msg)
            return error_response(Unavailable(msg), "")
        pieces = _pieces(receive)
        return await self._app(_request(scope), lambda: anext(pieces, b""))

    async def _run(self, receive: ReceiveEvent, send: SendEvent) -> None:
        await receive()
        phase = "startup"
        try:
            settings = settings_from_environment()
            await asyncio.to_thread(migrate, settings.database)
            app = self._app = serve_settings(settings)
            async with app.lifespan():
                await send({"type": "lifespan.startup.complete"})
                phase = "shutdown"
                await receive()
        except Exception as error:  # noqa: BLE001 - the server logs the reason, whatever it is
            await send({"type": f"lifespan.{phase}.failed", "message": str(error)})
        else:
            await send({"type": "lifespan.shutdown.complete"})


async def _pieces(receive: ReceiveEvent) -> AsyncIterator[bytes]:
    is_whole = False
    while not is_whole:
        event = await receive()
        if event["type"] == "http.disconnect":
            msg = "it ended early"
            raise ConnectionError(msg)
        is_whole = not event.get("more_body", False)
        if event.get("body"):
            yield event["body"]


def _request(scope: Message) -> Request:
    fields: dict[bytes, bytes] = {}
    repeated = set()
    for name, value in scope["headers"]:
        if name in fields:
            repeated.add(name)
        # HTTP/2 may split the cookies (RFC 9113 section 8.2.3).
        separator = b"; " if name == b"cookie" else b", "
        fields[name] = fields[name] + separator + value if name in fields else value
    return Request(
        scope["method"],
        (scope.get("raw_path") or scope["path"].encode()).decode("latin-1"),
        scope["query_string"],
        scope["client"][0] if scope.get("client") else "",
        fields,
        frozenset(repeated),
        "1.0" if scope["http_version"] == "1.0" else "1.1",
        "waiting",  # the scope does not say whether there is a body
    )


async def _send(response: Response, send: SendEvent, *, is_http_1: bool) -> None:
    lines = b"\r\n".join(response.headers).split(b"\r\n")
    headers = [line.split(b": ", 1) for line in lines]
    if response.is_last and is_http_1:
        headers.append([b"connection", b"close"])
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    if response.file is not None:
        with response.file as file:
            while piece := file.read(_PIECE_OF_FILE):
                await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": response.body})


app = AsgiApp()
