"""An operation of the interface: one row of the table that routes, validates and documents."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from msgspec import Struct

from petstore.api.parameters import Query, Values
from petstore.api.response_cache import ResponseCache
from petstore.clock import Clock
from petstore.databases.contract import Store
from petstore.databases.replicas import Readers
from petstore.databases.secret_files import SecretFile
from petstore.domain.api_keys import ApiKey, Scope
from petstore.domain.webhooks import Networks
from petstore.errors import PetstoreError
from petstore.http.messages import Request, Response
from petstore.rate_limits.contract import RateLimiter
from petstore.rate_limits.minutes import MinuteLimiter
from petstore.store.deprecated_calls import DeprecatedCalls
from petstore.store.feed import Feed
from petstore.store.key_ring import KeyRing
from petstore.store.reservations import Reservations
from petstore.store.responses import Responses
from petstore.store.safe_retries import SafeRetries

BASE = "/v1"

Body = TypeVar("Body")
Method: TypeAlias = Literal["GET", "POST", "PATCH", "DELETE"]


@dataclass(frozen=True)
class Services:
    """The parts that operations work with, and the rules of this store.

    ``look_ups`` limits the look-ups of unknown tokens by address. ``uncharged`` limits the requests
    of a key that cost nothing. ``webhook_secret`` holds the master secret of all webhooks.
    """

    store: Store
    readers: Readers
    limiter: RateLimiter
    look_ups: MinuteLimiter[str]
    uncharged: MinuteLimiter[int]
    clock: Clock
    keys: KeyRing
    response_cache: ResponseCache
    retries: SafeRetries
    feed: Feed
    reservations: Reservations
    deprecated_calls: DeprecatedCalls
    responses: Responses
    reservation_minutes: int
    strict_categories: bool
    webhook_secret: SecretFile
    webhook_networks: Networks


class Call(Struct, Generic[Body, Values], frozen=True):
    """One request of an operation, decoded. ``path_id`` is 0 where the path has no parameter.

    ``root`` is the URL of the service as the client reaches it, and ``client`` the address behind
    trusted proxies. ``idempotency_key`` is ``None`` if the request has none, or the method is not
    POST. A call from the console has the digest of its ``session``, and no token.
    """

    services: Services
    request: Request
    root: str
    client: str
    key: ApiKey
    path_id: int
    query: Query[Values]
    body: Body
    idempotency_key: str | None = None
    session: bytes | None = None

    @property
    def url(self) -> str:
        """The URL of the request, without its query."""
        return f"{self.root}{self.request.path}"


@dataclass(frozen=True)
class Success:
    """The response to a successful request. Without ``content`` it has no body."""

    status: int
    description: str
    content: Any = None
    example: Any = None


@dataclass(frozen=True, eq=False)
class Deprecation:
    """When an operation was deprecated, when it ends, and what replaces it.

    ``use`` says to people what to call instead of it, and ``successor`` is the address of that.
    """

    since: datetime
    sunset: datetime
    documentation: str
    successor: str
    use: str


@dataclass(frozen=True)
class Operation:
    """An operation of the interface. ``path`` is relative to ``BASE``.

    ``handler`` takes a ``Call`` with a ``body`` and the values of a ``query``, each ``None`` where
    the operation has none. ``errors`` are those of the operation itself; the OpenAPI document adds
    those that follow from the other fields. ``tagged``: an ``ETag`` names the version of the
    resource that the operation responds with or deletes. ``shows_orders``: a lapsed reservation
    shows in the response. ``no_store``: the response is about keys, so no cache may keep it.
    ``waits``: the handler may wait long (a long poll), so the key is checked once more after it.
    ``endless``: every page of the list has a next one.
    """

    id: str
    method: Method
    path: str
    tag: str
    summary: str
    description: str
    handler: Callable[[Call[Any, Any]], Awaitable[Response]]
    scope: Scope | None
    success: Success
    errors: Sequence[type[PetstoreError]] = ()
    query: type[Any] | None = None
    body: type[Any] | None = None
    body_example: Any = None
    body_required: bool = True
    tagged: bool = True
    shows_orders: bool = False
    no_store: bool = False
    waits: bool = False
    endless: bool = False
    charged: bool = True
    deprecation: Deprecation | None = None

    @cached_property
    def parameter(self) -> str | None:
        """The name of the only parameter that a path can have, an int64 in plain digits."""
        return self.path.partition("{")[2].partition("}")[0] or None

    @cached_property
    def resource(self) -> str | None:
        """What ``parameter`` identifies, such as ``pet``."""
        return None if self.parameter is None else self.parameter.removesuffix("Id")

    @cached_property
    def is_conditional(self) -> bool:
        """Whether ``If-Match`` and ``If-None-Match`` apply: it reads or changes a resource.

        Adding a resource to a list does not change a version of it.
        """
        return self.tagged if self.method == "GET" else self.parameter is not None


async def carry_out(operation: Operation, call: Call[Any, Any]) -> Response:
    """Carry out an operation for a key that has its scope.

    Raises:
        PetstoreError: what its handler raises.
        Unavailable: the database is unreachable, full or failing.
    """
    services = call.services
    if operation.shows_orders and services.reservations.are_due():
        await services.reservations.settle()
    response = await operation.handler(call)
    if operation.method != "GET":
        await services.readers.record_write(call.key.id)
    return response
