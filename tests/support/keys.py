"""API keys for tests that work on a store."""

from functools import partial
from typing import Any

from petstore.clock import Clock, Milliseconds
from petstore.databases.contract import Row, Statement, Store
from petstore.events import model
from petstore.events.model import Author
from petstore.events.store import Change
from petstore.keys.model import Caller, Environment, Key, KeyFields, KeyWithToken, digest
from petstore.keys.store import (
    caller_of,
    change_key,
    create_key,
    find_key,
    revoke_key,
    rotate_key,
    select_key,
    unban_key,
)

OPERATOR = Change(0, model.OPERATOR)


def new_key(**wanted: Any) -> KeyFields[Milliseconds]:
    return KeyFields(**{"name": "test"} | wanted)


async def issue(
    store: Store,
    clock: Clock,
    *,
    by: Change = OPERATOR,
    environment: Environment = "production",
    **wanted: Any,
) -> KeyWithToken:
    return await store.write(create_key(new_key(**wanted), environment, by.at(clock())))


async def change(
    store: Store, clock: Clock, key_id: int, *, by: Change = OPERATOR, **changes: Any
) -> Key:
    unit = change_key(key_id, changes, by.at(clock()))
    return await store.write(unit)


async def rotate(
    store: Store, clock: Clock, key_id: int, grace: Milliseconds = 0, *, by: Change = OPERATOR
) -> KeyWithToken:
    return await store.write(rotate_key(key_id, grace, by.at(clock())))


async def revoke(store: Store, clock: Clock, key_id: int, *, by: Change = OPERATOR) -> Key:
    return await store.write(revoke_key(key_id, by.at(clock())))


async def unban(store: Store, clock: Clock, key_id: int, *, by: Change = OPERATOR) -> Key:
    return await store.write(unban_key(key_id, by.at(clock())))


async def stored_key(store: Store, key_id: int) -> Caller:
    (row,) = await store.read(select_key(key_id))
    return caller_of(row)


async def actor(store: Store, clock: Clock, **wanted: Any) -> Change:
    """Create a key in ``store`` and return it as one that changes keys."""
    issued = await issue(store, clock, **wanted)
    key = await stored_key(store, issued.id)
    credential = digest(issued.token.encode("ascii"))
    return Change(
        *(0, Author(f"key/{key.id}")),
        caller=key,
        find_caller=partial(find_key, credential),
        credential=credential,
    )


async def issue_stored(store: Store, clock: Clock, **wanted: Any) -> Caller:
    return await stored_key(store, (await issue(store, clock, **wanted)).id)


async def usage_of(store: Store, key_id: int) -> list[Row]:
    sql = "SELECT day, requests FROM usage WHERE key_id = ?1 ORDER BY day"
    return await store.read(Statement(sql, (key_id,), name="select_usage"))
