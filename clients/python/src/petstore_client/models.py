# Generated from the operations of the service by clients/python/generate.py: run `make client`.
"""What the service returns, as typed structs. Unknown members are ignored."""

from collections.abc import Mapping
from datetime import date, datetime
from typing import Any, Literal, TypeAlias

from msgspec import field

from petstore_client._model import Model, Versioned, without

PlanName: TypeAlias = Literal["business", "enterprise", "free", "pro"]
DeliveryState: TypeAlias = Literal["failed", "pending", "succeeded"]
WebhookOwnerType: TypeAlias = Literal["key", "person"]
PersonRole: TypeAlias = Literal["administrator", "clerk", "manager", "viewer"]
PersonState: TypeAlias = Literal["active", "disabled", "invited"]
KeyEnvironment: TypeAlias = Literal["production", "staging"]
KeyState: TypeAlias = Literal["active", "expired", "revoked"]
ActorType: TypeAlias = Literal["key", "operator", "person", "service"]
SalesBy: TypeAlias = Literal["category", "day"]
OrderStatus: TypeAlias = Literal["approved", "cancelled", "delivered", "placed", "returned"]
ImportWordMeans: TypeAlias = Literal["available", "none", "pending", "sold"]
KeptPetReason: TypeAlias = Literal["changed", "deleted", "ordered"]
ImportState: TypeAlias = Literal["finished", "open", "running", "undone"]
UnknownCategories: TypeAlias = Literal["create", "refuse"]
PetStatus: TypeAlias = Literal["available", "pending", "sold"]
EventType: TypeAlias = Literal[
    "category.created",
    "category.deleted",
    "category.updated",
    "deprecation.used",
    "key.banned",
    "key.created",
    "key.expiring",
    "key.limit_near",
    "key.revoked",
    "key.rotated",
    "key.unbanned",
    "key.updated",
    "order.approved",
    "order.cancelled",
    "order.delivered",
    "order.lapsed",
    "order.placed",
    "order.returned",
    "order.updated",
    "person.created",
    "person.invited",
    "person.updated",
    "pet.created",
    "pet.deleted",
    "pet.updated",
    "webhook.disabled",
    "webhook.test",
]
Scope: TypeAlias = Literal[
    "keys:admin", "orders:read", "orders:write", "pets:read", "pets:write", "webhooks:write"
]


class Pet(Versioned, frozen=True, kw_only=True):
    """A pet of the store. ``status`` is ``None`` when it was never given."""

    id: int
    name: str  # The animal's name. 1 to 255 characters, not only white space, without U+0000.
    category_id: int  # Identifier of the category the animal belongs to.
    status: PetStatus | str | None = None  # Availability status.


class CategoryCounts(Model, frozen=True, kw_only=True):
    """The number of pets of each status in a category."""

    available: int = 0  # Pets that can be ordered. By default ``0``.
    pending: int = 0  # Pets that are reserved. By default ``0``.
    sold: int = 0  # Pets that are sold. By default ``0``.
    category_id: int  # Identifier of the category the animal belongs to.


class Category(Versioned, frozen=True, kw_only=True):
    """A category. ``description`` may be ``None``."""

    id: int
    name: str  # The name, unique ignoring case.
    description: str | None = None  # A description of the category.


class KeptPet(Model, frozen=True, kw_only=True):
    """A pet that an undo did not delete."""

    id: int
    name: str  # Its name when it was added.
    reason: KeptPetReason | str  # What happened to it: ``changed``, ``ordered`` or ``deleted``.


class ImportColumn(Model, frozen=True, kw_only=True):
    """A column of a file."""

    name: str  # Its name, empty if there is no header.
    values: list[str]  # Its first three values that are not empty.


class ImportMapping(Model, frozen=True, kw_only=True):
    """Which column has which field. A field without a column is ``None``.

    A column is ``id`` only if it has exactly that name, as in an export.
    """

    name: int | None = None  # The place in ``columns``, from 0, of the name of a pet.
    # The place in ``columns``, from 0, of its category, a name or a number.
    category_id: int | None = None
    status: int | None = None  # The place in ``columns``, from 0, of its status.
    id: int | None = None


class ImportWord(Model, frozen=True, kw_only=True):
    """A category of a file that is not in the store, or a word of its status column.

    A category may have the id of the one that it means.
    """

    text: str  # The word, as the file has it first.
    rows: int  # How many rows have it.
    # The status that it means; absent if that is not decided.
    means: ImportWordMeans | str | None = None
    category_id: int | None = None  # Identifier of the category the animal belongs to.


