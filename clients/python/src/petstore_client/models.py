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


class Pet(Versioned, frozen=True, kw_only=True):
    """A pet of the store. ``status`` is ``None`` when it was never given.

    Attributes:
        id: Unique identifier, assigned by the service on creation.
        name: The animal's name. 1 to 255 characters, not only white space, without U+0000.
        category_id: Identifier of the category the animal belongs to.
        status: Availability status.
    """

    id: int
    name: str
    category_id: int
    status: PetStatus | str | None = None


class CategoryCounts(Model, frozen=True, kw_only=True):
    """The number of pets of each status in a category.

    Attributes:
        available: Pets that can be ordered. By default ``0``.
        pending: Pets that are reserved. By default ``0``.
        sold: Pets that are sold. By default ``0``.
        category_id: The category. Absent in the last row if there are more than 1,000
            categories: it counts the pets of all the others.
    """

    available: int = 0
    pending: int = 0
    sold: int = 0
    category_id: int | None = None


class Category(Versioned, frozen=True, kw_only=True):
    """A category. ``description`` may be ``None``.

    Attributes:
        id: Unique identifier, assigned by the service on creation.
        name: The name, unique ignoring case.
        description: A description of the category.
    """

    id: int
    name: str
    description: str | None = None


class KeptPet(Model, frozen=True, kw_only=True):
    """A pet that an undo did not delete.

    Attributes:
        id: Unique identifier, assigned by the service on creation.
        name: Its name when it was added.
        reason: What happened to it: ``changed``, ``ordered`` or ``deleted``.
    """

    id: int
    name: str
    reason: KeptPetReason | str


class ImportColumn(Model, frozen=True, kw_only=True):
    """A column of a file.

    Attributes:
        name: Its name, empty if there is no header.
        values: Its first three values that are not empty.
    """

    name: str
    values: list[str]


class ImportMapping(Model, frozen=True, kw_only=True):
    """Which column has which field. A field without a column is ``None``.

    A column is ``id`` only if it has exactly that name, as in an export.

    Attributes:
        name: The place in ``columns``, from 0, of the name of a pet.
        category_id: The place in ``columns``, from 0, of its category, a name or a number.
        status: The place in ``columns``, from 0, of its status.
        id: The place in ``columns``, from 0, of its id in this store, in an edited export.
    """

    name: int | None = None
    category_id: int | None = None
    status: int | None = None
    id: int | None = None


class ImportWord(Model, frozen=True, kw_only=True):
    """A category of a file that is not in the store, or a word of its status column.

    A category may have the id of the one that it means.

    Attributes:
        text: The word, as the file has it first.
        rows: How many rows have it.
        means: The status that it means; absent if that is not decided.
        category_id: Identifier of the category the animal belongs to.
    """

    text: str
    rows: int
    means: ImportWordMeans | str | None = None
    category_id: int | None = None


class Order(Versioned, frozen=True, kw_only=True):
    """An order. A placed one has ``reserved_until``, if its reservation can lapse.

    Attributes:
        id: Unique identifier, assigned by the service on creation.
        pet_id: Identifier of the pet.
        quantity: Always 1, because every pet is unique.
        status: The status of the order.
        complete: Whether the order was delivered.
        placed_at: When the order was placed.
        ship_date: When to ship it (RFC 3339).
        reserved_until: When the reservation lapses, unless the order is approved.
        buyer: Who buys the pet. 1 to 200 characters. No event has it.
        note: What the staff should know. 1 to 1000 characters, line breaks included,
            without U+0000. No event has it.
        amount: The price, in the smallest unit of the currency, such as cents.
        currency: The currency of the amount (ISO 4217): that of the store when it was set.
        approved_at: When it was approved.
        delivered_at: When it was delivered: the time of the sale.
        cancelled_at: When it was cancelled, or its reservation lapsed.
        cancel_reason: Why it was cancelled. 1 to 200 characters. No event has it.
        returned_at: When the pet was returned.
        return_reason: Why it was returned. 1 to 200 characters. No event has it.
        refund: What the buyer got back for a returned pet, up to ``amount``. By default all
            of it.
    """

    id: int
    pet_id: int
    quantity: int
    status: OrderStatus | str
    complete: bool
    placed_at: datetime
    ship_date: datetime | None = None
    reserved_until: datetime | None = None
    buyer: str | None = None
    note: str | None = None
    amount: int | None = None
    currency: str | None = None
    approved_at: datetime | None = None
    delivered_at: datetime | None = None
    cancelled_at: datetime | None = None
    cancel_reason: str | None = None
    returned_at: datetime | None = None
    return_reason: str | None = None
    refund: int | None = None


