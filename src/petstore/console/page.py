"""A page of the console: one row of the table of pages, and a visit to it."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from http import HTTPStatus
from typing import Any, Literal, NamedTuple, TypeAlias
from urllib.parse import urlencode, urlsplit

import msgspec
from msgspec import Struct

from petstore.api.authentication import require_scope
from petstore.api.entity_tags import entity_tag
from petstore.api.messages import encode_json
from petstore.api.operation import BASE, Call, Operation, Services, carry_out
from petstore.api.operations import OPERATIONS
from petstore.api.parameters import Query, decode_query
from petstore.api.rate_limit_headers import KEY, refusal
from petstore.console.again import Again
from petstore.console.cookies import session_secret
from petstore.console.forms import EMPTY, Form
from petstore.console.notices import Notice, decode_notice, encode_notice
from petstore.console.session_limits import SessionLimits
from petstore.console.templates import Templates
from petstore.domain.api_keys import ApiKey, Scope
from petstore.domain.decoding import decode_json
from petstore.errors import Conflict, IdempotencyKeyInUse, PetstoreError
from petstore.http.messages import Request, Response
from petstore.store.console_sessions import Session, SessionEnd, keep_notice

HOME = "/console"

MAX_FORM = 65536
"""The maximum size of a form without a file, in bytes."""

Handler: TypeAlias = "Callable[[Visit], Awaitable[Response]]"

_BY_ID = {operation.id: operation for operation in OPERATIONS}
_CURSOR = b"cursor="
_CONFLICTS: dict[str, type[Conflict]] = {error.code: error for error in Conflict.__subclasses__()}
_SECOND_CLICK_SECONDS = 0.05
# Changes of animals, categories and orders. Keys and webhooks can be changed at the limit as well:
# a key that others have used up must be replaced.
_CHARGED: frozenset[Scope | None] = frozenset({"pets:write", "orders:write"})


@dataclass(frozen=True)
class Page:
    """A page of the console. ``path`` is relative to ``HOME``.

    It is for keys that may carry out the operation ``needs``, or for every key. A ``public`` page
    needs no session. One that ``signs_in`` is limited by address. One that ``ends_sessions``, or
    leads there, has a limit of its own: others may have used up that of the key.
    ``max_bytes`` is the maximum size of a form that it takes. One that ``has_file`` receives, sends
    or adds a file, in turn.
    """

    method: Literal["GET", "POST"]
    path: str
    handler: Handler
    needs: str | None = None
    public: bool = False
    signs_in: bool = False
    ends_sessions: bool = False
    max_bytes: int = MAX_FORM
    has_file: bool = False

    @cached_property
    def has_id(self) -> bool:
        """Whether the parameter of the path is an id of the store, such as ``{petId}``."""
        return "Id}" in self.path

    @property
    def takes_files(self) -> bool:
        """Whether its form may have a file."""
        return self.has_file and self.method == "POST" and self.max_bytes > MAX_FORM


class Result(NamedTuple):
    """What an operation responded with.

    ``value`` has the type that the table of operations names, ``tag`` is the version of a single
    resource, and ``cursor`` leads to the next page of a list, empty if there is none.
    """

    value: Any
    tag: str
    cursor: str


class Visit(Struct):
    """One request of a page, decoded. ``path_id`` is 0 where the path has no parameter.

    ``form`` has the fields of the query, or of the body of a POST. A ``refresh`` is a request that
    the page makes by itself. Public pages have no ``session``; ``ended`` is why the one of the
    cookie ended. ``cursor`` is the position in the feed of events before the page was read; only a
    page that a person opens has one.

    ``beyond`` is the refusal of an attempt to sign in that fails, from an address that is beyond
    its limit. After an error, ``again`` has a form that can be sent again, ``lost_file`` says that
    a file cannot be, and ``on_error`` makes the page if it is not the usual one.
    """

    services: Services
    templates: Templates
    limits: SessionLimits
    request: Request
    root: str
    client: str
    path_id: int = 0
    parameter: str = ""
    form: Form = EMPTY
    session: Session | None = None
    ended: SessionEnd | None = None
    beyond: PetstoreError | None = None
    again: Again | None = None
    lost_file: bool = False
    on_error: Callable[[PetstoreError], Response] | None = None
    cursor: str = ""

    @property
    def key(self) -> ApiKey:
        """The key of the session."""
        assert self.session is not None  # noqa: S101 - only public pages have none
        return self.session.key

    @property
    def home(self) -> str:
        """The path of the console as the client sees it: a proxy may serve it below another one."""
        return home_of(self.root)

    @property
    def is_refresh(self) -> bool:
        """Whether the script made the request by itself, and not the person."""
        return b"console-refresh" in self.request.fields

    @property
    def is_head(self) -> bool:
        """Whether only the head of the response is sent: no file is written for it."""
        return self.request.method == "HEAD"

    def may(self, operation_id: str) -> bool:
        """Return whether the key may carry out an operation."""
        return self.session is not None and may_call(self.key, operation_id)

    async def call(
        self,
        operation_id: str,
        *,
        path_id: int = 0,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
        if_match: str = "",
        once: str = "",
    ) -> Result:
        """Carry out an operation of the interface, and return what it responds with.

        ``query`` and ``body`` are as in the interface; values of ``None`` are left out of a query.
        ``if_match`` is the tag of the version to change. A POST with the same ``once`` and the same
        body is carried out once (``Idempotency-Key``): the second click of two waits for the first.
        A form that was sent, and then changed, is another request.

        A change of an animal, a category or an order costs a request of the key's day.

        Raises:
            PetstoreError: what the interface would respond with.
        """
        operation = _BY_ID[operation_id]
        assert self.session is not None  # noqa: S101 - only public pages have none
        require_scope(self.key, operation.scope)
        text = urlencode(
            {k: v for k, v in (query or {}).items() if v is not None}, doseq=True
        ).encode("ascii")
        path = f"{BASE}{operation.path}".replace(f"{{{operation.parameter}}}", str(path_id))
        fields = {b"if-match": if_match.encode("ascii", "replace")} if if_match else {}
        if once:
            # The record of a response with a token is sealed with what the person signed in with.
            secret = session_secret(self.request, self.root)
            fields[b"authorization"] = f"Bearer {secret}".encode("latin-1")
        request = Request(operation.method, path, text, self.client, fields)
        call: Call[Any, Any] = Call(
            services=self.services,
            request=request,
            root=self.root,
            client=self.client,
            key=self.key,
            path_id=path_id,
            query=Query(None) if operation.query is None else decode_query(text, operation.query),
            body=None if operation.body is None else _body(operation, body),
            idempotency_key=_idempotency_key(once, body),
            session=self.session.digest,
        )
        if operation.scope in _CHARGED:
            decision = await self.services.limiter.charge(self.key, 1)
            if decision.verdict != "admitted":
                raise refusal(decision, KEY)
        return _result(operation, await _carry_out(operation, call))

    def page(self, template: str, status: int = 200, **context: Any) -> Response:
        """Return a page from its template."""
        notice = None
        if self.session is not None:
            notice = decode_notice(self.session.notice, self.form.text("notice"))
        shown = {
            "visit": self,
            "home": self.home,
            "may": self.may,
            "notice": notice,
            "problem": None,
            **context,
        }
        return self.templates.page(template, status, shown)

    async def redirect(self, path: str, notice: Notice | None = None) -> Response:
        """Return 303 to a page of the console, which then shows ``notice``.

        ``path`` may have a query, and is relative to ``HOME``.
        """
        if notice is not None:
            assert self.session is not None  # noqa: S101 - a change needs a session
            await self.services.store.write(keep_notice(self.session, encode_notice(notice)))
            path += f"{'&' if '?' in path else '?'}notice={notice.id}"
        return redirect(f"{self.home}{path}")


def home_of(root: str) -> str:
    """Return the path of the console of a service at the URL ``root``."""
    return urlsplit(root).path + HOME


def redirect(target: str) -> Response:
    """Return 303 to a page: the browser gets it with GET (RFC 9110 section 15.4.4)."""
    headers = [f"location: {target}".encode("ascii"), b"cache-control: no-store"]
    return Response(HTTPStatus.SEE_OTHER, b"", headers)


def scope_of(operation_id: str) -> Scope | None:
    """Return the scope of an operation."""
    return _BY_ID[operation_id].scope


def may_call(key: ApiKey, operation_id: str) -> bool:
    """Return whether a key has the scope of an operation."""
    scope = scope_of(operation_id)
    return scope is None or scope in key.scopes


def _idempotency_key(once: str, body: Mapping[str, Any] | None) -> str | None:
    # A digest, since not every text of a form is one that the database takes.
    digest = blake2b(encode_json([once, body]), digest_size=24).hexdigest()
    return f"console-{digest}" if once else None


def _body(operation: Operation, body: Mapping[str, Any] | None) -> Any:
    assert operation.body is not None  # noqa: S101 - the caller has looked
    return decode_json(encode_json(body or {}), operation.body)


async def _carry_out(operation: Operation, call: Call[Any, Any]) -> Response:
    while True:
        try:
            return await carry_out(operation, call)
        except IdempotencyKeyInUse:  # until the first click has its response
            await asyncio.sleep(_SECOND_CLICK_SECONDS)


def _result(operation: Operation, response: Response) -> Result:
    if response.code is not None:
        # The conflict that the first click met; see ``petstore.api.idempotency``.
        raise _CONFLICTS[response.code](msgspec.json.decode(response.body)["message"])
    value = None
    if operation.success.content is not None:
        value = msgspec.json.decode(response.body, type=operation.success.content)
    return Result(value, (response.tag or entity_tag(response.body)).decode(), _cursor(response))


def _cursor(response: Response) -> str:
    for line in response.headers:
        if line.startswith(b"link: "):
            return line.rpartition(_CURSOR)[2].partition(b">")[0].decode("ascii")
    return ""