class Order(Versioned, frozen=True, kw_only=True):
    """An order. A placed one has ``reserved_until``, if its reservation can lapse."""

    id: int
    pet_id: int  # Identifier of the pet.
    quantity: int  # Always 1, because every pet is unique.
    status: OrderStatus | str  # The status of the order.
    complete: bool  # Whether the order was delivered.
    placed_at: datetime  # When the order was placed.
    ship_date: datetime | None = None  # When to ship it (RFC 3339).
    # When the reservation lapses, unless the order is approved.
    reserved_until: datetime | None = None
    buyer: str | None = None  # Who buys the pet. 1 to 200 characters. No event has it.
    # What the staff should know. 1 to 1000 characters, line breaks included, without U+0000. No
    # event has it.
    note: str | None = None
    amount: int | None = None  # The price, in the smallest unit of the currency, such as cents.
    # The currency of the amount (ISO 4217): the store's when it was first set.
    currency: str | None = None
    approved_at: datetime | None = None  # When it was approved.
    delivered_at: datetime | None = None  # When it was delivered: the time of the sale.
    cancelled_at: datetime | None = None  # When it was cancelled, or its reservation lapsed.
    cancel_reason: str | None = None  # Why it was cancelled. 1 to 200 characters. No event has it.
    returned_at: datetime | None = None  # When the pet was returned.
    return_reason: str | None = None  # Why it was returned. 1 to 200 characters. No event has it.
    # What the buyer got back for a returned pet, up to ``amount``. By default all of it.
    refund: int | None = None


class SalesRow(Model, frozen=True, kw_only=True):
    """The sales and returns of a day or of a category, in one currency."""

    orders: int  # How many orders were delivered.
    amount: int  # The sum of their amounts; an order without an amount adds nothing.
    returns: int  # How many orders were returned.
    refunded: int  # The sum of their refunds. ``amount`` minus it is what the shop took.
    currency: str  # The currency of the amount (ISO 4217): the store's when it was first set.
    day: date | None = None  # The day. Only by day.
    # The category of the pets when they were sold. Absent by day, and for all categories after the
    # first 1,000.
    category_id: int | None = None


class Actor(Model, frozen=True, kw_only=True):
    """Who caused an event. The operator and the service have no id."""

    # ``key``, ``person``, ``operator`` for a command beside the database, or ``service`` for what
    # the service did automatically.
    type: ActorType | str
    id: int | None = None


class Key(Versioned, frozen=True, kw_only=True):
    """An API key, without its tokens. A ``None`` limit is unlimited; a ``None`` time is never."""

    id: int
    name: str  # What the key is for.
    # One of ``free``, ``pro``, ``business``, ``enterprise``. More will follow: ignore plans that
    # you do not know.
    plan: str
    per_minute: int | None = None  # Requests a minute; ``None`` is unlimited.
    per_day: int | None = None  # Requests a day; ``None`` is unlimited.
    scopes: list[str]  # What it may do.
    allowed_networks: list[str]  # Its IP allowlist, in CIDR notation; empty means anywhere.
    environment: KeyEnvironment | str  # The environment of the services that take it.
    token_ends: str  # The last four characters of its newest token.
    state: KeyState | str  # Only an active key can be used.
    banned_until: datetime | None = None  # When its ban ends; ``None`` if it is not banned.
    created_at: datetime  # When it was created.
    expires_at: datetime | None = None  # When it ends; ``None`` is never.
    last_used_at: datetime | None = None  # When it was last used, to about a minute.


class Person(Versioned, frozen=True, kw_only=True):
    """A person who works in the console."""

    id: int
    name: str  # The name of the person, as others see it.
    # What the person signs in with, unique ignoring case. An e-mail address is a good one.
    login: str
    role: PersonRole | str  # The role, from which the scopes of the person follow.
    # Only an active person can sign in. One who is ``invited`` has not set a password yet.
    state: PersonState | str
    created_at: datetime  # When the person was added.
    # When the person last used the console, to about a minute.
    last_seen_at: datetime | None = None


class Invitation(Model, frozen=True, kw_only=True):
    """A link that lets a person set a password, once."""

    url: str  # The link to give to the person. It works once.
    expires_at: datetime  # When the link ends if it is not used.


class UsageWindow(Model, frozen=True, kw_only=True):
    """One window: its limit, what remains of it, and the Unix timestamp at which it resets."""

    limit: int  # Requests of the whole window; 2147483647 is unlimited.
    remaining: int  # Requests that remain.
    reset: int  # Unix timestamp at which the window resets.


class UsageDay(Model, frozen=True, kw_only=True):
    """The requests of one UTC day."""

    date: date  # The day (UTC).
    requests: int  # The requests on it.