class SalesRow(Model, frozen=True, kw_only=True):
    """The sales and returns of a day or of a category, in one currency.

    Attributes:
        orders: How many orders were delivered.
        amount: The sum of their amounts; an order without an amount adds nothing.
        returns: How many orders were returned.
        refunded: The sum of their refunds. ``amount`` minus it is what the shop took.
        currency: The currency of the amount (ISO 4217): that of the store when it was set.
        day: The day. Only by day.
        category_id: The category of the pets when they were sold. Absent by day, for sales
            whose category is not known, and for those of all categories after the first
            1,000.
    """

    orders: int
    amount: int
    returns: int
    refunded: int
    currency: str
    day: date | None = None
    category_id: int | None = None


class Actor(Model, frozen=True, kw_only=True):
    """Who caused an event. The operator and the service have no id.

    Attributes:
        type: ``key``, ``person``, ``operator`` for a command beside the database, or
            ``service`` for what the service did by itself.
        id: The id of the key or person.
    """

    type: ActorType | str
    id: int | None = None


class Key(Versioned, frozen=True, kw_only=True):
    """An API key, without its tokens. A ``None`` limit is unlimited; a ``None`` time is never.

    Attributes:
        id: Unique identifier, assigned by the service on creation.
        name: What the key is for.
        plan: One of ``free``, ``pro``, ``business``, ``enterprise``. More will follow:
            ignore plans that you do not know.
        per_minute: Requests a minute; ``None`` is unlimited.
        per_day: Requests a day; ``None`` is unlimited.
        scopes: What it may do.
        allowed_networks: The networks it may be used from, in CIDR notation; none is
            anywhere.
        environment: The environment of the services that take it.
        token_ends: The last four characters of its newest token.
        state: Only an active key can be used.
        banned_until: When its ban ends; ``None`` if it is not banned.
        created_at: When it was created.
        expires_at: When it ends; ``None`` is never.
        last_used_at: When it was last used, to about a minute.
    """

    id: int
    name: str
    plan: str
    per_minute: int | None = None
    per_day: int | None = None
    scopes: list[str]
    allowed_networks: list[str]
    environment: KeyEnvironment | str
    token_ends: str
    state: KeyState | str
    banned_until: datetime | None = None
    created_at: datetime
    expires_at: datetime | None = None
    last_used_at: datetime | None = None


class Person(Versioned, frozen=True, kw_only=True):
    """A person who works in the console.

    Attributes:
        id: Unique identifier, assigned by the service on creation.
        name: The name of the person, as others see it.
        login: What the person signs in with, unique ignoring case. An e-mail address is a
            good one.
        role: The role, from which the scopes of the person follow.
        state: Only an active person can sign in. One who is ``invited`` has not set a
            password yet.
        created_at: When the person was added.
        last_seen_at: When the person last used the console, to about a minute.
    """

    id: int
    name: str
    login: str
    role: PersonRole | str
    state: PersonState | str
    created_at: datetime
    last_seen_at: datetime | None = None


class Invitation(Model, frozen=True, kw_only=True):
    """A link that lets a person set a password, once.

    Attributes:
        url: The link to give to the person. It works once.
        expires_at: When the link ends if nobody uses it.
    """

    url: str
    expires_at: datetime


