"""MCP over HTTP: requests with the key of their caller, each complete in itself."""

import asyncio
import logging
import re
from collections.abc import MutableMapping
from typing import Any

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from msgspec.structs import replace

from petstore.errors import InternalError, MethodNotAllowed, NotFound, PetstoreError
from petstore.http.messages import Receive, Request, Response
from petstore.interface.authentication import bearer_token, invalid_key
from petstore.interface.bodies import BodyReader
from petstore.interface.messages import error_response, refusal_response

_PATH = "/mcp"

# A batch of animals with the longest names, every character escaped, is smaller.
_MAX_BODY = 512 * 1024
_BODY_SECONDS = 10
_KEY = re.compile(rb"[!-~]+")
_LOG = logging.getLogger(__name__)


class Endpoint:
    """Responds to requests for ``/mcp``, if they have a key; ``root`` is the URL of the store.

    No request has anything to do with another one: there are no sessions, and no streams that stay
    open.
    """

    def __init__(
        self,
        manager: StreamableHTTPSessionManager,
        root: str,
        body_seconds: float = _BODY_SECONDS,
    ) -> None:
        self.bodies = BodyReader(_MAX_BODY, body_seconds)
        self._manager = manager
        self._root = root

    async def __call__(self, request: Request, receive: Receive) -> Response:
        """Respond to one request."""
        if request.refusal is not None:
            return _finished(request, refusal_response(request.refusal, self._root))
        try:
            response = await self._respond(request, receive)
        except PetstoreError as error:
            response = error_response(error, self._root)
        except Exception:  # noqa: BLE001 - whatever it is, the caller gets a response
            _LOG.exception("cannot respond")
            response = error_response(InternalError("the request failed"), self._root)
        return _finished(request, response)

    async def _respond(self, request: Request, receive: Receive) -> Response:
        if request.path != _PATH:
            msg = f"there is nothing here; agents use {_PATH}"
            raise NotFound(msg)
        if request.method != "POST":
            msg = f"{request.method}: expected POST; there are no sessions and no streams"
            raise MethodNotAllowed(msg, {"Allow": "POST"})
        if not _KEY.fullmatch(bearer_token(request)):
            raise invalid_key()
        body = await self.bodies.read_any(request, receive, _MAX_BODY)
        return await self._ask(request, body)

    async def _ask(self, request: Request, body: bytes) -> Response:
        """Return what the MCP server responds, which is an ASGI application."""
        sent: list[MutableMapping[str, Any]] = []
        waiting = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> MutableMapping[str, Any]:
            if not waiting:  # it waits for the client to leave, until it has responded
                await asyncio.Event().wait()
            return waiting.pop()

        async def send(message: MutableMapping[str, Any]) -> None:
            sent.append(message)

        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": request.version,
            "scheme": "http",
            "method": request.method,
            "path": request.path,
            "raw_path": request.path.encode("latin-1"),
            "query_string": request.query,
            "headers": [*request.fields.items()],
            "client": (request.client, 0),
        }
        await self._manager.handle_request(scope, receive, send)
        start, *pieces = sent
        lines = [b"%b: %b" % (name, value) for name, value in start["headers"]]
        headers = [line for line in lines if not line.lower().startswith(b"content-length:")]
        return Response(start["status"], b"".join(piece["body"] for piece in pieces), headers)


def _finished(request: Request, response: Response) -> Response:
    """Return the response with its length; after it, a body that was not read ends the connection.

    A response to HEAD has no content.
    """
    body = b"" if request.method == "HEAD" else response.body
    return replace(
        response,
        body=body,
        headers=[*response.headers, b"content-length: %d" % len(response.body)],
        is_last=request.refusal is not None or request.body in {"waiting", "broken"},
    )