class DeprecatedUse(Model, frozen=True, kw_only=True):
    """A deprecated operation that a key still calls."""

    operation: str  # The id of the operation, such as ``getPet``.
    method: str  # Its method.
    path: str  # The template of its path.
    since: datetime  # When it was deprecated.
    sunset: datetime  # When it ends.
    use: str  # What to call instead.
    documentation: str  # The address of the explanation.
    calls: int  # Calls in the last 30 days (UTC).
    last_called_at: datetime  # When it was last called.
    last_user_agent: str  # The ``User-Agent`` of the last call, up to 100 characters.
    last_request_id: str  # The id of the last request.


class RefusedRequests(Model, frozen=True, kw_only=True):
    """The requests to one operation that a limit refused within one hour."""

    hour: datetime  # When the hour began.
    # The ``operation_id``; ``None`` if the request was for no operation.
    operation: str | None = None
    requests: int  # The requests that got 429.


class WebhookOwner(Model, frozen=True, kw_only=True):
    """The key or the person that a webhook belongs to."""

    type: WebhookOwnerType | str  # ``key`` or ``person``.
    id: int


class WebhookTest(Model, frozen=True, kw_only=True):
    """The event that tests a webhook."""

    event_id: str  # The ``id`` of the event.


class Delivery(Model, frozen=True, kw_only=True):
    """An event on its way to a webhook, with the outcome of the last attempt."""

    id: int
    event_id: str  # The ``id`` of the event.
    type: str  # The type of the event.
    resource: str  # The resource of the event, such as ``pet/7``.
    state: DeliveryState | str  # ``pending`` until the event is accepted or no attempt will follow.
    attempts: int  # The number of attempts.
    created_at: datetime  # When it was created.
    last_attempt_at: datetime | None = None  # When it was last attempted; ``None`` if never.
    # The earliest time of the next attempt; ``None`` unless pending.
    next_attempt_at: datetime | None = None
    response_status: int | None = None  # The HTTP status of the last response.
    response_body: str | None = None  # The beginning of the body of the last response, up to 1 KiB.
    error: str | None = None  # Why the last attempt failed.


class KeyWithToken(Key, frozen=True, kw_only=True):
    """A key and its token, which is shown only once."""

    token: str  # The token, which is shown only this once.

    def __repr__(self) -> str:
        return without(self, "token")


class KeyDeprecatedUse(DeprecatedUse, frozen=True, kw_only=True):
    """A deprecated operation that a key still calls, with the key."""

    key_id: int  # The ``id`` of the key.
    key_name: str  # What the key is for.


class Inventory(Model, frozen=True, kw_only=True):
    """The number of pets of each status."""

    available: int = 0  # Pets that can be ordered. By default ``0``.
    pending: int = 0  # Pets that are reserved. By default ``0``.
    sold: int = 0  # Pets that are sold. By default ``0``.
    # The same by category, by ascending id: the first 1,000 categories that have pets with a
    # status. Only with ``by=category``.
    categories: list[CategoryCounts] | None = None


class ImportPreview(Model, frozen=True, kw_only=True):
    """What a run would do, when the file was sent or its settings were changed last."""

    added: int = 0  # Pets that would be added. By default ``0``.
    refused: int = 0  # Rows that would be refused. By default ``0``.
    # Pets that would be added although a pet in the store has the same name. By default ``0``.
    already_here: int = 0
    without_category: int = 0  # Rows without a category of their own. By default ``0``.
    # Categories that are not in the store: the first 200.
    categories: list[ImportWord] = field(default_factory=list[ImportWord])
    # Other words than a status, undecided ones first.
    statuses: list[ImportWord] = field(default_factory=list[ImportWord])


class Sales(Model, frozen=True, kw_only=True):
    """The sales between two days, both included."""

    from_: date  # The first day.
    to: date  # The last day.
    time_zone: str  # The time zone of the days.
    by: SalesBy | str  # Group by day or category.
    rows: list[SalesRow]  # The rows, by day or by category.


class Event(Model, frozen=True, kw_only=True):
    """Something that happened. ``previous`` is ``None`` where something began or ended."""

    id: str
    # One of ``pet.created``, ``pet.updated``, ``pet.deleted``, ``order.placed``, ``order.updated``,
    # ``order.approved``, ``order.delivered``, ``order.returned``, ``order.cancelled``,
    # ``order.lapsed``, ``category.created``, ``category.updated``, ``category.deleted``,
    # ``key.created``, ``key.updated``, ``key.rotated``, ``key.revoked``, ``key.unbanned``,
    # ``person.created``, ``person.updated``, ``person.invited``, ``key.limit_near``,
    # ``key.banned``, ``key.expiring``, ``deprecation.used``, ``webhook.disabled``,
    # ``webhook.test``. More will follow: ignore types that you do not know.
    type: str
    timestamp: datetime  # When it happened (RFC 3339, to the millisecond).
    resource: str  # The resource of the event, such as ``pet/7``.
    sequence: int  # The position among all events of the store, without gaps.
    # The resource after the change, or before it was deleted, or what concerns a key. The ``type``
    # says which.
    data: Any
    # The old values of the fields that changed; ``None`` for an absent field.
    previous: Mapping[str, Any] | None = None
    actor: Actor  # Who caused it.
    request_id: str | None = None  # The ``X-Request-Id`` of the request that caused it, if one did.


