"""What an operation is: one row of the table that routes, validates and documents."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from petstore.api.parameters import Query
from petstore.api.response_cache import ResponseCache
from petstore.clock import Clock
from petstore.databases.contract import Store
from petstore.databases.replicas import Readers
from petstore.domain.api_keys import ApiKey, Scope
from petstore.errors import PetstoreError
from petstore.http.messages import Request, Response
from petstore.rate_limits.contract import RateLimiter
from petstore.rate_limits.minutes import MinuteLimiter
from petstore.store.key_ring import KeyRing
from petstore.store.reservations import Reservations
from petstore.store.safe_retries import SafeRetries

Method: TypeAlias = Literal["GET", "POST", "PATCH", "DELETE"]


@dataclass(frozen=True)
class Services:
    """What operations work with, and the rules of this store.

    ``look_ups`` are the look-ups of tokens of no key that an address may cause, ``uncharged`` the
    requests of operations that charge nothing which a key may make.
    """

    store: Store
    readers: Readers
    limiter: RateLimiter
    look_ups: MinuteLimiter[str]
    uncharged: MinuteLimiter[int]
    clock: Clock
    keys: KeyRing
    answers: ResponseCache
    retries: SafeRetries
    reservations: Reservations
    reservation_minutes: int
    strict_categories: bool


class Call(Struct, frozen=True):
    """One use of an operation, decoded. ``path_id`` is 0 where the path has no parameter.

    ``idempotency_key`` is ``None`` where none was sent, and where the method is not POST.
    """

    services: Services
    request: Request
    key: ApiKey
    path_id: int
    query: Query
    body: Any
    idempotency_key: str | None = None


Handler: TypeAlias = Callable[[Call], Awaitable[Response]]


@dataclass(frozen=True)
class PathParameter:
    """The one parameter a path may have: an int64 in plain digits."""

    name: str
    description: str


@dataclass(frozen=True)
class ResponseHeader:
    """A header that a response carries, for the document."""

    name: str
    description: str
    example: str | int


@dataclass(frozen=True)
class Success:
    """The response to a request that went well; without ``content`` it has no body."""

    status: int
    description: str
    content: Any = None
    example: Any = None
    headers: Sequence[ResponseHeader] = ()
    links: dict[str, Any] | None = None


@dataclass(frozen=True, eq=False)
class Deprecation:
    """Since when an operation is deprecated, when it ends, and what replaces it."""

    since: datetime
    sunset: datetime
    documentation: str
    successor: str


@dataclass(frozen=True)
class Operation:
    """An operation of the interface; ``path`` is relative to the base address.

    ``tagged``: what it answers or deletes is in a version that an ``ETag`` names.
    """

    id: str
    method: Method
    path: str
    tag: str
    summary: str
    description: str
    handler: Handler
    scope: Scope | None
    success: Success
    errors: Sequence[type[PetstoreError]] = ()
    parameter: PathParameter | None = None
    query: type[Any] | None = None
    body: type[Any] | None = None
    body_example: Any = None
    body_required: bool = True
    tagged: bool = False
    deprecation: Deprecation | None = None
    charged: bool = True

    @cached_property
    def no_store(self) -> bool:
        """Whether no cache may keep its answers, because they tell about keys."""
        return self.tag in ("Keys", "Usage")

    @cached_property
    def is_conditional(self) -> bool:
        """Whether it looks at ``If-Match`` and ``If-None-Match``: it reads or changes a resource.

        To add one to a list is no change to a version of it.
        """
        return self.tagged if self.method == "GET" else self.parameter is not None

    @cached_property
    def shows_orders(self) -> bool:
        """Whether what lapses shows in its answer."""
        return self.tag in ("Pets", "Store")
