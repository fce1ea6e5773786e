"""Events: each change is in the feed once, in the order of the commits, and none is early."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext, suppress
from datetime import UTC, datetime, timedelta, timezone
from random import Random
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import pytest
from msgspec.json import decode, encode

from petstore.categories.model import CategoryCreate, CategoryPatch
from petstore.clock import DAY, MINUTE
from petstore.databases.contract import Store, Unit
from petstore.databases.postgres import postgres_sql
from petstore.errors import (
    Conflict,
    IllegalTransition,
    NotFound,
    PetNotAvailable,
    PetReserved,
    PetstoreError,
    Unavailable,
)
from petstore.events.model import EVENT_TYPES, Author, NewEvent, Position
from petstore.events.store import Change, newest_position, publish_all, record
from petstore.orders.model import OrderCreate, OrderFilter, OrderPatch
from petstore.orders.store import cancel_order, free_lapsed, list_orders, place_order, update_order
from petstore.pets.model import NewPet, PetFilter, PetPatch
from petstore.pets.store import delete_pet, list_pets, update_pet
from support.changes import NOW, create_category, create_pet, create_pets, update_category
from support.history import Record, contradictions, events_after, plain, published, read_feed
from support.postgres import PostgresServer, database_name
from support.races import lingering
from support.retention import prune_table
from support.stores import open_store

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]

BELLA = NewPet("Bella", 1, "available")
KEY = Author("key/1", "r-1")
SEARCHED = 2000
"""How many events one search looks at, and one publication takes."""


def change(pet_id: int, patch: PetPatch, now: int = NOW) -> Unit[Any]:
    return update_pet(Change(now, KEY), pet_id, patch)


def move(order_id: int, now: int = NOW, **members: Any) -> Unit[Any]:
    return update_order(Change(now, KEY), order_id, OrderPatch(**members))


def told(pet: int = 1) -> NewEvent:
    return NewEvent("pet.created", f"pet/{pet}", {"id": pet})


def recorded(*events: NewEvent, now: int = NOW) -> Unit[None]:
    yield record(now, *events)


async def sequences(store: Store) -> list[int]:
    return [event.sequence for event in await events_after(store)]


async def test_each_step_of_an_order_is_recorded_with_that_of_its_pet(store: Store) -> None:
    await store.write(create_pet(BELLA))
    await store.write(place_order(Change(NOW, reservation_minutes=1), OrderCreate(1)))
    date = datetime(2027, 1, 1, tzinfo=UTC)
    for zone in (UTC, timezone(timedelta(hours=1))):
        await store.write(move(1, ship_date=date.astimezone(zone)))
    await store.write(move(1, status="approved"))
    await store.write(move(1, status="delivered"))
    events = [plain(event) for event in await events_after(store)]
    assert [*contradictions(events, await everything(store))] == []
    until = {"reservedUntil": "2026-12-01T12:01:00Z"}
    expected: list[tuple[str, Any]] = [
        ("pet.created", None),
        ("order.placed", None),
        ("pet.updated", {"status": "available"}),
        ("order.updated", {"shipDate": None}),
        ("order.updated", {"shipDate": "2027-01-01T00:00:00Z"}),  # the offset is another one
        ("order.approved", {"status": "placed", **until, "approvedAt": None}),
        ("order.delivered", {"status": "approved", "complete": False, "deliveredAt": None}),
        ("pet.updated", {"status": "pending"}),
    ]
    assert [(event["type"], event.get("previous")) for event in events] == expected
    ends = {"status": "delivered", "complete": True, "shipDate": "2027-01-01T01:00:00+01:00"}
    assert events[-2]["data"].items() >= ends.items()


@pytest.mark.parametrize(
    ("name", "end"),
    [
        ("cancelled", lambda: cancel_order(Change(NOW + 1, KEY), 1)),
        ("cancelled", lambda: move(1, NOW + 1, status="cancelled")),
        ("lapsed", lambda: free_lapsed(NOW + MINUTE)),
        ("lapsed", lambda: change(1, PetPatch(name="Max"), NOW + MINUTE)),
        ("lapsed", lambda: cancel_order(Change(NOW + MINUTE, KEY), 1)),
        ("lapsed", lambda: place_order(Change(NOW + MINUTE, KEY), OrderCreate(1))),
    ],
)
async def test_every_kind_of_end_of_a_reservation_is_recorded_first_and_a_lapse_is_of_the_service(
    store: Store, name: str, end: Callable[[], Unit[Any]]
) -> None:
    await store.write(create_pet(BELLA))
    await store.write(place_order(Change(NOW, reservation_minutes=1), OrderCreate(1)))
    await store.write(end())
    await store.write(free_lapsed(NOW + MINUTE))  # it has ended, so this tells nothing
    ended, moved, *more = [plain(event) for event in (await events_after(store))[3:]]
    assert (ended["type"], ended["data"]["status"]) == (f"order.{name}", "cancelled")
    assert (moved["type"], moved["data"]["status"]) == ("pet.updated", "available")
    until = "2026-12-01T12:01:00Z"
    assert ended["previous"] == {"status": "placed", "reservedUntil": until, "cancelledAt": None}
    key = {"type": "key", "id": 1}
    by = {"type": "service"} if name == "lapsed" else key
    assert (ended["actor"], moved["actor"]) == (by, by)
    assert [event["actor"] for event in more] == [key] * len(more)
    assert [event["type"] for event in more] in (
        *([], ["pet.updated"], ["order.placed", "pet.updated"]),
    )


def think_better_of(unit: Unit[Any]) -> Unit[None]:
    yield from unit
    raise Unavailable("not after all")


@pytest.mark.parametrize(
    ("unit", "error"),
    [
        (lambda: change(1, PetPatch(name="Bella", status="pending")), None),
        (lambda: move(1, ship_date=None), None),
        (lambda: update_category(1, CategoryPatch("Dogs")), None),
        (lambda: free_lapsed(NOW), None),
        (lambda: delete_pet(Change(NOW), 1), PetReserved),
        (lambda: place_order(Change(NOW), OrderCreate(1)), PetNotAvailable),
        (lambda: move(1, status="delivered"), IllegalTransition),
        (lambda: think_better_of(create_pet(BELLA)), Unavailable),
        (lambda: think_better_of(place_order(Change(NOW), OrderCreate(2))), Unavailable),
    ],
)
async def test_what_changes_nothing_is_not_recorded_and_leaves_no_gap(
    store: Store, unit: Callable[[], Unit[Any]], error: type[PetstoreError] | None
) -> None:
    await store.write(create_pets([BELLA, BELLA]))
    await store.write(place_order(Change(NOW, reservation_minutes=1), OrderCreate(1)))
    await store.write(create_category(CategoryCreate("Dogs")))
    with nullcontext() if error is None else pytest.raises(error):
        await store.write(unit())
    await store.write(create_pet(BELLA))
    assert await sequences(store) == [1, 2, 3, 4, 5, 6]


async def test_pruning_leaves_no_gap_even_after_clock_skew(store: Store) -> None:
    for now in (NOW, NOW + DAY, NOW, NOW + DAY):
        await store.write(recorded(told(), now=now))
        await published(store)
    assert await store.write(prune_table("events", NOW + 1)) == 1
    assert await sequences(store) == [2, 3, 4]
    assert await store.write(prune_table("events", NOW + 2 * DAY)) == 2
    await store.write(create_pet(BELLA))
    assert await sequences(store) == [4, 5]


# Transactions that overlap, on PostgreSQL


@asynccontextmanager
async def transaction(url: str) -> AsyncIterator[Callable[[Unit[Any]], Any]]:
    """Run units in a transaction that is committed when the block ends."""
    connection = await asyncpg.connect(url)

    async def run(unit: Unit[Any]) -> None:
        for statement in unit:
            await connection.fetch(postgres_sql(statement.sql), *statement.parameters)

    try:
        async with connection.transaction():
            yield run
    finally:
        await connection.close()


@pytest.fixture
async def server(postgres_url: str) -> AsyncIterator[Store]:
    async with open_store(postgres_url) as store:
        yield store


def resources(events: list[Any]) -> list[int]:
    return [int(event.resource.partition("/")[2]) for event in events]


async def test_an_event_that_is_committed_late_is_read_late_and_not_missed(
    server: Store, postgres_url: str
) -> None:
    async with transaction(postgres_url) as first:
        await first(recorded(told(1)))
        await server.write(recorded(told(2)))
        assert resources(await events_after(server)) == [2]
        position = await newest_position(server)
    assert resources(await events_after(server, position)) == [1]
    assert await sequences(server) == [1, 2]


async def test_the_events_of_a_waiting_transaction_follow_the_other_one_together(
    server: Store, postgres_url: str
) -> None:
    async with transaction(postgres_url) as late:
        await late(recorded(told(1)))
        async with transaction(postgres_url) as early:
            await early(recorded(told(2)))
        await late(recorded(told(2)))
    assert resources(await events_after(server)) == [2, 1, 2]


async def test_several_batches_keep_their_order(server: Store, postgres_url: str) -> None:
    """The first transaction is not all among those that are looked at first, nor is the last."""
    async with transaction(postgres_url) as first:
        await first(recorded(told(1)))
        await server.write(recorded(*[told(3)] * (SEARCHED - 2)))
        async with transaction(postgres_url) as last:
            await last(recorded(told(4)))
            await first(recorded(told(2)))
            await last(recorded(*[told(5)] * SEARCHED))
    found = resources(await events_after(server))
    assert found == [3] * (SEARCHED - 2) + [1, 2] + [4] + [5] * SEARCHED
    assert await sequences(server) == list(range(1, 2 * SEARCHED + 2))


ONE = """INSERT INTO events_outbox (id, type, at, resource, data, actor)
    SELECT gen_random_uuid(), 'pet.created', 0, 'pet/1', '{}', 'service'
    FROM generate_series(1, 3000)"""
MANY = f"DO $$ BEGIN FOR n IN 1..3000 LOOP {ONE.replace('3000', '1')}; COMMIT; END LOOP; END $$"


@pytest.mark.parametrize(
    "emptied", ["DELETE FROM events_outbox; ANALYZE", "TRUNCATE events_outbox"]
)
@pytest.mark.parametrize(
    ("before", "now"), [(MANY, ONE), (ONE, MANY)], ids=["now_in_one", "now_in_many"]
)
async def test_outdated_statistics_of_the_outbox_do_not_slow_down_publishing(
    postgres: PostgresServer, postgres_url: str, before: str, now: str, emptied: str
) -> None:
    """Before, it read some of the rows once for each other one, and never ended in time."""
    for statements in (before, "ANALYZE", emptied, now):
        postgres.sql(statements, database_name(postgres_url))
    earlier = rows_read(postgres, postgres_url)
    async with open_store(postgres_url) as store:
        await publish_all(store)
    assert rows_read(postgres, postgres_url) - earlier < 20 * 3000


def rows_read(postgres: PostgresServer, url: str) -> int:
    select = (
        "SELECT (SELECT seq_tup_read FROM pg_stat_user_tables WHERE relname = 'events_outbox')"
        " + (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname = 'events_outbox')"
    )
    return int(postgres.sql(select, database_name(url)))


async def test_concurrent_writers_and_publishers_keep_each_change_once_and_in_order(
    postgres_url: str,
) -> None:
    """Two walkers read meanwhile, and agree with each other and with a walk afterwards."""
    async with AsyncExitStack() as opened:
        stores = [await opened.enter_async_context(open_store(postgres_url)) for _ in range(3)]
        await stores[0].write(create_pets([BELLA] * 6))
        ended, published_all = asyncio.Event(), asyncio.Event()
        publishers = [asyncio.create_task(publish_until(store, ended)) for store in stores]
        walkers = [asyncio.create_task(walk_until(store, published_all)) for store in stores[:2]]
        await asyncio.gather(*(work(stores[number % 3], seed=number) for number in range(32)))
        ended.set()
        await asyncio.gather(*publishers)
        published_all.set()
        walked = await asyncio.gather(*walkers)
        events = [plain(event) for event in await events_after(stores[0])]
        assert [*contradictions(events, await everything(stores[0]))] == []
    assert walked == [[event["sequence"] for event in events]] * 2
    assert {event["type"] for event in events} >= {"order.placed", "order.cancelled"}


async def publish_until(store: Store, ended: asyncio.Event) -> None:
    while not ended.is_set():
        await publish_all(store)
        await asyncio.sleep(0)
    await publish_all(store)


async def walk_until(store: Store, ended: asyncio.Event) -> list[int]:
    found: list[int] = []
    after: Position | None = None
    while True:
        had_ended = ended.is_set()
        page = await read_feed(store, EVENT_TYPES, 1, after, 20)
        found += [event.sequence for event in page.events]
        after = page.position
        if had_ended and not page.events:
            return found
        await asyncio.sleep(0)


async def work(store: Store, seed: int) -> None:
    """Change the same few pets as everybody else, slowly, whatever is refused."""
    random = Random(seed)  # noqa: S311 - what is drawn is no secret
    units = (
        lambda: place_order(Change(NOW), OrderCreate(random.randint(1, 6))),
        lambda: place_order(Change(NOW), OrderCreate(random.randint(1, 6), complete=True)),
        lambda: move(random.randint(1, 9), status="approved"),
        lambda: cancel_order(Change(NOW), random.randint(1, 9)),
        lambda: change(random.randint(1, 6), PetPatch(category_id=random.randint(1, 9))),
        lambda: create_pet(BELLA),
    )
    for _ in range(12):
        with suppress(NotFound, Conflict, PetNotAvailable):
            await store.write(lingering(random.choice(units)()))


async def everything(store: Store) -> dict[str, Record]:
    pets = (await list_pets(store, PetFilter(), None, 1000)).items
    orders = (await list_orders(store, OrderFilter(), None, 1000)).items
    told = {f"pet/{pet.id}": decode(encode(pet)) for pet in pets}
    return told | {f"order/{order.id}": decode(encode(order)) for order in orders}
