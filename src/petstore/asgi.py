"""The service for any ASGI server: ``granian --interface asgi petstore.asgi:app``."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any, TypeAlias

from petstore.app import serve_settings
from petstore.backends import require_secret
from petstore.cli.main import settings_from_environment
from petstore.cli.stores import migrate
from petstore.errors import Unavailable
from petstore.http.messages import Request, Response
from petstore.interface.application import Application
from petstore.interface.messages import error_response

Message: TypeAlias = MutableMapping[str, Any]
ReceiveEvent: TypeAlias = Callable[[], Awaitable[Message]]
SendEvent: TypeAlias = Callable[[Message], Awaitable[None]]

_LONG_SECONDS = 0.1  # a request that takes longer may be a long poll
_PIECE_OF_FILE = 32 * 1024
_LOG = logging.getLogger(__name__)


class AsgiApp:
    """Runs the service with the settings of the environment, from startup to shutdown."""

    _app: Application | None = None

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
        request, client = _request(scope), _Client(receive)
        watching = asyncio.get_running_loop().call_later(_LONG_SECONDS, client.watch, request)
        try:
            return await self._app(request, client.receive)
        finally:
            watching.cancel()
            client.stop_watching()

    async def _run(self, receive: ReceiveEvent, send: SendEvent) -> None:
        await receive()
        phase = "startup"
        try:
            settings = settings_from_environment()
            await asyncio.to_thread(migrate, settings.database)
            await asyncio.to_thread(require_secret, settings)
            app = self._app = serve_settings(settings)
            async with app.lifespan():
                await send({"type": "lifespan.startup.complete"})
                phase = "shutdown"
                await receive()
        except Exception as error:  # noqa: BLE001 - the server logs the reason, whatever it is
            await send({"type": f"lifespan.{phase}.failed", "message": str(error)})
        else:
            await send({"type": "lifespan.shutdown.complete"})


class _Client:
    """What the ASGI server tells of the client of a request: its body, and that it has left."""

    def __init__(self, receive: ReceiveEvent) -> None:
        self._receive = receive
        self._has_whole_body = False
        self._one_at_a_time = asyncio.Lock()
        self._watching: asyncio.Task[None] | None = None

    async def receive(self) -> bytes:
        """Return the next piece of the body, or nothing at its end."""
        async with self._one_at_a_time:
            while not self._has_whole_body:
                event = await self._receive()
                if event["type"] == "http.disconnect":
                    msg = "it ended early"
                    raise ConnectionError(msg)
                self._has_whole_body = not event.get("more_body", False)
                if event.get("body"):
                    return bytes(event["body"])
        return b""

    def watch(self, request: Request) -> None:
        """Tell a long poll if the client leaves."""
        if request.on_lost is not None:
            self._watching = asyncio.create_task(self._watch(request))

    def stop_watching(self) -> None:
        """End the watch: the request has its response."""
        if self._watching is not None:
            self._watching.cancel()

    async def _watch(self, request: Request) -> None:
        with suppress(ConnectionError):
            while await self.receive():
                pass  # a long poll needs no body
            await self._receive()  # after the body there is only the end
        if request.on_lost is not None:  # it may be another one by now, since it waits again
            request.on_lost()


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