class PersonDevice(Model, frozen=True, kw_only=True):
    """A browser in which a person is signed in.

    Attributes:
        id: Unique identifier, assigned by the service on creation.
        name: What the browser says it is, or empty: ``Firefox on Windows``.
        signed_in_at: When the person signed in there.
        last_used_at: When it was last used, to about a minute.
        stays: Whether the person stays signed in until 30 days after the last use.
    """

    id: int
    name: str
    signed_in_at: datetime
    last_used_at: datetime
    stays: bool


class UsageWindow(Model, frozen=True, kw_only=True):
    """One window: its limit, what remains of it, and the Unix timestamp at which it resets.

    Attributes:
        limit: Requests of the whole window; 2147483647 is unlimited.
        remaining: Requests that remain.
        reset: Unix timestamp at which the window resets.
    """

    limit: int
    remaining: int
    reset: int


class UsageDay(Model, frozen=True, kw_only=True):
    """The requests of one UTC day.

    Attributes:
        date: The day (UTC).
        requests: The requests on it.
    """

    date: date
    requests: int


class DeprecatedUse(Model, frozen=True, kw_only=True):
    """A deprecated operation that a key still calls: its calls in the last 30 days, and the last.

    The user agent and the request id are those of the last call.

    Attributes:
        operation: The id of the operation, such as ``getPet``.
        method: Its method.
        path: The template of its path.
        since: When it was deprecated.
        sunset: When it ends.
        use: What to call instead.
        documentation: The address of the explanation.
        calls: Calls in the last 30 days (UTC).
        last_called_at: When it was last called.
        last_user_agent: The ``User-Agent`` of the last call, up to 100 characters.
        last_request_id: The id of the last request.
    """

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


class RefusedRequests(Model, frozen=True, kw_only=True):
    """The requests to one operation that a limit refused within one hour.

    Attributes:
        hour: When the hour began.
        operation: The ``operation_id``; ``None`` if the request was for no operation.
        requests: The requests that got 429.
    """

    hour: datetime
    operation: str | None = None
    requests: int


class WebhookOwner(Model, frozen=True, kw_only=True):
    """The key or the person that a webhook belongs to.

    Attributes:
        type: ``key`` or ``person``.
        id: The id of the key or person.
    """

    type: WebhookOwnerType | str
    id: int


class WebhookTest(Model, frozen=True, kw_only=True):
    """The event that tests a webhook.

    Attributes:
        event_id: The ``id`` of the event.
    """

    event_id: str


class Delivery(Model, frozen=True, kw_only=True):
    """An event on its way to a webhook, with the outcome of the last attempt.

    Attributes:
        id: Unique identifier, assigned by the service on creation.
        event_id: The ``id`` of the event.
        type: The type of the event.
        resource: The resource of the event, such as ``pet/7``.
        state: ``pending`` until the event is accepted or no attempt will follow.
        attempts: The number of attempts.
        created_at: When it was created.
        last_attempt_at: When it was last attempted; ``None`` if never.
        next_attempt_at: The earliest time of the next attempt; ``None`` unless pending.
        response_status: The HTTP status of the last response.
        response_body: The beginning of the body of the last response, up to 1 KiB.
        error: Why the last attempt failed.
    """

    id: int
    event_id: str
    type: str
    resource: str
    state: DeliveryState | str
    attempts: int
    created_at: datetime
    last_attempt_at: datetime | None = None
    next_attempt_at: datetime | None = None
    response_status: int | None = None
    response_body: str | None = None
    error: str | None = None


class KeyWithToken(Key, frozen=True, kw_only=True):
    """A key and its token, which is shown only once.

    Attributes:
        token: The token, which is shown only this once.
    """

    token: str

    def __repr__(self) -> str:
        return without(self, "token")


class KeyDeprecatedUse(DeprecatedUse, frozen=True, kw_only=True):
    """A deprecated operation that a key still calls, with the key.

    Attributes:
        key_id: The ``id`` of the key.
        key_name: What the key is for.
    """

    key_id: int
    key_name: str


