"""What was done to a key: who, what, when."""

from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from petstore.clock import Milliseconds, rfc3339, utc_second
from petstore.databases.api_keys import select_events, select_key
from petstore.databases.contract import Row, Store
from petstore.domain.api_keys import ApiKey, Environment
from petstore.domain.fields import Id
from petstore.store.key_status import key_in
from petstore.store.pages import Page, page_of


class Change(Struct, frozen=True):
    """What a field of a key was and has become."""

    before: Any
    after: Any


class KeyEvent(Struct, frozen=True):
    """A change to a key. ``by`` is ``key 3``, or ``command line`` and who was logged in there."""

    id: Id
    at: Annotated[datetime, Meta(tz=True)]
    by: str
    action: str
    changes: dict[str, Change]


async def list_history(
    store: Store, key_id: int, environment: Environment | None, after: int | None, limit: int
) -> Page[KeyEvent]:
    """Return the first ``limit`` changes to a key with an id above ``after``, oldest first.

    Raises:
        NotFound: there is no such key, or it is not of ``environment``.
    """
    key_in(await store.read(select_key(key_id)), key_id, environment)
    rows = await store.read(select_events(key_id, after, limit + 1))
    return page_of(rows, limit, _event_of)


def changes_between(before: ApiKey | None, after: ApiKey) -> str:
    """Return as JSON what is different; of a new key, all that it has."""
    old = _shown(before) if before else {}
    changes = {
        name: Change(old.get(name), value)
        for name, value in _shown(after).items()
        if value != old.get(name)
    }
    return msgspec.json.encode(changes).decode("utf-8")


def _shown(key: ApiKey) -> dict[str, Any]:
    return {
        "name": key.name,
        "plan": key.plan,
        "perMinute": key.per_minute,
        "perDay": key.per_day,
        "scopes": sorted(key.scopes),
        "expiresAt": _time(key.expires_at),
        "revokedAt": _time(key.revoked_at),
    }


def _time(moment: Milliseconds | None) -> str | None:
    return None if moment is None else rfc3339(moment)


def _event_of(row: Row) -> KeyEvent:
    event_id, at, actor, action, changes = row
    return KeyEvent(
        event_id,
        utc_second(at),
        actor,
        action,
        msgspec.json.decode(changes, type=dict[str, Change]),
    )
