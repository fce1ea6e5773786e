"""Events: what changed in the store, and what concerns a key."""

import re
from collections.abc import Mapping
from random import getrandbits
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias, get_args

from msgspec import UNSET, Meta, Struct, UnsetType, convert, field, to_builtins

from petstore.domain.cursors import CursorForm, base64_bytes, base64_text
from petstore.domain.fields import INT64_MAX, TimeText, open_list
from petstore.keys.model import Caller, Environment, Scope

ResourceEventType: TypeAlias = Literal[
    "pet.created",
    "pet.updated",
    "pet.deleted",
    "order.placed",
    "order.updated",
    "order.approved",
    "order.delivered",
    "order.returned",
    "order.cancelled",
    "order.lapsed",
    "category.created",
    "category.updated",
    "category.deleted",
]
AdminEventType: TypeAlias = Literal[
    "key.created",
    "key.updated",
    "key.rotated",
    "key.revoked",
    "key.unbanned",
    "person.created",
    "person.updated",
    "person.invited",
]
"""The types of events that only callers with ``keys:admin`` can read."""

KeyEventType: TypeAlias = Literal[
    "key.limit_near",
    "key.banned",
    "key.expiring",
    "deprecation.used",
    "webhook.disabled",
    "webhook.test",
]
"""The types of events that only the owner of the key they concern can read."""

EventType: TypeAlias = Literal[ResourceEventType, AdminEventType, KeyEventType]

ADMIN_EVENT_TYPES: tuple[AdminEventType, ...] = get_args(AdminEventType)

EVENT_TYPES: tuple[EventType, ...] = get_args(EventType)
ADMINISTRATORS: dict[Environment, int] = {"production": -1, "staging": -2}
"""The ``key_id`` of events that the callers with ``keys:admin`` of an environment can read."""

_MAX_SEQUENCE = 2**62
_MARK = slice(len("evt_"), len("evt_") + 8)
_SCOPES: dict[str, Scope] = {
    "pet": "pets:read",
    "order": "orders:read",
    "category": "pets:read",
    "person": "keys:admin",
    **dict.fromkeys(ADMIN_EVENT_TYPES, "keys:admin"),
}


def kind_of(event_type: str) -> str:
    kind = event_type.partition(".")[0]
    return "key" if kind == "deprecation" else kind


KINDS = tuple(dict.fromkeys(map(kind_of, EVENT_TYPES)))


_Object = Annotated[Any, Meta(extra_json_schema={"type": "object"})]
_Previous = Annotated[
    _Object,
    Meta(description="The old values of the fields that changed; null for an absent field."),
]
_RequestId = Annotated[
    str, Meta(description="The `X-Request-Id` of the request that caused it, if one did.")
]


class Actor(Struct, frozen=True):
    """Who caused an event. The operator and the service have no id."""

    type: Annotated[
        Literal["key", "person", "operator", "service"],
        Meta(
            description=(
                "`key`, `person`, `operator` for a command beside the database, or `service` for"
                " what the service did automatically."
            )
        ),
    ]
    id: Annotated[int, Meta(description="The id of the key or person.", ge=1)] | UnsetType = UNSET


class Author(NamedTuple):
    """Who makes a change, such as ``key/3`` or ``person/2``, and the id of the request."""

    actor: str
    request_id: str | None = None


SERVICE = Author("service")  # such as the lapse of a reservation
OPERATOR = Author("operator")  # a command beside the database


class Event(Struct, frozen=True, kw_only=True):
    """Something that happened. ``previous`` is absent where something began or ended."""

    id: Annotated[str, Meta(description="Unique, and the same in the feed and in every delivery.")]
    type: Annotated[str, Meta(description=open_list(EVENT_TYPES, "types"))]
    timestamp: Annotated[
        TimeText, Meta(description="When it happened (RFC 3339, to the millisecond).")
    ]
    resource: Annotated[str, Meta(description="The resource of the event, such as `pet/7`.")]
    sequence: Annotated[
        int,
        Meta(
            ge=1,
            le=INT64_MAX,
            description="The position among all events of the store, without gaps.",
        ),
    ]
    data: Annotated[
        _Object,
        Meta(
            description=(
                "The resource after the change, or before it was deleted, or what concerns a key."
                " The `type` says which."
            )
        ),
    ]
    previous: _Previous | UnsetType = UNSET
    actor: Annotated[Actor, Meta(description="Who caused it.")]
    request_id: _RequestId | UnsetType = field(name="requestId", default=UNSET)


