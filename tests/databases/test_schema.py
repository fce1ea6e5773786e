"""The list of tables agrees with the databases and the documentation; what is old is deleted."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from petstore.backends import store_at
from petstore.clock import DAY, MINUTE, SECOND
from petstore.databases.contract import Statement, Store, Unit
from petstore.databases.schema import TABLES, TABLES_BY_NAME, prune_all
from petstore.events.model import EVENT_TYPES, OPERATOR
from petstore.events.store import Change
from petstore.keys.model import Caller
from petstore.keys.store import ApiKeyCache, rotate_key
from support.changes import NOW, create_pets
from support.full_stores import PETS, columns_of, query
from support.history import events_after, published
from support.keys import issue_stored
from support.manual_clock import ManualClock
from support.retention import DAYS_KEPT, prune_table
from support.stores import do, open_store

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]

KEYS = {
    "sqlite": (
        "SELECT t.name, c.name FROM pragma_table_list t, pragma_table_info(t.name) c"
        " WHERE t.schema = 'main' AND t.type = 'table' AND c.pk > 0 ORDER BY t.name, c.pk"
    ),
    "postgresql": (
        "SELECT conrelid::regclass::text, attname::text FROM pg_constraint JOIN pg_attribute"
        " ON attrelid = conrelid AND attnum = ANY (conkey)"
        " WHERE contype = 'p' AND connamespace = 'public'::regnamespace"
        " ORDER BY conrelid, array_position(conkey, attnum)"
    ),
}
REFERENCES = {
    "sqlite": (
        'SELECT t.name, k."table" FROM sqlite_schema t, pragma_foreign_key_list(t.name) k'
        " WHERE t.type = 'table'"
    ),
    "postgresql": (
        "SELECT conrelid::regclass::text, confrelid::regclass::text FROM pg_constraint"
        " WHERE contype = 'f' AND connamespace = 'public'::regnamespace"
    ),
}


def test_the_list_has_every_table_its_key_and_columns_that_exist_and_those_it_refers_to_first(
    address: str, database_kind: str
) -> None:
    store_at(address, 10 * SECOND).migrate()
    columns = columns_of(address)
    expected = set(TABLES_BY_NAME) - ({"events_outbox"} if database_kind == "sqlite" else set())
    assert set(columns) - {"petstore_schema", "sqlite_sequence"} == expected
    keys: dict[str, tuple[str, ...]] = {}
    for table, column in query(address, KEYS[database_kind]):
        keys[table] = (*keys.get(table, ()), column)
    virtual = {"pet_words", "order_words"} if database_kind == "sqlite" else set()
    assert set(columns) - {"sqlite_sequence"} - virtual == set(keys)
    listed = {table.name: table.key for table in TABLES if table.is_copied}
    assert {table: key for table, key in keys.items() if table in listed} == listed
    times = {table.name: table.time for table in TABLES if table.time}
    assert [name for name, time in times.items() if time not in columns[name]] == []

    order, references = list(TABLES_BY_NAME), query(address, REFERENCES[database_kind])
    assert references
    assert [each for each in references if order.index(each[0]) < order.index(each[1])] == []


def test_the_documentation_says_how_long_each_table_is_kept() -> None:
    page = Path(__file__).parents[2] / "docs/operating.md"
    row = re.compile(r"\| [^|]+ \| `(\w+)` \| (?:`--([a-z-]+)`|(\d+) (\w+))")
    units = {"minutes": MINUTE, "hours": 60 * MINUTE, "days": DAY}
    documented = {
        table: setting.replace("-", "_") if setting else int(number) * units[unit]
        for table, setting, number, unit in row.findall(page.read_text("utf-8"))
    }
    assert documented == {table.name: table.kept_for for table in TABLES if table.time}


# How long rows are kept


ME = Change(0, OPERATOR)
BATCH = TABLES_BY_NAME["usage"].at_once


@pytest.fixture
async def key(store: Store, clock: ManualClock) -> Caller:
    return await issue_stored(store, clock)


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
    await prune_all(store, clock, 7)
    assert len(await events_after(store)) == 2 * len(PETS)
    clock.now += 1
    await prune_all(store, clock, 8)
    assert len(await events_after(store)) == 2 * len(PETS)
    await store.write(prune_table("events", clock.now - 7 * DAY))
    assert await store.read(Statement("SELECT * FROM feed_start")) == [(1, len(PETS) + 1)]
    assert [event.sequence for event in await events_after(store)] == list(
        range(len(PETS) + 1, 2 * len(PETS) + 1)
    )


async def test_events_of_keys_are_kept_for_two_years_or_longer_like_others(
    store: Store, clock: ManualClock, key: Caller
) -> None:
    await store.write(create_pets(PETS[:1]))
    await store.write(rotate_key(key.id, 0, ME.at(NOW + DAY)))
    await store.write(create_pets(PETS[:1], now=NOW + DAY))
    await store.write(rotate_key(key.id, 0, ME.at(NOW + 2 * DAY)))
    await published(store)
    clock.now = NOW + 730 * DAY + 1
    for days, kept in ((731, [1, 2, 3, 4, 5]), (99, [3, 4, 5])):
        await prune_all(store, clock, days)
        assert await column(store, "events", "sequence") == kept
    clock.now += DAY
    await prune_all(store, clock, 99)
    assert await column(store, "events", "sequence") == [4, 5]
    assert await store.read(Statement("SELECT * FROM feed_start")) == [(1, 4)]


async def test_usage_and_tokens_that_ended_are_kept_for_two_years_and_orders_and_pets_always(
    store: Store, clock: ManualClock, key: Caller
) -> None:
    today = NOW // DAY + 730
    await store.write(used(key, today - 729 - 3 * BATCH // 2, today + 1))
    grace = await store.write(rotate_key(key.id, 0, ME.at(NOW)))
    await store.write(rotate_key(key.id, 730 * DAY, ME.at(NOW)))
    await store.write(create_pets(PETS))
    delivered = "INSERT INTO orders (pet_id, status, placed_at) VALUES (1, 'delivered', ?1)"
    await store.write(do(delivered, NOW))
    clock.now = NOW + 730 * DAY
    await prune_all(store, clock, DAYS_KEPT)
    assert await column(store, "usage", "day") == list(range(today - 730, today + 1))
    assert len(await column(store, "api_key_tokens", "digest")) == 3
    clock.now = NOW + 730 * DAY + 1
    await prune_all(store, clock, DAYS_KEPT)
    ends = await store.read(Statement("SELECT expires_at FROM api_key_tokens"))
    assert sorted(ends, key=str) == [(NOW + 730 * DAY,), (None,)]
    clock.now = NOW + 730 * DAY - 1
    ring = ApiKeyCache(store, clock, "production")
    assert await ring.find(grace.token.encode()) is not None
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

    await asyncio.gather(write(), prune_all(store, clock, DAYS_KEPT))
    assert {2 * BATCH, BATCH} & set(left)


async def test_several_processes_can_prune_at_once(
    store: Store, address: str, clock: ManualClock, key: Caller
) -> None:
    await store.write(create_pets(PETS * 100))
    await store.write(used(key, 0, 2 * BATCH))
    await events_after(store)
    clock.now += 31 * DAY
    async with open_store(address) as other:
        await asyncio.gather(*(prune_all(one, clock, DAYS_KEPT) for one in (store, other) * 2))
    assert await column(store, "usage", "day") == []
    (event,) = await events_after(store, types=EVENT_TYPES)
    assert event.sequence == 100 * len(PETS) + 1
