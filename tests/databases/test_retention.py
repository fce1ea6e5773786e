"""What is old is deleted, and nothing else."""

import asyncio
from typing import Any

import pytest

from petstore.clock import DAY, MINUTE
from petstore.databases.contract import Statement, Store, Unit
from petstore.databases.schema import TABLES_BY_NAME, prune_all
from petstore.events.model import EVENT_TYPES, OPERATOR
from petstore.events.store import Change
from petstore.keys.model import Caller
from petstore.keys.store import ApiKeyCache, rotate_key
from support.changes import NOW, create_pets
from support.full_stores import PETS
from support.history import events_after, published
from support.keys import issue_stored
from support.manual_clock import ManualClock
from support.retention import DAYS_KEPT, prune_table
from support.stores import do, open_store

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]

ME = Change(0, OPERATOR)
BATCH = TABLES_BY_NAME["usage"].at_once


@pytest.fixture
async def key(store: Store, clock: ManualClock) -> Caller:
    return await issue_stored(store, clock)


async def pruned(store: Store, clock: ManualClock, **days: int) -> None:
    kept: dict[Any, int] = {**DAYS_KEPT, **days}
    await prune_all(store, clock, kept)


async def column(store: Store, table: str, name: str) -> list[Any]:
    rows = await store.read(Statement(f"SELECT {name} FROM {table} ORDER BY {name}"))  # noqa: S608
    return [value for (value,) in rows]


def used(key: Caller, first: int, last: int) -> Unit[None]:
    for day in range(first, last):
        yield Statement("INSERT INTO usage VALUES (?1, ?2, 5)", (key.id, day))


async def test_events_are_kept_for_the_days_of_the_setting(
    store: Store, clock: ManualClock
) -> None:
    await store.write(create_pets(PETS))
    await store.write(create_pets(PETS, now=NOW + MINUTE))
    assert len(await events_after(store)) == 2 * len(PETS)
    clock.now = NOW + 7 * DAY
    await pruned(store, clock, event_days=7)
    assert len(await events_after(store)) == 2 * len(PETS)
    clock.now += 1
    await pruned(store, clock, event_days=8)
    assert len(await events_after(store)) == 2 * len(PETS)
    await store.write(prune_table("events", clock.now - 7 * DAY))
    assert await store.read(Statement("SELECT * FROM feed_start")) == [(1, len(PETS) + 1)]
    assert [event.sequence for event in await events_after(store)] == list(
        range(len(PETS) + 1, 2 * len(PETS) + 1)
    )


async def test_events_of_keys_are_kept_for_the_days_of_their_own_setting(
    store: Store, clock: ManualClock, key: Caller
) -> None:
    await store.write(create_pets(PETS[:1]))
    await store.write(rotate_key(key.id, 0, ME.at(NOW + DAY)))
    await store.write(create_pets(PETS[:1], now=NOW + DAY))
    await store.write(rotate_key(key.id, 0, ME.at(NOW + 2 * DAY)))
    await published(store)
    clock.now = NOW + 100 * DAY + 1
    for days, kept in ((730, [1, 3, 4, 5]), (100, [3, 4, 5]), (99, [4, 5])):
        await pruned(store, clock, admin_event_days=days)
        assert await column(store, "events", "sequence") == kept
    assert await store.read(Statement("SELECT * FROM feed_start")) == [(1, 4)]


async def test_only_tokens_that_ended_long_ago_are_deleted(
    store: Store, clock: ManualClock, key: Caller
) -> None:
    grace = await store.write(rotate_key(key.id, 0, ME.at(NOW)))
    await store.write(rotate_key(key.id, 100 * DAY, ME.at(NOW)))
    clock.now = NOW + 100 * DAY
    await pruned(store, clock, history_days=100)
    assert len(await column(store, "api_key_tokens", "digest")) == 3
    clock.now = NOW + 100 * DAY + 1
    await pruned(store, clock, history_days=100)
    ends = await store.read(Statement("SELECT expires_at FROM api_key_tokens"))
    assert sorted(ends, key=str) == [(NOW + 100 * DAY,), (None,)]
    clock.now = NOW + 100 * DAY - 1
    ring = ApiKeyCache(store, clock, "production")
    assert await ring.find(grace.token.encode()) is not None


async def test_the_usage_of_a_key_is_kept_for_the_days_of_the_setting(
    store: Store, clock: ManualClock, key: Caller
) -> None:
    today = NOW // DAY
    await store.write(used(key, today - 3 * BATCH // 2, today + 1))
    await pruned(store, clock, history_days=100)
    assert await column(store, "usage", "day") == list(range(today - 100, today + 1))


async def test_with_0_days_histories_are_kept_forever_and_orders_and_pets_always(
    store: Store, clock: ManualClock, key: Caller
) -> None:
    await store.write(used(key, 0, 3))
    await store.write(rotate_key(key.id, 0, ME.at(NOW)))
    await store.write(create_pets(PETS))
    await store.write(
        do("INSERT INTO orders (pet_id, status, placed_at) VALUES (1, 'delivered', ?1)", NOW)
    )
    clock.now += 36_500 * DAY
    await pruned(store, clock, history_days=0)
    assert await column(store, "usage", "day") == [0, 1, 2]
    assert len(await column(store, "api_key_tokens", "digest")) == 2
    assert len(await column(store, "pets", "id")) == len(PETS)
    assert len(await column(store, "orders", "id")) == 1


async def test_other_writes_run_between_two_batches(
    store: Store, clock: ManualClock, key: Caller
) -> None:
    """The changes of others do not wait until all is deleted."""
    await store.write(used(key, 0, 3 * BATCH))
    left: list[int] = []

    async def write() -> None:
        while await column(store, "usage", "day"):
            await store.write(create_pets(PETS[:1]))
            left.append(len(await column(store, "usage", "day")))

    await asyncio.gather(write(), pruned(store, clock))
    assert {2 * BATCH, BATCH} & set(left)


async def test_several_processes_can_prune_at_once(
    store: Store, address: str, clock: ManualClock, key: Caller
) -> None:
    await store.write(create_pets(PETS * 100))
    await store.write(used(key, 0, 2 * BATCH))
    await events_after(store)
    clock.now += 31 * DAY
    async with open_store(address) as other:
        await asyncio.gather(*(pruned(one, clock) for one in (store, other) * 2))
    assert await column(store, "usage", "day") == []
    (event,) = await events_after(store, types=EVENT_TYPES)
    assert event.sequence == 100 * len(PETS) + 1
