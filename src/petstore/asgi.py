"""The service for any ASGI server: ``granian --interface asgi petstore.asgi:app``."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from functools import partial
from typing import Any, TypeAlias

from petstore.app import serve_settings
from petstore.backends import migrate, require_secret
from petstore.cli.main import settings_from_environment
from petstore.errors import Unavailable
from petstore.http.messages import Request, Response
from petstore.http.parser import Fields
from petstore.interface.application import Application
from petstore.interface.messages import error_response

Message: TypeAlias = MutableMapping[str, Any]
ReceiveEvent: TypeAlias = Callable[[], Awaitable[Message]]
SendEvent: TypeAlias = Callable[[Message], Awaitable[None]]


class AsgiApp:
    """Runs the service with the settings of the environment, from startup to shutdown."""

    _app: Application | None = None

    async def __call__(self, scope: Message, receive: ReceiveEvent, send: SendEvent) -> None:
        if scope["type"] == "lifespan":
            await self._run(receive, send)
        elif scope["type"] == "http":
            response = await self._respond(scope, receive)
            await _send(response, send, is_http_1=scope["http_version"].startswith("1"))
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close"})  # the server responds with 403
        else:
            raise NotImplementedError(scope["type"])

    async def _respond(self, scope: Message, receive: ReceiveEvent) -> Response:
        if self._app is None:
            msg = "the service has not started: the ASGI server must use the lifespan protocol"
            logging.getLogger(__name__).error(msg)
            return error_response(Unavailable(msg), "")
        request = _request(scope)
        watching = asyncio.create_task(_watch(receive, request))
        try:
            return await self._app(request, partial(anext, _pieces(receive), b""))
        finally:
            watching.cancel()

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
            await send({"type": "lifespan.shutdown.complete"})
        except Exception as error:  # noqa: BLE001 - the server logs the reason, whatever it is
            await send({"type": f"lifespan.{phase}.failed", "message": str(error)})


async def _pieces(receive: ReceiveEvent) -> AsyncIterator[bytes]:
    event: Message = {"more_body": True}
    while event.get("more_body"):
        event = await receive()
        if event["type"] == "http.disconnect":
            raise ConnectionError("it ended early")
        if event.get("body"):
            yield bytes(event["body"])


async def _watch(receive: ReceiveEvent, request: Request) -> None:
    """Tell a long poll, which has no body to read, if its client leaves."""
    await asyncio.sleep(0.1)  # only a long poll takes longer
    if request.on_lost is not None:
        while (await receive())["type"] != "http.disconnect":
            pass
        if request.on_lost is not None:  # it may be another one by now, since it waits again
            request.on_lost()


def _request(scope: Message) -> Request:
    fields = Fields()
    for name, value in scope["headers"]:
        fields.on_header(name, value)
    return Request(
        scope["method"],
        (scope.get("raw_path") or scope["path"].encode()).decode("latin-1"),
        scope["query_string"],
        scope["client"][0] if scope.get("client") else "",
        fields.by_name,
        frozenset(fields.repeated),
        "1.0" if scope["http_version"] == "1.0" else "1.1",
        "waiting",  # the scope does not say whether there is a body
    )


async def _send(response: Response, send: SendEvent, *, is_http_1: bool) -> None:
    headers = [line.split(b": ", 1) for each in response.headers for line in each.split(b"\r\n")]
    if response.is_last and is_http_1:
        headers.append([b"connection", b"close"])
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    if response.file is not None:
        with response.file as file:
            while piece := file.read(32 * 1024):
                await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": response.body})


app = AsgiApp()
