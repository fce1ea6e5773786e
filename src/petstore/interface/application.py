"""The path of a request, outermost layer first. Only the outermost adds the common headers."""

import logging
import os
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any, NamedTuple, Protocol, TypeAlias

from msgspec import UNSET, Struct
from msgspec.structs import replace

from petstore.clock import DAY, HOUR
from petstore.domain.decoding import decode_json
from petstore.domain.networks import Network, client_address, network_of
from petstore.errors import (
    InternalError,
    InvalidKey,
    InvalidRequest,
    MissingKey,
    NetworkNotAllowed,
    PetstoreError,
    RateLimitExceeded,
    Unavailable,
)
from petstore.events.changes import PageRange
from petstore.http.messages import Headers, Receive, Request, Response
from petstore.interface.authentication import (
    authenticate_again,
    bearer_token,
    look_up,
    require_network,
    require_scope,
)
from petstore.interface.bodies import BodyReader
from petstore.interface.idempotency import idempotency_key, request_digest
from petstore.interface.idempotency_records import Attempt
from petstore.interface.messages import (
    NO_CONDITIONS,
    NO_STORE,
    Conditions,
    conditional,
    conditions_of,
    error_response,
    rate_limit_headers,
    refusal_response,
    require_admitted,
)
from petstore.interface.operation import (
    Call,
    Context,
    FileBody,
    IdempotentRequest,
    Operation,
    Services,
    Target,
    deprecation_headers,
    encode_result,
    execute,
    shows_lapse,
)
from petstore.interface.pages import Query, ResponseCache, decode_query
from petstore.interface.routes import (
    Addresses,
    Route,
    Routes,
    cross_origin_headers,
    decode_path_id,
    is_preflight,
    not_allowed,
    preflight_response,
)
from petstore.keys.model import Caller, Scope
from petstore.limits.admission import KEY
from petstore.limits.decide import Decision
from petstore.logs import RequestLine
from petstore.usage.counter import first_hour

PublicPage: TypeAlias = Callable[[Request], Awaitable[Response]]

_LOG = logging.getLogger(__name__)
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}\Z")
_PUBLIC = b"x-request-id: %b\r\nx-content-type-options: nosniff"
_KEYED = _PUBLIC + b"\r\nvary: Authorization\r\n"
_PRIVATE = _KEYED + b"cache-control: private, no-cache"
_NO_STORE = _KEYED + b"cache-control: no-store"
# So that hex() gives each number twelve digits after its 1: a format costs twice as much.
_FIRST_ID = 0x1_000000000001
_FIRST_ERROR = 400
_TOO_MANY = 429
_PAGE_METHODS = ["GET", "HEAD"]
_NO_QUERY: Query[Any] = Query(None)
_WITHOUT_CONTENT = (204, 304)
_WHOLE = ("none", "read")


@dataclass(frozen=True)
class HttpRules:
    addresses: Addresses
    trusted_proxies: Sequence[Network] = ()
    allowed_origins: Sequence[str] = ()


class Exchange(Struct):
    """A request in progress.

    ``client`` is the address behind trusted proxies, and ``template`` has no values of the client.
    A public request needs no key, and gets ``page`` if there is one. A request of a ``section`` is
    public here. ``root``, ``token``, ``caller``, ``decision`` and ``guessed`` (the digest of a
    login that did not sign in) are set as soon as they are known.
    """

    request: Request
    request_id: str
    started: float
    client: str
    page: PublicPage | None
    section: "Section | None"
    route: Route[Operation]
    parameters: tuple[str, ...]
    template: str | None
    operation: Operation | None
    is_public: bool
    root: str
    token: bytes = b""
    caller: Caller | None = None
    decision: Decision | None = None
    guessed: str = ""


class Section(Protocol):
    """Pages below a path of their own, which find out themselves who requests them."""

    @property
    def path(self) -> str:
        """The path of its first page; the others are below it."""

    async def __call__(self, exchange: Exchange, receive: Receive) -> Response:
        """Respond to one request, whatever happens, with every header but the usual ones.

        Set the ``caller`` and the ``template`` of ``exchange`` for the log.
        """


class RequestHooks(NamedTuple):
    """Called in the task of a request: as it arrives, and once it has its response."""

    on_request: Sequence[Callable[[Request], None]]
    on_response: Sequence[Callable[[RequestLine], None]]


