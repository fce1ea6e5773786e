"""MCP over HTTP: requests with the key of their caller, each complete in itself."""

import asyncio
import logging
import re
import time
from collections.abc import Callable, Collection, MutableMapping
from http import HTTPStatus
from typing import Any

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from msgspec import Struct
from msgspec.structs import replace

from petstore.agents.callers import Callers
from petstore.agents.messages import MAX_MESSAGE, InvalidMessage, read_operation
from petstore.errors import InternalError, MethodNotAllowed, NotFound, PetstoreError, Unavailable
from petstore.http.messages import Receive, Request, Response
from petstore.interface.application import RequestIds
from petstore.interface.authentication import bearer_token, invalid_key
from petstore.interface.bodies import BodyReader
from petstore.interface.client_address import client_address
from petstore.interface.messages import error_response, json_response, refusal_response
from petstore.logs import RequestLine
from petstore.settings import Settings

_PATH = "/mcp"
_KEY = re.compile(rb"[!-~]+")
_PORT = re.compile(rb":[0-9]*\Z")
_LOG = logging.getLogger(__name__)


class AgentRequest(Struct):
    """A request in progress: the ``key`` for the store, and what the log tells of it.

    ``client`` is the address behind trusted proxies. ``operation`` is a tool or a method of MCP,
    and ``code`` that of an error, also of one that the agent gets as the result of a tool.
    """

    request_id: str
    client: str
    key: str = ""
    operation: str | None = None
    code: str | None = None


class Endpoint:
    """Responds to requests for ``/mcp``, if they have a key; ``root`` is the URL of the store.

    No request has anything to do with another one: there are no sessions, and no streams that stay
    open. Clients reach it by ``hosts``, with any port. ``note`` gets a line about each request.
    """

    def __init__(
        self,
        manager: StreamableHTTPSessionManager,
        callers: Callers,
        hosts: Collection[str],
        settings: Settings,
        note: Callable[[RequestLine], None],
        root: str,
    ) -> None:
        self.bodies = BodyReader(MAX_MESSAGE, settings.body_timeout)
        self._manager = manager
        self._callers = callers
        self._hosts = {host.lower().encode("ascii") for host in hosts}
        self._proxies = settings.trusted_networks
        self._note = note
        self._root = root
        self._request_ids = RequestIds()

    async def __call__(self, request: Request, receive: Receive) -> Response:
        """Respond to one request."""
        started = time.perf_counter()
        client = client_address(request, self._proxies)
        exchange = AgentRequest(self._request_ids.id_of(request), client)
        try:
            response = await self._respond(exchange, request, receive)
        except InvalidMessage as error:
            response = json_response(
                HTTPStatus.BAD_REQUEST, error.error.model_dump(exclude_unset=True)
            )
        except PetstoreError as error:
            if isinstance(error, Unavailable):
                _LOG.warning("request %s: %s", exchange.request_id, error)
            response = error_response(error, self._root)
        except Exception:  # noqa: BLE001 - whatever it is, the caller gets a response
            _LOG.exception("request %s failed", exchange.request_id)
            response = error_response(InternalError("the request failed"), self._root)
        line = RequestLine(
            request=exchange.request_id,
            client=client,
            key=None,  # only the store knows its id
            method=request.method,
            route=_PATH if request.path == _PATH else None,
            operation=exchange.operation,
            status=response.status,
            code=response.code or exchange.code,
            limit=response.limit,
            bytes=len(response.body),
            milliseconds=round((time.perf_counter() - started) * 1000, 3),
        )
        self._note(line)
        return _finished(request, response, exchange.request_id)

    async def _respond(
        self, exchange: AgentRequest, request: Request, receive: Receive
    ) -> Response:
        if request.refusal is not None:
            return refusal_response(request.refusal, self._root)
        host = request.fields.get(b"host", b"")
        if b"host" in request.repeated or _PORT.sub(b"", host.lower()) not in self._hosts:
            return self._misdirected()
        if request.path != _PATH:
            msg = f"there is nothing here; agents use {_PATH}"
            raise NotFound(msg)
        if request.method != "POST":
            msg = f"{request.method}: expected POST; there are no sessions and no streams"
            raise MethodNotAllowed(msg, {"Allow": "POST"})
        token = bearer_token(request)
        if not _KEY.fullmatch(token):
            raise invalid_key()
        exchange.key = token.decode("ascii")
        has_body = request.content is not None or request.body == "none"
        await self._callers.admit(exchange.key, exchange.client, has_body=has_body)
        body = await self.bodies.read_any(request, receive, MAX_MESSAGE)
        exchange.operation = read_operation(body)
        return await self._ask(exchange, request, body)

    def _misdirected(self) -> Response:
        """Refuse a request for another host, which a web page may have made a browser send.

        The store itself has no such error: it is in the part of docs/errors.md about balancers.
        """
        code = "misdirected_request"
        body = {
            "code": code,
            "message": "Host: expected a name of this machine, or one that --allowed-host names",
            "status": HTTPStatus.MISDIRECTED_REQUEST,
        }
        explanation = f'link: <{self._root}/docs/errors#{code}>; rel="help"'.encode("ascii")
        return replace(
            json_response(HTTPStatus.MISDIRECTED_REQUEST, body, [explanation]), code=code
        )

    async def _ask(self, exchange: AgentRequest, request: Request, body: bytes) -> Response:
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
            # The SDK checks it, too, and compares the names of hosts as they are.
            "headers": [
                (name, value.lower() if name == b"host" else value)
                for name, value in request.fields.items()
            ],
            "client": (request.client, 0),
            "state": {"exchange": exchange},
        }
        await self._manager.handle_request(scope, receive, send)
        start, *pieces = sent
        lines = [b"%b: %b" % (name, value) for name, value in start["headers"]]
        headers = [line for line in lines if not line.lower().startswith(b"content-length:")]
        return Response(start["status"], b"".join(piece["body"] for piece in pieces), headers)


def _finished(request: Request, response: Response, request_id: str) -> Response:
    """Return the response with its length and id; a body that was not read ends the connection.

    A response to HEAD has no content.
    """
    body = b"" if request.method == "HEAD" else response.body
    return replace(
        response,
        body=body,
        headers=[
            *response.headers,
            b"content-length: %d" % len(response.body),
            b"x-request-id: %b" % request_id.encode("ascii"),
        ],
        is_last=request.refusal is not None or request.body in {"waiting", "broken"},
    )
