"""What the service returns, as typed structs. Members that they do not know are ignored."""

from collections.abc import Mapping
from datetime import date, datetime
from typing import Any, Literal, TypeAlias

from msgspec import Struct

# An editor proposes the literals; a later service may add others.
PetStatus: TypeAlias = Literal["available", "pending", "sold"] | str  # noqa: PYI051
OrderStatus: TypeAlias = Literal["placed", "approved", "delivered", "cancelled"] | str  # noqa: PYI051
PlanName: TypeAlias = Literal["free", "pro", "business", "enterprise"] | str  # noqa: PYI051
DeliveryState: TypeAlias = Literal["pending", "succeeded", "failed"] | str  # noqa: PYI051


class Model(Struct, frozen=True, rename="camel", kw_only=True):
    """Part of a response. The members of the JSON are in camel case."""


class Versioned(Model, frozen=True, dict=True):
    """A resource that can be changed if it still has the version that you know."""

    @property
    def etag(self) -> str:
        """The version that was returned, for ``if_match``.

        Raises:
            AttributeError: the resource came in a list, which has no versions; get it alone.
        """
        try:
            etag: str = self.__dict__["etag"]
        except KeyError:
            msg = f"this {type(self).__name__} came in a list, without its etag; get it alone"
            raise AttributeError(msg) from None
        return etag


class Pet(Versioned, frozen=True, kw_only=True):
    """An animal. ``status`` is ``None`` if it was never given."""

    id: int
    name: str
    category_id: int
    status: PetStatus | None = None


class Category(Versioned, frozen=True, kw_only=True):
    """A category of animals."""

    id: int
    name: str
    description: str | None = None


class Order(Versioned, frozen=True, kw_only=True):
    """An order. A placed one has ``reserved_until``, if its reservation can lapse."""

    id: int
    pet_id: int
    quantity: int
    status: OrderStatus
    complete: bool
    placed_at: datetime
    ship_date: datetime | None = None
    reserved_until: datetime | None = None


class Inventory(Model, frozen=True, kw_only=True):
    """The number of animals of each status."""

    available: int = 0
    pending: int = 0
    sold: int = 0


class Key(Versioned, frozen=True, kw_only=True):
    """An API key, without its token. No limit is unlimited; no time is never."""

    id: int
    name: str
    plan: PlanName
    per_minute: int | None
    per_day: int | None
    scopes: list[str]
    allowed_networks: list[str] = []
    rehearse_sunset: bool = False
    environment: str
    state: str
    banned_until: datetime | None = None
    created_at: datetime
    expires_at: datetime | None = None
    last_used_at: datetime | None = None


class KeyWithToken(Key, frozen=True, kw_only=True):
    """A key and its token, which is returned only once."""

    token: str

    def __repr__(self) -> str:
        """Leave the token out."""
        return f"KeyWithToken(id={self.id!r}, name={self.name!r}, plan={self.plan!r})"


class Change(Model, frozen=True, kw_only=True):
    """The value of a field before and after a change."""

    before: Any = None
    after: Any = None


class KeyEvent(Model, frozen=True, kw_only=True):
    """A change to a key: who did what, and when."""

    id: int
    at: datetime
    by: str
    action: str
    changes: dict[str, Change]


class UsageWindow(Model, frozen=True, kw_only=True):
    """A window of a limit. ``reset`` is a Unix timestamp in seconds."""

    limit: int
    remaining: int
    reset: int


class UsageDay(Model, frozen=True, kw_only=True):
    """The requests of one UTC day."""

    date: date
    requests: int


class DeprecatedUse(Model, frozen=True, kw_only=True):
    """A deprecated operation that a key still calls, and the last call."""

    operation: str
    method: str
    path: str
    since: datetime
    sunset: datetime
    use: str
    documentation: str
    calls: int
    last_called_at: datetime
    last_user_agent: str
    last_request_id: str


class KeyDeprecatedUse(DeprecatedUse, frozen=True, kw_only=True):
    """A deprecated operation that a key still calls, with the key."""

    key_id: int
    key_name: str


class Usage(Model, frozen=True, kw_only=True):
    """What a key has used. ``banned_until`` is ``None`` while it is not banned."""

    plan: PlanName
    minute: UsageWindow
    day: UsageWindow
    banned_until: datetime | None
    days: list[UsageDay]
    deprecated: list[DeprecatedUse] = []


class Event(Model, frozen=True, kw_only=True):
    """Something that happened. Ignore types that you do not know.

    ``data`` is the resource after the change, or before it was deleted, with the JSON's member
    names. ``previous`` has the members that changed, as they were.
    """

    id: str
    type: str
    timestamp: datetime
    resource: str
    sequence: int
    data: Mapping[str, Any]
    previous: Mapping[str, Any] | None = None


class Webhook(Versioned, frozen=True, kw_only=True):
    """Where a key wants its events sent."""

    id: int
    url: str
    types: list[str]
    description: str | None = None
    enabled: bool
    disabled_reason: str | None = None
    created_at: datetime
    last_success_at: datetime | None = None


class WebhookWithSecret(Webhook, frozen=True, kw_only=True):
    """A webhook and its secret, which is returned only once."""

    secret: str

    def __repr__(self) -> str:
        """Leave the secret out."""
        return f"WebhookWithSecret(id={self.id!r}, url={self.url!r})"


class WebhookTest(Model, frozen=True, kw_only=True):
    """The event that tests a webhook."""

    event_id: str


class Delivery(Model, frozen=True, kw_only=True):
    """An event on its way to a webhook, with the outcome of the last attempt."""

    id: int
    event_id: str
    type: str
    resource: str
    state: DeliveryState
    attempts: int
    created_at: datetime
    last_attempt_at: datetime | None = None
    next_attempt_at: datetime | None = None
    response_status: int | None = None
    response_body: str | None = None
    error: str | None = None


class Replay(Model, frozen=True, kw_only=True):
    """How many deliveries a replay has begun."""

    deliveries: int