class Inventory(Model, frozen=True, kw_only=True):
    """The number of pets of each status.

    Attributes:
        available: Pets that can be ordered. By default ``0``.
        pending: Pets that are reserved. By default ``0``.
        sold: Pets that are sold. By default ``0``.
        categories: The same by category, by ascending id: categories that have pets with a
            status. Only with ``by=category``.
    """

    available: int = 0
    pending: int = 0
    sold: int = 0
    categories: list[CategoryCounts] | None = None


class ImportPreview(Model, frozen=True, kw_only=True):
    """What a run would do, when the file was sent or its settings were changed last.

    Attributes:
        added: Pets that would be added. By default ``0``.
        refused: Rows that would be refused. By default ``0``.
        already_here: Pets that would be added although a pet in the store has the same
            name. By default ``0``.
        without_category: Rows without a category of their own. By default ``0``.
        categories: Categories that are not in the store: the first 200.
        statuses: Other words than a status, undecided ones first.
    """

    added: int = 0
    refused: int = 0
    already_here: int = 0
    without_category: int = 0
    categories: list[ImportWord] = field(default_factory=list[ImportWord])
    statuses: list[ImportWord] = field(default_factory=list[ImportWord])


class Sales(Model, frozen=True, kw_only=True):
    """The sales between two days, both included.

    Attributes:
        from_: The first day.
        to: The last day.
        time_zone: The time zone of the days.
        by: What the rows are: days or categories.
        rows: The rows, by day or by category.
    """

    from_: date
    to: date
    time_zone: str
    by: SalesBy | str
    rows: list[SalesRow]


class Event(Model, frozen=True, kw_only=True):
    """Something that happened. ``previous`` is ``None`` where something began or ended.

    Attributes:
        id: Unique, and the same in the feed and in every delivery.
        type: One of ``pet.created``, ``pet.updated``, ``pet.deleted``, ``order.placed``,
            ``order.updated``, ``order.approved``, ``order.delivered``, ``order.returned``,
            ``order.cancelled``, ``order.lapsed``, ``category.created``,
            ``category.updated``, ``category.deleted``, ``key.created``, ``key.updated``,
            ``key.rotated``, ``key.revoked``, ``key.unbanned``, ``person.created``,
            ``person.updated``, ``person.invited``, ``key.limit_near``, ``key.banned``,
            ``key.expiring``, ``deprecation.used``, ``webhook.disabled``, ``webhook.test``.
            More will follow: ignore types that you do not know.
        timestamp: When it happened (RFC 3339, to the millisecond).
        resource: The resource of the event, such as ``pet/7``.
        sequence: The place among all events of the store, without gaps.
        data: The resource after the change, or before it was deleted, or what concerns a
            key. The ``type`` says which.
        previous: The old values of the members that changed; ``None`` for an absent member.
        actor: Who caused it.
        request_id: The ``X-Request-Id`` of the request that caused it, if one did.
    """

    id: str
    type: str
    timestamp: datetime
    resource: str
    sequence: int
    data: Any
    previous: Mapping[str, Any] | None = None
    actor: Actor | None = None
    request_id: str | None = None


class Usage(Model, frozen=True, kw_only=True):
    """The usage of a key. ``banned_until`` is ``None`` while the key is not banned.

    Attributes:
        plan: One of ``free``, ``pro``, ``business``, ``enterprise``. More will follow:
            ignore plans that you do not know.
        minute: The window of the minute.
        day: The window of the day.
        banned_until: When the ban ends; ``None`` without one.
        days: The requests of each of the last 30 days that had any, oldest first.
        deprecated: The deprecated operations that the key called in the last 30 days.
        refused: The requests that a limit refused in the last 7 days, by hour and
            operation, the newest hour first.
        scopes: What the key may do. More scopes will follow: ignore scopes that you do not
            know.
    """

    plan: str
    minute: UsageWindow
    day: UsageWindow
    banned_until: datetime | None = None
    days: list[UsageDay]
    deprecated: list[DeprecatedUse]
    refused: list[RefusedRequests] = field(default_factory=list[RefusedRequests])
    scopes: list[str] = field(default_factory=list[str])


