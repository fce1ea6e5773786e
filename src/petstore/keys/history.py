"""The history of an API key or a person: who changed what, and when."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import Meta, Struct

from petstore.clock import Milliseconds, rfc3339, utc_second
from petstore.databases.contract import Reader, Statement
from petstore.databases.pages import Page, read_page
from petstore.domain.fields import Id
from petstore.keys.model import Caller, CallerKind, Environment, Key, KeyFields, Role
from petstore.keys.status import found, select_key

_MOMENTS = ("expiresAt", "revokedAt")
# In the order that the key shows them.
_NAMES = (
    *(name for name in Key.__struct_encode_fields__ if name in KeyFields.__struct_encode_fields__),
    "revokedAt",
)

KeyAction: TypeAlias = Literal[
    "created", "changed", "rotated", "revoked", "unbanned", "link_created", "link_used"
]
PersonAction: TypeAlias = Literal[
    "created",
    "changed",
    "invited",
    "disabled",
    "enabled",
    "device_ended",
    "link_created",
    "password_set",
]
Action: TypeAlias = KeyAction | PersonAction


class Change(Struct, frozen=True):
    """The value of a field before and after a change."""

    before: Annotated[Any, Meta(description="The value before the change; null if none.")]
    after: Annotated[Any, Meta(description="The value after it; null if none.")]


class KeyEvent(Struct, frozen=True):
    """A change to a key or a person, or a link of the console that signs somebody in with it.

    ``by`` is ``key 3``, ``person 2``, ``command line`` with the operator's login, or ``link`` for
    somebody who used one.
    """

    id: Id
    at: Annotated[datetime, Meta(tz=True, description="When it was changed.")]
    by: Annotated[
        str,
        Meta(
            description=(
                "Who did it: `key 3`, `person 2`, `command line` and the operator's login, or"
                " `link` for somebody who signed in with one."
            )
        ),
    ]
    action: Annotated[
        str,
        Meta(
            description=(
                "`created`, `changed`, `rotated`, `revoked`, `unbanned`, `link_created` or"
                " `link_used`; of a person also `invited`, `disabled`, `enabled` or"
                " `device_ended`."
            )
        ),
    ]
    changes: Annotated[
        dict[str, Change], Meta(description="The fields that changed, by their names.")
    ]


class CallerChange(NamedTuple):
    """A change to a key, or to a person, who has a ``role``, as the console shows it."""

    id: int
    at: Milliseconds
    actor: str
    action: str
    changes: Mapping[str, Any]
    caller_id: int
    name: str
    role: Role | None

    @property
    def kind(self) -> CallerKind:
        """Whether it is about a key or a person."""
        return "key" if self.role is None else "person"


async def list_history(
    store: Reader, key_id: int, environment: Environment | None, after: int | None, limit: int
) -> Page[KeyEvent]:
    """Return the first ``limit`` changes to a key with an id above ``after``, oldest first.

    Raises:
        NotFound: see ``key_status.found``.
    """
    found(await store.read(select_key(key_id)), key_id, environment)
    return await read_history(store, key_id, after, limit)


async def read_history(
    store: Reader, caller_id: int, after: int | None, limit: int
) -> Page[KeyEvent]:
    """Return the first ``limit`` changes to a key or a person with an id above ``after``."""
    select, about = "SELECT id, at, actor, action, changes FROM api_key_events", "key_id"
    return await read_page(
        *(store, "select_key_events", select, {about: caller_id}, after, limit, _event_of)
    )


async def read_latest_changes(
    store: Reader, caller_id: int, before: int | None, limit: int
) -> Page[CallerChange]:
    """Return the last ``limit`` changes to a key or a person, the newest first.

    They are those with an id below ``before``, if that is given.
    """
    select = (
        "SELECT id, at, actor, action, changes, key_id,"
        " (SELECT name FROM api_keys k WHERE k.id = key_id),"
        " (SELECT role FROM api_keys k WHERE k.id = key_id) FROM api_key_events"
    )
    wanted = {"key_id": caller_id}
    return await read_page(
        *(store, "select_latest_key_events", select, wanted, before, limit, change_of),
        newest_first=True,
    )


def change_of(row: Sequence[Any]) -> CallerChange:
    """Return the change in a row of its columns, of which ``changes`` is encoded."""
    change_id, at, actor, action, changes, *caller = row
    return CallerChange(change_id, at, actor, action, msgspec.json.decode(changes), *caller)


async def list_changes_by(store: Reader, key_id: int) -> list[tuple[CallerKind, int, KeyEvent]]:
    """Return what a key did to any key or person, oldest first, with the id of whom it is about.

    It reads the whole history, and is for the command line alone.
    """
    rows = await store.read(
        Statement(
            "SELECT (SELECT role FROM api_keys k WHERE k.id = e.key_id), key_id,"
            " id, at, actor, action, changes FROM api_key_events e WHERE actor = ?1 ORDER BY id",
            (f"key {key_id}",),
            name="select_key_events_by_actor",
        )
    )
    return [
        ("key" if role is None else "person", about, _event_of(event))
        for role, about, *event in rows
    ]


def insert_event(
    actor: str, action: Action, before: Caller | None, after: Caller, now: Milliseconds
) -> Statement:
    """Return the INSERT of a change to a key. A new key has nothing ``before``."""
    return insert_changes(
        actor, action, after.id, _shown(before) if before else {}, _shown(after), now
    )


def insert_changes(
    actor: str,
    action: Action,
    caller_id: int,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    now: Milliseconds,
) -> Statement:
    """Return the INSERT of a change to the fields of a key or a person, by their names."""
    changes = {
        name: Change(before.get(name), value)
        for name, value in after.items()
        # What a new one does not have is no change.
        if value != before.get(name) and (before or value)
    }
    return Statement(
        "INSERT INTO api_key_events (key_id, at, actor, action, changes)"
        " VALUES (?1, ?2, ?3, ?4, ?5)",
        (caller_id, now, actor, action, msgspec.json.encode(changes).decode("utf-8")),
        name="insert_key_event",
    )


def _shown(key: Caller) -> dict[str, Any]:
    values = msgspec.to_builtins(key, order="deterministic")
    for name in _MOMENTS:
        if values[name] is not None:
            values[name] = rfc3339(values[name])
    return {name: values[name] for name in _NAMES}


def _event_of(row: Sequence[Any]) -> KeyEvent:
    event_id, at, actor, action, changes = row
    decoded = msgspec.json.decode(changes, type=dict[str, Change])
    return KeyEvent(event_id, utc_second(at), actor, action, decoded)
