"""The way of a request, outermost layer first. Only the outermost shapes responses."""

import logging
import os
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from typing import Any, Protocol, TypeAlias

from msgspec import Struct

from petstore.api.authentication import authenticate, bearer_token, require_scope
from petstore.api.bodies import BodyReader
from petstore.api.client_address import Network, client_address
from petstore.api.cross_origin import cross_origin_headers, is_preflight, preflight_response
from petstore.api.deprecation_headers import check_sunset, deprecation_headers
from petstore.api.entity_tags import check_conditions, conditional
from petstore.api.idempotency import idempotency_key
from petstore.api.messages import (
    NO_STORE,
    Headers,
    Receive,
    Request,
    Response,
    error_response,
)
from petstore.api.operation import Call, Operation, Services
from petstore.api.parameters import Query, decode_path_id, decode_query
from petstore.api.rate_limit_headers import (
    ADDRESS,
    KEY,
    Holder,
    rate_limit_headers,
    refusal,
)
from petstore.api.routes import Route, Routes, not_allowed
from petstore.domain.api_keys import ApiKey
from petstore.domain.decoding import decode_json
from petstore.errors import (
    InternalError,
    InvalidKey,
    InvalidRequest,
    MissingKey,
    NotFound,
    PetstoreError,
    Unavailable,
)
from petstore.logs import RequestLine
from petstore.rate_limits.contract import Decision

Page: TypeAlias = Callable[[Request], Awaitable[Response]]

_LOG = logging.getLogger(__name__)
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}\Z")
_ALWAYS = b"x-request-id: %b\r\nx-content-type-options: nosniff"
_KEYED = _ALWAYS + b"\r\nvary: Authorization\r\n"
_PRIVATE = _KEYED + b"cache-control: private, no-cache"
_NO_STORE = _KEYED + b"cache-control: no-store"
_FIRST_ERROR = 400
# RFC 3986 sections 3.2.2 and 3.2.3, without the comma: it would join two hosts.
_HOST = re.compile(
    rb"(?:(?:[A-Za-z0-9._~!$&'()*+;=-]++|%[0-9A-Fa-f]{2})++|\[[0-9A-Fa-f:.]{2,45}\])"
    rb"(?::[0-9]{0,5})?\Z"
)
_LONGEST_HOST = 261
_PAGE_METHODS = ["GET", "HEAD"]
_NO_QUERY: Query[Any] = Query(None, ())
_EMPTY_BODY = b"{}"
_WITHOUT_CONTENT = (204, 304)
_WHOLE = ("none", "read")


@dataclass(frozen=True)
class HttpRules:
    """Whom the service trusts and lets in."""

    trusted_proxies: Sequence[Network] = ()
    allowed_origins: Sequence[str] = ()


class ResolvedRoute(Struct):
    """What follows from the head of a request alone.

    ``template`` is the path without values of the caller, if it leads anywhere, and ``client`` the
    address behind trusted proxies. ``always`` are the headers of every answer to it, with room for
    the request id. ``token`` and ``given``, the id in the path and the query, are there once found
    valid.
    """

    is_api: bool
    is_preflight: bool
    page: Page | None
    route: Route
    operation: Operation | None
    template: str | None
    client: str
    always: bytes
    token: bytes | None = None
    given: tuple[int, Query[Any]] | None = None


class Exchange(Struct):
    """What is known of a request under way."""

    request: Request
    resolved: ResolvedRoute
    request_id: str
    started: float
    key: ApiKey | None = None
    decision: Decision | None = None


class RequestRecord(Protocol):
    """Takes down each request once it is answered."""

    def add(self, line: RequestLine) -> None:
        """Note a request that was answered just now."""
        ...


class Servable(Protocol):
    """An application as a server holds it."""

    def lifespan(self) -> AbstractAsyncContextManager[None]:
        """Open what it needs, keep that at work until the block ends, and close it.

        Raises:
            Exception: something cannot be opened.
        """
        ...

    async def __call__(self, request: Request, receive: Receive) -> Response:
        """Answer one request, within the ``lifespan``, whatever happens."""
        ...

    def hand_over(self) -> None:
        """Ask every caller to come back on another connection, to the process that is next."""
        ...

    def retire(self) -> None:
        """Do so too, and be ready no more: the service is to stop."""
        ...