class Webhook(Versioned, frozen=True, kw_only=True):
    """A webhook, without its secret. ``description`` and times may be ``None``.

    Attributes:
        id: Unique identifier, assigned by the service on creation.
        url: Where its events are sent.
        types: The types of events that it wants; none is all that its key may read.
        description: A description of the webhook.
        enabled: Whether the webhook is enabled.
        disabled_reason: Why the service disabled the webhook; ``None`` if it did not.
        created_at: When it was created.
        last_success_at: When the URL last accepted an event.
        failing_since: When its deliveries began to fail; ``None`` if one of the last three
            attempts succeeded.
        owner: The key or the person that it belongs to.
    """

    id: int
    url: str
    types: list[str]
    description: str | None = None
    enabled: bool
    disabled_reason: str | None = None
    created_at: datetime
    last_success_at: datetime | None = None
    failing_since: datetime | None = None
    owner: WebhookOwner


class PersonWithInvitation(Person, frozen=True, kw_only=True):
    """A person and a link for them, which is shown only once.

    Attributes:
        invitation: The link with which the person sets a password.
    """

    invitation: Invitation

    def __repr__(self) -> str:
        return without(self, "invitation")


class WebhookWithSecret(Webhook, frozen=True, kw_only=True):
    """A webhook and its secret, which is shown only once.

    Attributes:
        secret: The secret that signs the deliveries: ``whsec_`` and 32 bytes in base64.
    """

    secret: str

    def __repr__(self) -> str:
        return without(self, "secret")


class Import(Versioned, frozen=True, kw_only=True):
    """A file of pets on its way into the store.

    Attributes:
        id: Unique identifier, assigned by the service on creation.
        file_name: The name of the file, perhaps empty.
        encoding: What the file was read as, such as ``UTF-8``.
        state: ``open`` until the first run, ``running`` while rows are waiting, then
            ``finished``; ``undone`` from the first call of ``undo_import`` on.
        rows: How many rows the file has.
        waiting: Rows that are still to be added; of an undone import, pets still to be
            looked at. Call ``run_import`` or ``undo_import`` until it is 0.
        added: Pets that were added.
        refused: Rows that were refused.
        deleted: Pets that an undo has deleted.
        kept: Pets that an undo has left, because somebody needs them.
        kept_pets: The first 200 of them.
        columns: The columns of the file.
        has_header: Whether a row has the names of the columns.
        mapping: Which column has which field.
        unknown_categories: What happens to rows whose category the store does not have:
            ``refuse`` them, or ``create`` the categories.
        values: What words of the status column mean: ``available``, ``pending``, ``sold``
            or ``none``.
        categories: What categories mean that are not in the store: the ids of categories.
        notes: What was noticed about the file, in words for a person.
        created_at: When the file was sent.
        header_line: The line with the names of the columns, if there is one.
        default_status: Availability status.
        default_category_id: Identifier of the category the animal belongs to.
        preview: What a run would do. Only of an open import.
    """

    id: int
    file_name: str
    encoding: str
    state: ImportState | str
    rows: int
    waiting: int
    added: int
    refused: int
    deleted: int
    kept: int
    kept_pets: list[KeptPet]
    columns: list[ImportColumn]
    has_header: bool
    mapping: ImportMapping
    unknown_categories: UnknownCategories | str
    values: dict[str, ImportWordMeans]
    categories: dict[str, int]
    notes: list[str]
    created_at: datetime
    header_line: int | None = None
    default_status: PetStatus | str | None = None
    default_category_id: int | None = None
    preview: ImportPreview | None = None


class NewPet(Model, frozen=True, kw_only=True, omit_defaults=True):
    """A pet to add.

    Attributes:
        name: The animal's name. 1 to 255 characters, not only white space, without U+0000.
        category_id: Identifier of the category the animal belongs to.
        status: Availability status.
    """

    name: str
    category_id: int
    status: PetStatus | None = None
