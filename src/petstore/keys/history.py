"""The history of an API key: who changed what, and when."""

from datetime import datetime
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta, Struct

from petstore.clock import Milliseconds, rfc3339, utc_second
from petstore.databases.contract import Reader, Row, Statement
from petstore.databases.pages import Page, read_page
from petstore.domain.fields import Id
from petstore.keys.model import Caller, Environment, KeyFields
from petstore.keys.status import Key, found, select_key

_MOMENTS = ("expiresAt", "revokedAt")
# In the order that the key shows them.
_NAMES = (
    *(name for name in Key.__struct_encode_fields__ if name in KeyFields.__struct_encode_fields__),
    "revokedAt",
)

Action: TypeAlias = Literal[
    *("created", "changed", "rotated", "revoked", "unbanned", "link_created", "link_used"),
    "password_set",
]


class Change(Struct, frozen=True):
    """The value of a field before and after a change."""

    before: Annotated[Any, Meta(description="The value before the change; null if none.")]
    after: Annotated[Any, Meta(description="The value after it; null if none.")]


class KeyEvent(Struct, frozen=True):
    """A change to a key, or a link of the console that signs somebody in with it.

    ``by`` is ``key 3``, ``command line`` with the operator's login, or ``link`` for somebody who
    used one.
    """

    id: Id
    at: Annotated[datetime, Meta(tz=True, description="When it was changed.")]
    by: Annotated[
        str,
        Meta(
            description=(
                "Who did it: `key 3`, `command line` and the operator's login, or `link` for"
                " somebody who signed in with one."
            )
        ),
    ]
    action: Annotated[
        str,
        Meta(
            description=(
                "`created`, `changed`, `rotated`, `revoked`, `unbanned`, `link_created` or"
                " `link_used`."
            )
        ),
    ]
    changes: Annotated[
        dict[str, Change], Meta(description="The fields that changed, by their names.")
    ]


async def list_history(
    store: Reader, key_id: int, environment: Environment | None, after: int | None, limit: int
) -> Page[KeyEvent]:
    """Return the first ``limit`` changes to a key with an id above ``after``, oldest first.

    Raises:
        NotFound: see ``key_status.found``.
    """
    found(await store.read(select_key(key_id)), key_id, environment)
    select, of_key = "SELECT id, at, actor, action, changes FROM api_key_events", {"key_id": key_id}
    return await read_page(store, "select_key_events", select, of_key, after, limit, _event_of)


async def list_changes_by(store: Reader, key_id: int) -> list[tuple[int, KeyEvent]]:
    """Return what a key did to any key, oldest first, each with the id of the key it is about.

    It reads the whole history, and is for the command line alone.
    """
    rows = await store.read(
        Statement(
            "SELECT key_id, id, at, actor, action, changes FROM api_key_events"
            " WHERE actor = ?1 ORDER BY id",
            (f"key {key_id}",),
            name="select_key_events_by_actor",
        )
    )
    return [(row[0], _event_of(row[1:])) for row in rows]


def insert_event(
    actor: str, action: Action, before: Caller | None, after: Caller, now: Milliseconds
) -> Statement:
    """Return the INSERT of a change to a key. A new key has nothing ``before``."""
    old = _shown(before) if before else {}
    changes = {
        name: Change(old.get(name), value)
        for name, value in _shown(after).items()
        if value != old.get(name) and (old or value)  # what a new key does not have is no change
    }
    return Statement(
        "INSERT INTO api_key_events (key_id, at, actor, action, changes)"
        " VALUES (?1, ?2, ?3, ?4, ?5)",
        (after.id, now, actor, action, msgspec.json.encode(changes).decode("utf-8")),
        name="insert_key_event",
    )


def _shown(key: Caller) -> dict[str, Any]:
    values = msgspec.to_builtins(key, order="deterministic")
    for name in _MOMENTS:
        if values[name] is not None:
            values[name] = rfc3339(values[name])
    return {name: values[name] for name in _NAMES}


def _event_of(row: Row) -> KeyEvent:
    event_id, at, actor, action, changes = row
    decoded = msgspec.json.decode(changes, type=dict[str, Change])
    return KeyEvent(event_id, utc_second(at), actor, action, decoded)