def readable_by(caller: str, webhook: str, event: str = "") -> str:
    """Return the SQL condition that no other caller alone may read an event, whatever its type."""
    environments = " ".join(
        f"WHEN '{name}' THEN {key_id}" for name, key_id in ADMINISTRATORS.items()
    )
    own = f"(SELECT CASE environment {environments} END FROM webhooks WHERE id = {webhook})"  # noqa: S608
    return f"({event}key_id IS NULL OR {event}key_id = {caller} OR {event}key_id = {own})"


class Position(NamedTuple):
    """A position in the feed: after the event of this ``sequence``, or before all others at 0.

    ``mark`` is part of that event's id. After an older backup was restored, another event gets
    the same sequence, and its mark differs.
    """

    sequence: int
    mark: bytes

    @classmethod
    def behind(cls, sequence: int, event_id: str) -> "Position":
        return cls(sequence, bytes.fromhex(event_id[_MARK]))


START = Position(0, bytes(4))  # the position before the first event of a store


def _decode_position(cursor: str) -> Position:
    content = base64_bytes(cursor)
    sequence = int.from_bytes(content[:8])
    if sequence > _MAX_SEQUENCE:
        raise ValueError("no store has had so many events")
    return Position(sequence, content[8:])


IN_FEED = CursorForm(
    re.compile("[A-Za-z0-9_-]{16}"),
    16,
    lambda position: base64_text(position.sequence.to_bytes(8) + position.mark),
    _decode_position,
)


class NewEvent(NamedTuple):
    """An event to record. ``data`` and ``previous`` become JSON."""

    type: EventType
    resource: str
    data: Struct | Mapping[str, Any]
    previous: Mapping[str, Any] | None = None
    key_id: int | None = None


def resource_event(kind: EventType, item: Struct, before: Struct | None = None) -> NewEvent:
    resource = f"{kind.partition('.')[0]}/{item.id}"  # type: ignore[attr-defined] # each has one
    if before is None:
        return NewEvent(kind, resource, item)
    # Equal moments may differ in their offset, and so in JSON.
    old, new = to_builtins(before), to_builtins(item)
    changed = {name: old.get(name) for name in old | new if old.get(name) != new.get(name)}
    return NewEvent(kind, resource, item, changed)


def admin_event(
    kind: AdminEventType, environment: Environment, item: Struct, before: Struct | None = None
) -> NewEvent:
    return resource_event(kind, item, before)._replace(key_id=ADMINISTRATORS[environment])


def actor_of(author: str) -> Actor:
    kind, _, number = author.partition("/")
    return convert({"type": kind, "id": int(number)} if number else {"type": kind}, Actor)


def author_text(actor: Actor) -> str:
    return actor.type if actor.id is UNSET else f"{actor.type}/{actor.id}"


def readable_types(scopes: frozenset[Scope]) -> frozenset[EventType]:
    return frozenset(
        kind for kind in EVENT_TYPES if (scope := scope_of(kind)) is None or scope in scopes
    )


def key_ids_of(caller: Caller) -> tuple[int, int]:
    """Return the values of ``key_id`` in the restricted events that a caller can read."""
    administers = "keys:admin" in caller.scopes
    return caller.id, ADMINISTRATORS[caller.environment] if administers else caller.id


def scope_of(event_type: str) -> Scope | None:
    """Return ``None`` for the events that only their own key can read.

    For a kind of resource, return the scope that all its events need.
    """
    return _SCOPES.get(event_type) or _SCOPES.get(kind_of(event_type))


def new_event_id() -> str:
    return f"evt_{getrandbits(96):024x}"  # no secret: it need not cost a system call