class Usage(Model, frozen=True, kw_only=True):
    """The usage of a key. ``banned_until`` is ``None`` while the key is not banned."""

    # One of ``free``, ``pro``, ``business``, ``enterprise``. More will follow: ignore plans that
    # you do not know.
    plan: str
    minute: UsageWindow  # The window of the minute.
    day: UsageWindow  # The window of the day.
    banned_until: datetime | None = None  # When the ban ends; ``None`` without one.
    days: list[UsageDay]  # The requests of each of the last 30 days that had any, oldest first.
    # The deprecated operations that the key called in the last 30 days.
    deprecated: list[DeprecatedUse]
    # The requests that a limit refused in the last 7 days, by hour and operation, the newest hour
    # first.
    refused: list[RefusedRequests] = field(default_factory=list[RefusedRequests])
    # What the key may do. More scopes will follow: ignore scopes that you do not know.
    scopes: list[str] = field(default_factory=list[str])


class Webhook(Versioned, frozen=True, kw_only=True):
    """A webhook, without its secret. ``description`` and times may be ``None``."""

    id: int
    url: str  # Where its events are sent.
    types: list[str]  # The types of events to send; empty means all that its key can read.
    description: str | None = None  # A description of the webhook.
    enabled: bool  # Whether the webhook is enabled.
    # Why the service disabled the webhook; ``None`` if it did not.
    disabled_reason: str | None = None
    created_at: datetime  # When it was created.
    last_success_at: datetime | None = None  # When the URL last accepted an event.
    # When its deliveries began to fail; ``None`` if one of the last three attempts succeeded.
    failing_since: datetime | None = None
    owner: WebhookOwner  # The key or the person that it belongs to.


class PersonWithInvitation(Person, frozen=True, kw_only=True):
    """A person and a link for them, which is shown only once."""

    invitation: Invitation  # The link with which the person sets a password.

    def __repr__(self) -> str:
        return without(self, "invitation")


class WebhookWithSecret(Webhook, frozen=True, kw_only=True):
    """A webhook and its secret, which is shown only once."""

    secret: str  # The secret that signs the deliveries: ``whsec_`` and 32 bytes in base64.

    def __repr__(self) -> str:
        return without(self, "secret")


class Import(Versioned, frozen=True, kw_only=True):
    """A file of pets on its way into the store."""

    id: int
    file_name: str  # The name of the file, perhaps empty.
    encoding: str  # What the file was read as, such as ``UTF-8``.
    # ``open`` until the first run, ``running`` while rows are waiting, then ``finished``;
    # ``undone`` from the first call of ``imports.undo`` on.
    state: ImportState | str
    rows: int  # How many rows the file has.
    # Rows that are still to be added; of an undone import, pets still to be looked at. Call
    # ``imports.run`` or ``imports.undo`` until it is 0.
    waiting: int
    added: int  # Pets that were added.
    refused: int  # Rows that were refused.
    deleted: int  # Pets that an undo has deleted.
    kept: int  # Pets that an undo has left: changed or ordered since.
    kept_pets: list[KeptPet]  # The first 200 of them.
    columns: list[ImportColumn]  # The columns of the file.
    has_header: bool  # Whether a row has the names of the columns.
    mapping: ImportMapping  # Which column has which field.
    # What happens to rows whose category the store does not have: ``refuse`` them, or ``create``
    # the categories.
    unknown_categories: UnknownCategories | str
    # What words of the status column mean: ``available``, ``pending``, ``sold`` or ``none``.
    values: dict[str, ImportWordMeans]
    # What categories mean that are not in the store: the ids of categories.
    categories: dict[str, int]
    notes: list[str]  # What was noticed about the file, in words for a person.
    created_at: datetime  # When the file was sent.
    header_line: int | None = None  # The line with the names of the columns, if there is one.
    default_status: PetStatus | str | None = None  # Availability status.
    default_category_id: int | None = None  # Identifier of the category the animal belongs to.
    preview: ImportPreview | None = None  # What a run would do. Only of an open import.


class NewPet(Model, frozen=True, kw_only=True, omit_defaults=True):
    """A pet to add."""

    name: str  # The animal's name. 1 to 255 characters, not only white space, without U+0000.
    category_id: int  # Identifier of the category the animal belongs to.
    status: PetStatus | None = None  # Availability status.
