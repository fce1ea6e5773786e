"""An operation of the interface: one row of the table that routes, validates and documents."""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from email.utils import format_datetime
from functools import cached_property, lru_cache
from typing import Any, BinaryIO, Generic, Literal, NamedTuple, TypeAlias, TypeVar, get_origin

from msgspec import Struct

from petstore.clock import Clock, Milliseconds, milliseconds
from petstore.databases.contract import Store, Unit
from petstore.databases.private_files import SecretFile
from petstore.errors import Gone, MissingKey, PetstoreError
from petstore.events.changes import PageRange
from petstore.events.feed import Client, Feed
from petstore.events.model import Author
from petstore.events.store import Change
from petstore.http.messages import Headers, Response
from petstore.interface.authentication import authenticate_again, require_network
from petstore.interface.idempotency_records import Attempt, SafeRetries
from petstore.interface.messages import JSON, NO_CONDITIONS, encode_json, entity_tag
from petstore.keys.model import Caller, Scope, digest
from petstore.keys.store import ApiKeyCache, find_key
from petstore.limits.admission import Admission
from petstore.limits.decide import RateLimiter
from petstore.orders.store import Reservations
from petstore.people.model import Session
from petstore.people.store import find_session, find_session_in_unit
from petstore.settings import Settings
from petstore.usage.counter import Counter, DeprecatedOperation

BASE = "/v1"
_CREATED = 201

Body = TypeVar("Body")
Values = TypeVar("Values")
Value = TypeVar("Value")
Method: TypeAlias = Literal["GET", "POST", "PATCH", "DELETE"]


@dataclass(frozen=True)
class Services:
    settings: Settings
    store: Store
    limiter: RateLimiter
    admission: Admission
    clock: Clock
    keys: ApiKeyCache
    retries: SafeRetries
    feed: Feed
    reservations: Reservations
    counter: Counter
    deprecated: Sequence[DeprecatedOperation]
    webhook_secret: SecretFile


class Call(Struct, Generic[Body, Values], frozen=True):
    """The decoded input. ``path_id`` and ``child_id`` are 0 where the path has no parameter."""

    query: Values
    body: Body
    path_id: int = 0
    child_id: int = 0


class Context(Struct, frozen=True):
    """What an operation may use: the parts of the service, and who calls it and how.

    ``address`` is the client's, behind trusted proxies. The events that the call causes name
    its ``request_id``. ``token`` is what authenticated it: the token of a key, or the secret of the
    ``session`` of the console. ``check`` refuses to change a resource as it is now. ``once`` names
    a request with an ``Idempotency-Key``. ``client`` is told to a long poll, which ends if the
    client leaves.
    """

    services: Services
    caller: Caller
    address: str
    root: str = ""
    request_id: str = ""
    token: bytes = b""
    session: Session | None = None
    check: Callable[[Any], None] = NO_CONDITIONS.check
    once: "IdempotentRequest | None" = None
    client: Client | None = None

    @property
    def author(self) -> Author:
        return Author(self.caller.actor, self.request_id or None)

    @property
    def change(self) -> Change:
        settings = self.services.settings
        return Change(
            self.services.clock(),
            self.author,
            self.check,
            settings.strict_categories,
            settings.reservation_minutes,
            settings.currency,
            self.caller,
        )

    @property
    def checked_change(self) -> Change:
        """The change of a caller whose rights its unit of work looks up once more."""
        if self.caller.kind == "operator":
            return self.change
        return self.change._replace(
            address=self.address, find_caller=self.find_caller_in_unit, credential=self.credential
        )

    @property
    def credential(self) -> bytes:
        """The digest of what the caller ends with; see ``Session``."""
        return digest(self.token) if self.session is None else self.session.credential

    def find_caller_in_unit(self) -> Unit[Caller | None]:
        """Return the caller as it is within a unit of work: its token may have just ended."""
        if self.session is None:
            return (yield from find_key(self.credential))
        now, digest_of_cookie = self.services.clock(), self.session.device.digest
        session = yield from find_session_in_unit(digest_of_cookie, now)
        return session.caller if session else None

    async def find_caller_again(self) -> Caller:
        """Return the caller as it is after a wait."""
        keys = self.services.keys
        if self.session is None:
            return await authenticate_again(self.token, keys, self.address)
        secret, now = self.token.decode("latin-1"), self.services.clock()
        session = await find_session(self.services.store, secret, keys.environment, now)
        if session is None:
            raise MissingKey("sign in again")
        require_network(session.caller, self.address)
        return session.caller


class Result(Struct, Generic[Value], frozen=True):
    """What an operation returns.

    ``next`` is the cursor of the next page of a list, and ``latest`` where to resume later in one
    that grows. ``is_replay``: an earlier request with the same ``Idempotency-Key`` took effect. The
    ``location`` of a new resource, a URL, is empty if it is below the request's. A long poll has
    ``waited`` this many seconds. What was recorded for retries has its ``response`` already. A page
    may have the ``extent`` of what it shows, and the ``total`` of all pages.
    """

    value: Value
    next: str = ""
    latest: str = ""
    is_replay: bool = False
    location: str = ""
    waited: float = 0.0
    response: Response | None = None
    extent: PageRange | None = None
    total: int | None = None

    @property
    def version(self) -> str:
        """The entity tag of a single resource, for ``If-Match``."""
        return entity_tag(encode_json(self.value)).decode("ascii")


class FileBody(NamedTuple):
    content: BinaryIO
    media_type: str
    digest: bytes


@dataclass(frozen=True)
class Success:
    """Without ``content`` it has no body. With a type other than JSON, the handler makes it."""

    status: int
    description: str
    content: Any = None
    example: Any = None
    media_type: str = "application/json"


