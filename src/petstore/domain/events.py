"""Events: what changed in the store, and what concerns a key."""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Mapping
from random import getrandbits
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias, get_args

from msgspec import UNSET, Meta, Struct, UnsetType, to_builtins

from petstore.domain.api_keys import Scope
from petstore.domain.fields import INT64_MAX

ResourceEventType: TypeAlias = Literal[
    "pet.created",
    "pet.updated",
    "pet.deleted",
    "order.placed",
    "order.updated",
    "order.approved",
    "order.delivered",
    "order.cancelled",
    "order.lapsed",
    "category.created",
    "category.updated",
    "category.deleted",
]
"""The types of events about the resources of the store."""

KeyEventType: TypeAlias = Literal[
    "key.limit_near",
    "key.banned",
    "key.expiring",
    "deprecation.used",
    "webhook.disabled",
    "webhook.test",
]
"""The types of events that only the holder of the key they concern can read."""

EventType: TypeAlias = ResourceEventType | KeyEventType

EVENT_TYPES: tuple[EventType, ...] = (*get_args(ResourceEventType), *get_args(KeyEventType))
"""Every type. The list is open: a client ignores types that it does not know."""

FEED_CURSOR_PATTERN = "^[A-Za-z0-9_-]{16}$"
"""The form of every cursor of the feed: 96 bits in base64url (RFC 4648)."""

_CURSOR = re.compile(FEED_CURSOR_PATTERN.removesuffix("$") + r"\Z")
_MAX_SEQUENCE = 2**62
_MARK = slice(len("evt_"), len("evt_") + 8)
_SCOPES: dict[str, Scope] = {
    "pet": "pets:read",
    "order": "orders:read",
    "category": "pets:read",
}


def type_description(types: Iterable[EventType]) -> str:
    """Describe the type of an event that has one of these ``types``."""
    names = ", ".join(f"`{name}`" for name in types)
    return f"One of {names}. More will follow: ignore types that you do not know."


class Event(Struct, frozen=True):
    """Something that happened. ``previous`` is absent where something began or ended."""

    id: Annotated[str, Meta(description="Unique, and the same in the feed and in every delivery.")]
    type: Annotated[
        str,
        Meta(description=type_description(EVENT_TYPES)),
    ]
    timestamp: Annotated[
        str,
        Meta(
            description="When it happened (RFC 3339, to the millisecond).",
            extra_json_schema={"format": "date-time"},
        ),
    ]
    resource: Annotated[str, Meta(description="The resource of the event, such as `pet/7`.")]
    sequence: Annotated[
        int,
        Meta(
            ge=1,
            le=INT64_MAX,
            description="The place among all events of the store, without gaps.",
            extra_json_schema={"format": "int64"},
        ),
    ]
    data: Annotated[
        Any,
        Meta(
            description="The resource after the change, or before it was deleted.",
            extra_json_schema={"type": "object"},
        ),
    ]
    previous: (
        Annotated[
            Any,
            Meta(
                description=(
                    "The old values of the members that changed; null for an absent member."
                ),
                extra_json_schema={"type": "object"},
            ),
        ]
        | UnsetType
    ) = UNSET


class Position(NamedTuple):
    """A place in the feed: behind the event of this ``sequence``, or before all others at 0.

    ``mark`` is part of that event's id. After an older backup was restored, another event takes
    the same place, and its mark differs.
    """

    sequence: int
    mark: bytes

    @classmethod
    def behind(cls, sequence: int, event_id: str) -> "Position":
        """Return the position behind an event."""
        return cls(sequence, bytes.fromhex(event_id[_MARK]))

    @classmethod
    def of_cursor(cls, cursor: str) -> "Position":
        """Return the position in a cursor.

        Raises:
            ValueError: it is not a cursor of the feed.
        """
        if not _CURSOR.match(cursor):
            msg = "not a cursor"
            raise ValueError(msg)
        text = urlsafe_b64decode(cursor)
        sequence = int.from_bytes(text[:8])
        if sequence > _MAX_SEQUENCE:
            msg = "no store has had so many events"
            raise ValueError(msg)
        return cls(sequence, text[8:])

    @property
    def cursor(self) -> str:
        """The position as an opaque text."""
        return urlsafe_b64encode(self.sequence.to_bytes(8) + self.mark).decode("ascii")


START = Position(0, bytes(4))
"""The position before the first event of a store."""


class NewEvent(NamedTuple):
    """An event to record. ``data`` and ``previous`` become JSON.

    With ``key_id`` only the holder of that key can read it.
    """

    type: EventType
    resource: str
    data: Struct | Mapping[str, Any]
    previous: Mapping[str, Any] | None = None
    key_id: int | None = None


def resource_event(kind: ResourceEventType, item: Struct, before: Struct | None = None) -> NewEvent:
    """Return the event that an ``item`` began, ended, or changed from what it was ``before``."""
    resource = f"{kind.partition('.')[0]}/{item.id}"  # type: ignore[attr-defined] # each has one
    return NewEvent(kind, resource, item, None if before is None else changed_members(before, item))


def readable_types(scopes: frozenset[Scope]) -> frozenset[EventType]:
    """Return the types that a key with these ``scopes`` may read, those about itself included."""
    return frozenset(
        kind for kind in EVENT_TYPES if (scope := scope_of(kind)) is None or scope in scopes
    )


def scope_of(kind: EventType) -> Scope | None:
    """Return the scope that reads events of a type; ``None`` for those about a key."""
    return _SCOPES.get(kind.partition(".")[0])


def changed_members(before: Struct, after: Struct) -> dict[str, Any]:
    """Return the members of ``before`` that differ in ``after``; ``None`` for an absent one."""
    # Equal moments may differ in their offset, and so in JSON.
    old, new = to_builtins(before), to_builtins(after)
    return {name: old.get(name) for name in old | new if old.get(name) != new.get(name)}


def new_event_id() -> str:
    """Return a new id, which no event had in any store."""
    return f"evt_{getrandbits(96):024x}"  # no secret: it need not cost a system call
