"""API keys for tests that work on a store."""

from functools import partial
from typing import Any

from petstore.clock import Clock, Milliseconds
from petstore.databases.contract import Row, Statement, Store
from petstore.domain.api_keys import DEFAULT_SCOPES, ApiKey, NewApiKey
from petstore.store.api_keys import (
    Actor,
    ApiKeyChanges,
    IssuedKey,
    change_key,
    create_key,
    revoke_key,
    rotate_key,
    unban_key,
    unconditional,
)
from petstore.store.key_ring import find_key
from petstore.store.key_status import Key, api_key_of, select_key

OPERATOR = Actor("the operator")


def new_api_key(**wanted: Any) -> NewApiKey:
    """Return a key to create: of the plan free, for production, but for what is ``wanted``."""
    values = {
        "name": "test",
        "plan": "free",
        "per_minute": None,
        "per_day": None,
        "scopes": frozenset(DEFAULT_SCOPES),
        "environment": "production",
        "expires_at": None,
    }
    return NewApiKey(**(values | wanted))


async def issue(store: Store, clock: Clock, *, by: Actor = OPERATOR, **wanted: Any) -> IssuedKey:
    """Create a key in ``store``."""
    return await store.write(create_key(new_api_key(**wanted), by, clock()))


async def change(
    store: Store, clock: Clock, key_id: int, *, by: Actor = OPERATOR, **changes: Any
) -> Key:
    """Change what is named of a key."""
    unit = change_key(key_id, ApiKeyChanges(**changes), by, clock(), unconditional)
    return await store.write(unit)


async def rotate(
    store: Store, clock: Clock, key_id: int, grace: Milliseconds = 0, *, by: Actor = OPERATOR
) -> IssuedKey:
    """Issue a new token for a key."""
    return await store.write(rotate_key(key_id, grace, by, clock(), unconditional))


async def revoke(store: Store, clock: Clock, key_id: int, *, by: Actor = OPERATOR) -> Key:
    """End a key."""
    return await store.write(revoke_key(key_id, by, clock(), unconditional))


async def unban(store: Store, clock: Clock, key_id: int, *, by: Actor = OPERATOR) -> Key:
    """Lift the ban of a key."""
    return await store.write(unban_key(key_id, by, clock(), unconditional))


async def stored_key(store: Store, key_id: int) -> ApiKey:
    """Return a key as the service itself sees it."""
    (row,) = await store.read(select_key(key_id))
    return api_key_of(row)


async def actor(store: Store, clock: Clock, **wanted: Any) -> Actor:
    """Create a key in ``store`` and return it as one that changes keys."""
    issued = await issue(store, clock, **wanted)
    key = await stored_key(store, issued.key.id)
    return Actor(f"key {key.id}", key, find_key=partial(find_key, issued.token.encode("ascii")))


async def issue_stored(store: Store, clock: Clock, **wanted: Any) -> ApiKey:
    """Create a key in ``store`` and return it as the service itself sees it."""
    return await stored_key(store, (await issue(store, clock, **wanted)).key.id)


async def usage_of(store: Store, key_id: int) -> list[Row]:
    """Return the day numbers on which a key was used, and its requests on each."""
    sql = "SELECT day, requests FROM usage WHERE key_id = ?1 ORDER BY day"
    return await store.read(Statement(sql, (key_id,), name="select_usage"))