@dataclass(frozen=True, eq=False)
class Deprecation:
    """``use`` says to people what replaces the operation, and ``successor`` is its address."""

    since: datetime
    sunset: datetime
    documentation: str
    successor: str
    use: str

    @cached_property
    def _end(self) -> Milliseconds:
        return milliseconds(self.sunset)

    def check(self, now: Milliseconds) -> None:
        if now >= self._end:
            end = format_datetime(self.sunset, usegmt=True)
            raise Gone(f"this operation ended on {end}; use {self.use} instead")


@lru_cache(maxsize=64)
def deprecation_headers(deprecation: Deprecation, root: str) -> Headers:
    """Return ``Deprecation`` (RFC 9745), ``Sunset`` (RFC 8594) and links below ``root``."""
    sunset = format_datetime(deprecation.sunset, usegmt=True)
    link = (
        f'<{root}{deprecation.documentation}>; rel="deprecation"; type="text/html",'
        f' <{root}{deprecation.successor}>; rel="successor-version"'
    )
    since = int(deprecation.since.timestamp())
    lines = f"deprecation: @{since}", f"sunset: {sunset}", f"link: {link}"
    return [line.encode("ascii") for line in lines]


@dataclass(frozen=True)
class Operation:
    """An operation of the interface. ``path`` is relative to ``BASE``.

    ``errors`` are the operation's own; the OpenAPI document adds the ones that follow from
    the other fields. ``tagged``: an ``ETag`` names the version of the resource that the operation
    responds with or deletes. ``shows_orders``: a lapsed reservation shows in the response.
    ``cached``: the response is the same for every key, and valid until a change shows on it.
    ``no_store``: the response is about keys, so no cache may keep it.
    ``media_types`` are for a body that is a file, a ``FileBody``. What is ``in_turn``, as batches
    are, takes long, so a key has one at a time. ``waits``: the handler may take a second or more,
    so the key is checked once more after it, and its limits are read again.
    ``grows``: every page of the list says where to resume later.
    """

    id: str
    method: Method
    path: str
    tag: str
    summary: str
    description: str
    handler: Callable[[Context, Call[Any, Any]], Awaitable[Result[Any]]]
    scope: Scope | None
    success: Success
    errors: Sequence[type[PetstoreError]] = ()
    query: type[Any] | None = None
    body: type[Any] | None = None
    body_example: Any = None
    body_required: bool = True
    media_types: Sequence[str] = ()
    in_turn: bool = False
    tagged: bool = True
    shows_orders: bool = False
    cached: bool = False
    no_store: bool = False
    waits: bool = False
    grows: bool = False
    charged: bool = True
    deprecation: Deprecation | None = None

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters of the path, two at most, each an int64 in plain digits."""
        return tuple(re.findall(r"{(\w+)}", self.path))

    @cached_property
    def is_list(self) -> bool:
        return get_origin(self.success.content) is list and self.query is not None

    @cached_property
    def reads_one(self) -> bool:
        return self.method == "GET" and self.tagged and get_origin(self.success.content) is not list

    @cached_property
    def is_batch(self) -> bool:
        """Whether it takes a list: it acts on all of its items or on none, each for a request."""
        return get_origin(self.body) is list

    @cached_property
    def is_conditional(self) -> bool:
        """Adding a resource to a list changes no version of it."""
        return self.tagged if self.method == "GET" else bool(self.parameters)


class Target(Struct, frozen=True, gc=False):
    """Where a request was sent: the URL of the service, the path, and the filters of the query."""

    root: str
    path: str
    filters: str = ""

    def next_page(self, cursor: str) -> str:
        filters = f"{self.filters}&" if self.filters else ""
        return f"{self.path}?{filters}cursor={cursor}"


class IdempotentRequest(NamedTuple):
    attempt: Attempt
    operation: Operation
    target: Target


async def execute(operation: Operation, context: Context, call: Call[Any, Any]) -> Result[Any]:
    if shows_lapse(operation, context.services):
        await context.services.reservations.settle()
    return await operation.handler(context, call)


def shows_lapse(operation: Operation, services: Services) -> bool:
    """Return whether a reservation has lapsed that the response to the operation would show."""
    return operation.shows_orders and services.reservations.are_due()


def encode_result(operation: Operation, target: Target, result: Result[Any]) -> Response:
    """If a list has a single item, its page has the tag of that item, for ``If-Match``.

    Any other page has a tag of its own, which covers the path in the ``Link`` (RFC 8288) too, and
    not the host.
    """
    if result.response is not None:
        return result.response
    status, value = operation.success.status, result.value
    headers: Headers = []
    body = tag = b""
    if operation.success.content is not None:
        headers.append(JSON)
        body = representation = encode_json(value)
        if result.total is not None:
            headers.append(b"x-total-count: %d" % result.total)
            representation = b"%d %b" % (result.total, body)
        if isinstance(value, list) and len(value) == 1 and not result.next:
            representation = body[1:-1]
        if result.next or result.latest:
            cursors = (("next", result.next), ("latest", result.latest))
            paths = [(rel, target.next_page(cursor)) for rel, cursor in cursors if cursor]
            links = [f'<{target.root}{path}>; rel="{rel}"' for rel, path in paths]
            headers.append(f"link: {', '.join(links)}".encode("ascii"))
            representation += "".join([path for _, path in paths]).encode("ascii")
        if status == _CREATED and not operation.is_batch:
            location = result.location or f"{target.root}{target.path}/{value.id}"
            headers.append(f"location: {location}".encode("ascii"))
        if operation.tagged and status in (200, _CREATED):
            tag = entity_tag(representation)
            headers.append(b"etag: " + tag)
    if result.is_replay:
        headers.append(b"idempotent-replayed: true")
    return Response(status, body, headers, tag=tag, waited=result.waited)