class Pages(NamedTuple):
    """Pages beside the interface, by exact path; ``missing`` is for every other path."""

    by_path: Mapping[str, PublicPage]
    missing: PublicPage
    section: Section


class Application:
    """The interface, and the ``pages`` beside it; ``lifespan`` opens and closes its resources."""

    def __init__(
        self,
        *,
        services: Services,
        routes: Routes[Operation],
        pages: Pages,
        bodies: BodyReader,
        rules: HttpRules,
        hooks: RequestHooks,
        lifespan: Callable[[], AbstractAsyncContextManager[None]],
        on_retire: Callable[[], None],
    ) -> None:
        self.services = services
        self._routes = routes
        self._pages = pages.by_path
        self._missing = pages.missing
        self._section = pages.section
        self._response_cache = ResponseCache(services.store)
        self._within = f"{pages.section.path}/"
        self._bodies = bodies
        self._rules = rules
        self._on_request, self._on_response = hooks
        self.lifespan = lifespan
        self._on_retire = on_retire
        self._retiring = False
        self._prefix = os.urandom(6).hex()  # so no other process gives the same ids
        self._count = count(_FIRST_ID)

    def shut_down(self) -> None:
        """Report not ready, and close each connection after its next response."""
        self._retiring = True
        self.services.feed.release()
        self._on_retire()

    async def __call__(self, request: Request, receive: Receive) -> Response:
        """Respond to one request, within the ``lifespan``, whatever happens."""
        for note in self._on_request:
            note(request)
        exchange = self._begin(request)
        try:
            response = await self._respond(exchange, receive)
        except PetstoreError as error:
            if isinstance(error, Unavailable):
                _LOG.warning("request %s: %s", exchange.request_id, error)
            response = error_response(error, exchange.root)
        except Exception:  # noqa: BLE001 - whatever it is, the caller gets an Error body
            _LOG.exception("request %s failed", exchange.request_id)
            failure = InternalError("the service failed; its log has the reason")
            response = error_response(failure, exchange.root)
        if exchange.decision is None and (_is_api(request.path) or request.refusal is not None):
            address, network = self.services.admission.address, network_of(exchange.client)
            exchange.decision = await self.services.limiter.look_at(address, network)
        size = response.size
        headers = self._headers(exchange, response, size)
        if request.body != "none":
            await self._bodies.discard(request, receive)
        is_last = self._retiring or request.body not in _WHOLE
        if request.method == "HEAD":
            if response.file is not None:
                response.file.close()
            response, size = replace(response, body=b"", file=None), 0
        self._note(exchange, response, size)
        return Response(
            response.status,
            response.body,
            headers,
            is_last,
            file=response.file,
            is_shared=response.is_shared,
        )

    def _begin(self, request: Request) -> Exchange:
        started = time.perf_counter()
        request_id = self._prefix + hex(next(self._count))[len("0x1") :]
        given = request.fields.get(b"x-request-id")
        if given is not None and _REQUEST_ID.match(given):
            request_id = given.decode("ascii")
        trusted, client = self._rules.trusted_proxies, request.client
        if trusted:
            client = client_address(client, request.fields.get(b"x-forwarded-for"), trusted)
        path, page, section = request.path, None, None
        route, parameters = self._routes.find(path)
        operation = route.operations.get(request.method)
        is_public, template = False, route.template or None
        if operation is None:
            page = self._pages.get(path)
            template = None if page is None else path
            if path.startswith(self._within) or path == self._section.path:
                section = self._section
            is_public = (
                page is not None
                or not _is_api(path)
                or is_preflight(request, self._rules.allowed_origins)
            )
        return Exchange(
            request,
            request_id,
            started,
            client,
            page,
            section,
            route,
            parameters,
            template,
            operation,
            is_public,
            self._rules.addresses.public_url,
        )

    async def _respond(self, exchange: Exchange, receive: Receive) -> Response:
        request, operation = exchange.request, exchange.operation
        if request.refusal is not None:
            return refusal_response(request.refusal, exchange.root)
        if exchange.section is not None:
            exchange.root = self._rules.addresses.root(request)
            return await exchange.section(exchange, receive)
        if exchange.is_public:
            return await self._respond_without_key(exchange)
        key = await self._admit(exchange)
        if operation is None:
            raise exchange.route.refusal(request.method, request.path)
        if operation.deprecation is not None:
            now = self.services.clock()
            latest = now, request.fields.get(b"user-agent"), exchange.request_id
            hour = first_hour(now // DAY)
            self.services.counter.count("deprecated", key.id, operation.id, hour, latest)
            operation.deprecation.check(now)
        require_scope(key, operation.scope)
        if operation.media_types:
            response = await self._respond_to_file(exchange, operation, key, receive)
        else:
            response = await self._respond_to_json(exchange, operation, key, receive)
        if operation.waits:
            key = await self._find_caller_again(exchange)
            exchange.decision = await self.services.limiter.look(key)
        return response

    async def _respond_to_json(
        self, exchange: Exchange, operation: Operation, key: Caller, receive: Receive
    ) -> Response:
        request = exchange.request
        body: object = None
        if operation.body is not None:
            text = await self._bodies.read(request, receive, is_list=operation.is_batch)
            if request.content is None:  # some of it came later than the head
                key = await self._find_caller_again(exchange, operation.scope)
            absent = b"" if operation.body_required else b"{}"
            body = decode_json(text or absent, operation.body)
        if operation.in_turn:
            return await self._respond_in_turn(exchange, operation, key, body)
        return await self._execute(exchange, operation, key, body)

    async def _respond_without_key(self, exchange: Exchange) -> Response:
        request, page = exchange.request, exchange.page
        exchange.root = self._rules.addresses.root(request)
        if is_preflight(request, self._rules.allowed_origins):
            return preflight_response(request, exchange.route.methods())
        if page is None:
            return await self._missing(request)
        if request.method not in _PAGE_METHODS:
            raise not_allowed(request.method, _PAGE_METHODS)
        return await page(request)

    async def _admit(self, exchange: Exchange) -> Caller:
        """Without a valid key, or from outside its networks, the address's limit applies."""
        request, operation = exchange.request, exchange.operation
        keys, limiter = self.services.keys, self.services.limiter
        admission = self.services.admission
        try:
            exchange.root = self._rules.addresses.root(request)
            token = exchange.token = bearer_token(request)
            key = exchange.caller = keys.get_cached(token) or await self._look_up(exchange, token)
            if key.allowed_networks:
                require_network(key, exchange.client)
        except (InvalidRequest, MissingKey, InvalidKey, NetworkNotAllowed):
            network = network_of(exchange.client)
            exchange.decision = await limiter.take_of(admission.address, network)
            require_admitted(exchange.decision, admission.address)
            raise
        if operation is not None and not operation.charged:
            exchange.decision = admission.uncharged.take(key.id)
            require_admitted(exchange.decision, admission.uncharged.budget)
            exchange.decision = await limiter.look(key)
        else:
            exchange.decision = await limiter.take(key)
            require_admitted(exchange.decision, KEY)
        return key

    async def _respond_in_turn(
        self, exchange: Exchange, operation: Operation, key: Caller, body: Any
    ) -> Response:
        """If the day has less left, a batch costs one request of the minute alone."""
        admission = self.services.admission
        with await admission.batches.take(key.id), await admission.working_batches.take(key.id):
            key = await self._find_caller_again(exchange, operation.scope)
            size = len(body) if operation.is_batch else 1
            if size > 1:
                charge, admitted = self.services.limiter.charge, exchange.decision
                decision = exchange.decision = await charge(key, size - 1, admitted)
                require_admitted(decision, KEY, size)
            return await self._execute(exchange, operation, key, body)

    async def _respond_to_file(
        self, exchange: Exchange, operation: Operation, key: Caller, receive: Receive
    ) -> Response:
        request, admission = exchange.request, self.services.admission
        with await admission.files.take(key.id):
            upload = await self._bodies.read_upload(request, receive, operation.media_types)
            with upload.content, await admission.readings.take(key.id):
                key = await self._find_caller_again(exchange, operation.scope)
                return await self._execute(exchange, operation, key, upload)

    async def _find_caller_again(self, exchange: Exchange, scope: Scope | None = None) -> Caller:
        keys, token = self.services.keys, exchange.token
        exchange.caller = await authenticate_again(token, keys, exchange.client)
        require_scope(exchange.caller, scope)
        return exchange.caller

    async def _look_up(self, exchange: Exchange, token: bytes) -> Caller:
        look_ups, client = self.services.admission.look_ups, exchange.client
        try:
            return await look_up(token, self.services.keys, look_ups, client)
        except RateLimitExceeded:
            exchange.decision = look_ups.look(network_of(client))
            raise

    async def _execute(
        self, exchange: Exchange, operation: Operation, key: Caller, body: object
    ) -> Response:
        request = exchange.request
        conditions = conditions_of(request) if operation.is_conditional else NO_CONDITIONS
        if operation.cached:
            if shows_lapse(operation, self.services):
                await self.services.reservations.settle()
            page = (exchange.root, request.path, request.query)
            read = partial(self._execute_anew, exchange, operation, key, body, conditions)
            response = await self._response_cache.get(page, read)
        else:
            response, _ = await self._execute_anew(exchange, operation, key, body, conditions)
        return conditional(conditions, response) if operation.method == "GET" else response

    async def _execute_anew(
        self,
        exchange: Exchange,
        operation: Operation,
        key: Caller,
        body: object,
        conditions: Conditions,
    ) -> tuple[Response, PageRange | None]:
        request, parameters = exchange.request, exchange.parameters
        query: Query[Any] = _NO_QUERY
        if operation.query is not None:
            query = decode_query(request.query, operation.query)
        path_id = decode_path_id(parameters[0]) if parameters else 0
        child_id = decode_path_id(parameters[1]) if len(parameters) > 1 else 0
        target = Target(exchange.root, request.path, query.filters)
        once = None
        if operation.method == "POST":
            once = _idempotent(operation, request, target, key, body)
        context = Context(
            self.services,
            key,
            exchange.client,
            exchange.root,
            exchange.request_id,
            token=exchange.token,
            check=conditions.check,
            once=once,
            client=request,
        )
        result = await execute(operation, context, Call(query.values, body, path_id, child_id))
        return encode_result(operation, target, result), result.extent

    def _headers(self, exchange: Exchange, response: Response, size: int) -> Headers:
        operation, decision = exchange.operation, exchange.decision
        allowed, request_id = self._rules.allowed_origins, exchange.request_id.encode("ascii")
        headers = response.headers.copy()
        if operation is not None:
            headers.append((_NO_STORE if operation.no_store else _PRIVATE) % request_id)
            if operation.deprecation is not None:
                headers += deprecation_headers(operation.deprecation, exchange.root)
        else:
            headers.append((_PUBLIC if exchange.is_public else _PRIVATE) % request_id)
            is_page = exchange.is_public and exchange.section is None
            if is_page and response.status >= _FIRST_ERROR:
                headers.append(NO_STORE)
        # No file is written for HEAD, so its size is unknown (RFC 9110 section 8.6).
        is_unwritten = exchange.request.method == "HEAD" and response.file is not None
        if response.status not in _WITHOUT_CONTENT and not is_unwritten:
            headers.append(b"content-length: %d" % size)
        if decision is not None:
            headers.append(rate_limit_headers(decision))
        if allowed and exchange.section is None:
            headers += cross_origin_headers(exchange.request, allowed)
        return headers

    def _note(self, exchange: Exchange, response: Response, size: int) -> None:
        operation, caller, decision = exchange.operation, exchange.caller, exchange.decision
        key = person = None
        if caller is not None:
            if caller.role is None:
                key = caller.id
            else:
                person = caller.id
            if decision is not None:  # not at the console, which has no limits
                counter, hour = self.services.counter, first_hour(decision.day_number)
                counter.count("response", caller.id, str(response.status), hour)
                if response.status == _TOO_MANY:
                    refused = "" if operation is None else operation.id
                    counter.count("refused", caller.id, refused, decision.now // HOUR)
        seconds = time.perf_counter() - exchange.started - response.waited
        line = RequestLine(
            request=exchange.request_id,
            client=exchange.client,
            key=key,
            person=person,
            login=exchange.guessed or UNSET,
            method=exchange.request.method,
            route=exchange.template,
            operation=None if operation is None else operation.id,
            status=response.status,
            code=response.code,
            limit=response.limit,
            bytes=size,
            # A third of what rounding to three digits costs.
            milliseconds=round(seconds * 1e6) / 1e3,
        )
        for note in self._on_response:
            note(line)


def _idempotent(
    operation: Operation, request: Request, target: Target, key: Caller, body: object
) -> IdempotentRequest | None:
    name = idempotency_key(request)
    if name is None:
        return None
    sent = body.digest if isinstance(body, FileBody) else body
    attempt = Attempt(key, name, request_digest(operation.method, request.path, sent))
    return IdempotentRequest(attempt, operation, target)


def _is_api(path: str) -> bool:
    return path.startswith(("/v1/", "/v1%")) or path == "/v1"