class Application:
    """The application. ``pages`` are what takes no key, by exact path."""

    def __init__(
        self,
        *,
        services: Services,
        routes: Routes,
        pages: Mapping[str, Page],
        bodies: BodyReader,
        rules: HttpRules,
        log: RequestRecord,
        lifespan: Callable[[], AbstractAsyncContextManager[None]],
        on_retire: Callable[[], None],
    ) -> None:
        self._services = services
        self._routes = routes
        self._pages = pages
        self._bodies = bodies
        self._rules = rules
        self._log = log
        self.lifespan = lifespan
        self._on_retire = on_retire
        self._retiring = False
        self._id_prefix = os.urandom(6).hex()
        self._id_count = count(1)

    def route_of(self, method: str, path: str) -> str | None:
        """Return where a request goes, with no value of its caller; ``None`` for nowhere."""
        return self._template(path, self._routes.find(path).operation(method))

    def hand_over(self) -> None:
        """Ask every caller to come back on another connection, to the process that is next."""
        self._retiring = True

    def retire(self) -> None:
        """Do so too, and be ready no more: the service is to stop."""
        self.hand_over()
        self._on_retire()

    async def __call__(self, request: Request, receive: Receive) -> Response:
        """Answer one request, within the ``lifespan``, whatever happens."""
        exchange = self._begin(request)
        try:
            answer = await self._answer(exchange, receive)
        except PetstoreError as error:
            if isinstance(error, Unavailable):
                _LOG.warning("request %s: %s", exchange.request_id, error)
            answer = error_response(error)
        except Exception:  # noqa: BLE001 - whatever it is, the caller gets an Error body
            _LOG.exception("request %s failed", exchange.request_id)
            answer = error_response(InternalError("the service failed; its log tells why"))
        decision, operation = exchange.decision, exchange.resolved.operation
        if decision is None and (exchange.resolved.is_api or request.refusal is not None):
            address = exchange.resolved.client
            decision = await self._services.limiter.look_address(address)
        headers = self._headers(exchange, answer, decision)
        if request.body != "none":
            await self._bodies.discard(request, receive)
        is_last = self._retiring or request.body not in _WHOLE
        body = b"" if request.method == "HEAD" else answer.body
        self._log.add(
            RequestLine(
                request=exchange.request_id,
                client=exchange.resolved.client,
                key=exchange.key.id if exchange.key else None,
                method=request.method,
                route=exchange.resolved.template,
                operation=operation.id if operation else None,
                status=answer.status,
                code=answer.code,
                limit=answer.limit,
                bytes=len(body),
                # A third of what rounding to three digits costs.
                milliseconds=round((time.perf_counter() - exchange.started) * 1e6) / 1e3,
            )
        )
        return Response(answer.status, body, headers, is_last)

    def _begin(self, request: Request) -> Exchange:
        given = request.fields.get(b"x-request-id")
        if given is not None and _REQUEST_ID.match(given):
            request_id = given.decode("ascii")
        else:
            request_id = f"{self._id_prefix}{next(self._id_count):08x}"
        resolved = request.resolved
        if not isinstance(resolved, ResolvedRoute):
            resolved = request.resolved = self._resolved(request)
        return Exchange(request, resolved, request_id, time.perf_counter())

    def _template(self, path: str, operation: Operation | None) -> str | None:
        if path in self._pages:
            return path
        return None if operation is None else self._routes.base + operation.path

    def _resolved(self, request: Request) -> ResolvedRoute:
        path, route = request.path, self._routes.find(request.path)
        page, operation = self._pages.get(path), route.operation(request.method)
        template = self._template(path, operation)
        is_api = path.startswith(("/v1/", "/v1%")) or path == "/v1"
        preflight = is_preflight(request, self._rules.allowed_origins)
        if preflight or not is_api or page is not None:
            always = _ALWAYS
        else:
            always = _NO_STORE if operation is not None and operation.no_store else _PRIVATE
        return ResolvedRoute(
            is_api=is_api,
            is_preflight=preflight,
            page=page,
            route=route,
            operation=operation,
            template=template,
            client=client_address(request, self._rules.trusted_proxies),
            always=always,
        )

    async def _answer(self, exchange: Exchange, receive: Receive) -> Response:
        request, resolved = exchange.request, exchange.resolved
        if request.refusal is not None:
            return error_response(request.refusal)
        if resolved.is_preflight or resolved.page is not None or not resolved.is_api:
            return await self._answer_without_key(request, resolved)
        key = await self._admit(exchange)
        operation = resolved.operation
        if operation is None:
            raise resolved.route.refusal(request.method)
        if operation.deprecation is not None:
            check_sunset(operation.deprecation, self._services.clock())
        require_scope(key, operation.scope)
        body = None
        if operation.body is not None:
            text = await self._bodies.read(request, receive)
            if not text and not operation.body_required:
                text = _EMPTY_BODY
            body = decode_json(text, operation.body)
        call = self._call(exchange, operation, key, body)
        if operation.shows_orders and self._services.reservations.are_due():
            await self._services.reservations.settle()
        answer = await operation.handler(call)
        if operation.method != "GET":
            await self._services.readers.note_change(key.id)
        return conditional(request, answer) if operation.tagged else answer

    async def _answer_without_key(self, request: Request, resolved: ResolvedRoute) -> Response:
        _check_host(request)
        if resolved.page is not None and not resolved.is_preflight:
            if request.method not in _PAGE_METHODS:
                raise not_allowed(request.method, _PAGE_METHODS)
            return await resolved.page(request)
        if not resolved.is_api:
            msg = "there is nothing here; the interface is under /v1, its reference at /docs"
            raise NotFound(msg)
        return preflight_response(resolved.route.methods())

    async def _admit(self, exchange: Exchange) -> ApiKey:
        """Check the key, then its ban and limits; without a valid key, the address's limit."""
        request, resolved = exchange.request, exchange.resolved
        keys, limiter = self._services.keys, self._services.limiter
        try:
            if resolved.token is None:
                _check_host(request)
                resolved.token = bearer_token(request)
            key = keys.recall(resolved.token) or await self._look_up(exchange, resolved.token)
            exchange.key = key
        except (InvalidRequest, MissingKey, InvalidKey):
            exchange.decision = await limiter.take_address(resolved.client)
            self._refuse_unadmitted(exchange.decision, ADDRESS)
            raise
        operation = resolved.operation
        if operation is not None and not operation.charged:
            exchange.decision = self._services.uncharged.take(key.id)
            holder = Holder("operation", f"this key for {operation.id}")
            self._refuse_unadmitted(exchange.decision, holder)
            exchange.decision = await limiter.look(key)
        else:
            exchange.decision = await limiter.take(key)
            self._refuse_unadmitted(exchange.decision, KEY)
        return key

    async def _look_up(self, exchange: Exchange, token: bytes) -> ApiKey:
        """Return the key of a token that is not in memory.

        A new token is charged to its address before the database is asked, so that many that are
        made up at once are not all looked up. What turns out to be a key's is given back.
        """
        keys, look_ups = self._services.keys, self._services.look_ups
        if not keys.is_new(token):
            return await authenticate(token, keys)
        address = exchange.resolved.client
        exchange.decision = look_ups.take(address)
        self._refuse_unadmitted(exchange.decision, ADDRESS)
        try:
            key = await authenticate(token, keys)
        except Unavailable:
            look_ups.give_back(address)
            raise
        look_ups.give_back(address)
        return key

    def _refuse_unadmitted(self, decision: Decision, holder: Holder) -> None:
        if decision.verdict != "admitted":
            raise refusal(decision, holder)

    def _call(
        self, exchange: Exchange, operation: Operation, key: ApiKey, body: object
    ) -> Call[Any, Any]:
        request, resolved = exchange.request, exchange.resolved
        given = resolved.given
        if given is None:
            given = resolved.given = _given(request, resolved.route, operation)
        retry_of = idempotency_key(request) if operation.method == "POST" else None
        return Call(self._services, request, key, *given, body, retry_of)

    def _headers(self, exchange: Exchange, answer: Response, decision: Decision | None) -> Headers:
        always = exchange.resolved.always
        headers = [*answer.headers, always % exchange.request_id.encode("ascii")]
        if always is _ALWAYS and answer.status >= _FIRST_ERROR:
            headers.append(NO_STORE)
        if answer.status not in _WITHOUT_CONTENT:  # RFC 9110 section 8.6
            headers.append(b"content-length: %d" % len(answer.body))
        if decision is not None:
            headers.append(rate_limit_headers(decision))
        operation, allowed = exchange.resolved.operation, self._rules.allowed_origins
        if operation is not None and operation.deprecation is not None:
            headers += deprecation_headers(operation.deprecation)
        if allowed:
            headers += cross_origin_headers(exchange.request, allowed)
        return headers


def _given(request: Request, route: Route, operation: Operation) -> tuple[int, Query[Any]]:
    path_id, query = 0, _NO_QUERY
    if operation.query is not None:
        query = decode_query(request.query, operation.query)
    if operation.parameter is not None:
        path_id = decode_path_id(route.parameter)
    if operation.is_conditional:
        check_conditions(request)
    return path_id, query


def _check_host(request: Request) -> None:
    """Refuse a request without exactly one valid Host (RFC 9112 section 3.2)."""
    host = request.fields.get(b"host")
    if host is None and request.version == "1.0":
        return
    if host is None or b"host" in request.repeated:
        msg = "Host: expected exactly once"
        raise InvalidRequest(msg)
    if len(host) > _LONGEST_HOST or not _is_host(host):
        msg = "Host: expected a name or an address, and perhaps a port"
        raise InvalidRequest(msg)


@lru_cache(maxsize=64)
def _is_host(text: bytes) -> bool:
    return _HOST.match(text) is not None
