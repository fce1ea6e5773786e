"""Orders below HTTP: how they are placed and move, are found, lapse, and forget their buyers."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET, UnsetType

from petstore.clock import DAY, MINUTE, utc
from petstore.databases.contract import Row, Statement, Store, Unit
from petstore.databases.postgres import PostgresStore
from petstore.errors import IllegalTransition, PetNotAvailable, Unavailable
from petstore.events.model import Author
from petstore.events.store import Change
from petstore.orders.buyers import Forgotten, forget_buyer, forget_old_buyers
from petstore.orders.model import Order, OrderCreate, OrderFilter, OrderPatch, OrderStatus
from petstore.orders.store import (
    ORDERS_BY_WORD,
    Reservations,
    cancel_order,
    get_order,
    list_delivered,
    list_orders,
    place_order,
    search_orders,
    update_order,
)
from petstore.pets.model import Inventory, NewPet, PetPatch, PetStatus
from petstore.pets.store import delete_pet, get_inventory, get_pet, update_pet
from support.changes import create_pet, create_pets
from support.history import events_after, plain
from support.manual_clock import ManualClock
from support.races import by_hand, lingering
from support.rows import order_row
from support.stores import do, locked, open_store

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]

NOW = 1_000_000
NOON = ManualClock().now
PLACED = order_row(5, 1, "placed", NOW, NOW + 60_000)
CANCELLED = order_row(5, 1, "cancelled", NOW)


async def add(store: Store, status: PetStatus | None = "available") -> None:
    await store.write(create_pet(NewPet("Bella", 7, UNSET if status is None else status)))


def update(status: OrderStatus, order_id: int = 1) -> Unit[Order]:
    return update_order(Change(NOW), order_id, OrderPatch(status=status))


async def status_of(store: Store) -> object:
    """Return the status of the pet 1."""
    return (await get_pet(store, 1)).status


@pytest.mark.parametrize(
    ("status", "word"), [(None, "without a status"), ("pending", "pending"), ("sold", "sold")]
)
async def test_a_pet_that_is_not_available_cannot_be_ordered(
    store: Store, status: PetStatus | None, word: str
) -> None:
    await add(store, status)
    message = f"^pet 1 is {word}; only an available one can be ordered$"
    with pytest.raises(PetNotAvailable, match=message):
        await store.write(place_order(Change(NOW, reservation_minutes=1), OrderCreate(1)))
    assert await status_of(store) == (status or UNSET)
    assert (await list_orders(store, OrderFilter(), None, 10)).items == []


# By hand: what others do between two statements, which SQLite does not let happen


def test_a_change_that_changes_nothing_is_not_written() -> None:
    unit = update_order(Change(NOW), 5, OrderPatch(ship_date=None))
    assert by_hand(unit, [PLACED]).status == "placed"
    assert by_hand(cancel_order(Change(NOW), 5), [CANCELLED]) is None


def test_a_pet_that_becomes_available_during_the_order_can_be_ordered() -> None:
    unit = place_order(Change(0), OrderCreate(1))
    tried = next(unit)
    unit.send([])  # it is not
    unit.send([])  # nor has an order for it lapsed
    assert unit.send([("available",)]) == tried
    unit.send([(1, "Bella", 7, "pending")])
    unit.send([(5,)])
    with pytest.raises(StopIteration) as placed:
        unit.send([])
    assert placed.value.value.id == 5


# Over the counter


async def events_of(store: Store) -> list[tuple[object, ...]]:
    """Return type, resource, status and previous of all events but the first."""
    events = [plain(event) for event in await events_after(store)][1:]
    return [(e["type"], e["resource"], e["data"]["status"], e.get("previous")) for e in events]


def sale(buyer: str = "Jane") -> OrderCreate:
    return OrderCreate(1, buyer=buyer, note="Paid.", amount=500, complete=True)


RETURN = OrderPatch(status="returned", return_reason="Wrong pet")


async def test_a_sale_and_its_return_move_the_pet_and_are_in_the_feed(store: Store) -> None:
    await add(store)
    unit = place_order(Change(NOW, reservation_minutes=1, currency="EUR"), sale())
    sold = await store.write(unit)
    assert sold == await get_order(store, 1)
    assert (sold.amount, sold.currency, sold.approved_at) == (500, "EUR", UNSET)
    assert await status_of(store) == "sold"
    with pytest.raises(PetNotAvailable, match=r"^pet 1 is sold; "):
        await store.write(place_order(Change(NOW), sale()))
    returned = await store.write(update_order(Change(NOW + DAY), 1, RETURN))
    assert returned == await get_order(store, 1)
    assert (returned.status, returned.complete, returned.refund) == ("returned", True, 500)
    assert (returned.delivered_at, returned.returned_at) == (utc(NOW), utc(NOW + DAY))
    assert await status_of(store) == "available"
    previous = {"status": "delivered", "returnedAt": None, "refund": None}
    assert await events_of(store) == [
        ("order.delivered", "order/1", "delivered", None),
        ("pet.updated", "pet/1", "sold", {"status": "available"}),
        ("order.returned", "order/1", "returned", previous),
        ("pet.updated", "pet/1", "available", {"status": "sold"}),
    ]
    with pytest.raises(IllegalTransition):
        await store.write(cancel_order(Change(NOW), 1))


@pytest.mark.parametrize(
    ("after", "status"),
    [
        ("available", "available"),
        ("reserved", "pending"),
        ("sold again", "sold"),
        ("reserved, cancelled and sold by hand", "available"),
        ("deleted", None),
    ],
)
async def test_a_return_leaves_a_pet_that_another_order_has(
    store: Store, after: str, status: str | None
) -> None:
    await add(store)
    await store.write(place_order(Change(NOW), sale()))
    await store.write(update_pet(Change(NOW), 1, PetPatch(status="available")))
    if after.startswith("reserved"):
        await store.write(place_order(Change(NOW), OrderCreate(1)))
    if after.endswith("by hand"):
        await store.write(cancel_order(Change(NOW), 2))
        await store.write(update_pet(Change(NOW), 1, PetPatch(status="sold")))
    elif after == "sold again":
        await store.write(place_order(Change(NOW), sale("Anna")))
    elif after == "deleted":
        await store.write(delete_pet(Change(NOW), 1))
    count = len(await events_of(store))
    assert (await store.write(update_order(Change(NOW), 1, RETURN))).status == "returned"
    kinds = [kind for kind, *_ in await events_of(store)][count:]
    assert kinds == ["order.returned", "pet.updated"][: 1 + after.endswith("by hand")]
    if status is not None:
        assert await status_of(store) == status


# What a sale leaves


async def test_the_category_of_a_sale_is_that_of_the_pet_at_its_time(store: Store) -> None:
    await add(store)
    await store.write(place_order(Change(NOW), OrderCreate(1)))
    for status in ("approved", "delivered"):
        await store.write(update(status))
    moved_on = PetPatch(category_id=8)
    await store.write(update_pet(Change(NOW), 1, moved_on))
    await store.write(update_order(Change(NOW), 1, OrderPatch(note="Late")))
    assert await store.read(Statement("SELECT category_id FROM orders")) == [(7,)]


async def race(store: Store, *units: Unit[object]) -> list[bool]:
    """Run units at the same time; return which of them were not refused."""

    async def attempt(unit: Unit[object]) -> bool:
        with suppress(PetNotAvailable, IllegalTransition):
            await store.write(lingering(unit) if isinstance(store, PostgresStore) else unit)
            return True
        return False

    return await asyncio.gather(*map(attempt, units))


@pytest.mark.parametrize("is_free", [False, True])
async def test_racing_sales_and_returns_leave_one_buyer(store: Store, *, is_free: bool) -> None:
    await add(store)
    await store.write(place_order(Change(NOW), sale()))
    if is_free:
        await store.write(update_pet(Change(NOW), 1, PetPatch(status="available")))
    sales = [place_order(Change(NOW), sale(f"Anna {n}")) for n in range(5)]
    await race(store, update_order(Change(NOW), 1, RETURN), *sales)
    orders = (await list_orders(store, OrderFilter(), None, 10)).items
    sold = [order for order in orders if order.status == "delivered"]
    assert await status_of(store) == ("sold" if sold else "available")
    assert len(sold) <= 1


async def test_of_two_returns_and_a_deletion_at_once_one_return_succeeds(store: Store) -> None:
    await add(store)
    await store.write(place_order(Change(NOW), sale()))
    one, other = (update_order(Change(NOW), 1, RETURN) for _ in range(2))
    *returns, is_deleted = await race(store, one, other, delete_pet(Change(NOW), 1))
    assert (sorted(returns), is_deleted) == ([False, True], True)
    assert [kind for kind, *_ in await events_of(store)].count("order.returned") == 1


# By delivery


async def test_delivered_orders_are_listed_by_delivery(store: Store) -> None:
    for moment in (NOW + 5, NOW + 3, NOW + 3, NOW + 9):
        await add(store)
        count = len((await list_orders(store, OrderFilter(), None, 10)).items)
        await store.write(place_order(Change(moment), OrderCreate(count + 1, complete=True)))
    await store.write(update_order(Change(NOW + 10), 2, RETURN))
    await add(store)
    await store.write(place_order(Change(NOW), OrderCreate(5)))

    async def listed(wanted: OrderFilter, limit: int = 10) -> list[int]:
        found, ids, after = await list_delivered(store, wanted, None, limit), list[int](), None
        while True:
            orders, after = found
            ids += [order.id for order in orders]
            if after is None:
                return ids
            found = await list_delivered(store, wanted, after, limit)

    everything = OrderFilter(delivered_since=utc(0))
    for limit in (1, 2, 10):
        assert await listed(everything, limit) == [4, 1, 3, 2]
    assert await listed(OrderFilter("delivered", delivered_since=utc(0)), 1) == [4, 1, 3]
    assert await listed(OrderFilter(delivered_since=utc(NOW + 5))) == [4, 1]
    assert await listed(OrderFilter(delivered_before=utc(NOW + 5))) == [3, 2]
    since, before = utc(NOW + 3), utc(NOW + 9)
    assert await listed(OrderFilter(pet_id=1, delivered_since=since, delivered_before=before)) == [
        1
    ]


# Searches, and orders placed before a moment


async def place_each(store: Store, *buyers: str) -> None:
    """Place an order for each buyer, one minute after the other; the first pet has number 1."""
    await store.write(create_pets([NewPet("Bella", 1, "available")] * len(buyers)))
    for number, buyer in enumerate(buyers):
        new = OrderCreate(number + 1, buyer=buyer)
        await store.write(place_order(Change(NOON + number * MINUTE), new))


async def ids(store: Store, wanted: OrderFilter, limit: int, *, newest_first: bool) -> list[int]:
    """Return the ids of all pages of a list."""
    found: list[int] = []
    after: int | None = None
    while True:
        page = await list_orders(store, wanted, after, limit, newest_first=newest_first)
        found += [order.id for order in page.items]
        after = page.next_after
        if after is None:
            return found


async def test_another_buyer_is_found_instead(store: Store) -> None:
    await place_each(store, "Jane", "Jane", "Jane")
    for buyer, ids_of_j, ids_of_z in (("Zoë", [1, 3], [2]), (None, [1, 3], [])):
        await store.write(update_order(Change(NOON), 2, OrderPatch(buyer=buyer)))
        for text, found in (("j", ids_of_j), ("zo", ids_of_z)):
            page = await search_orders(store, text, OrderFilter(), None, 10)
            assert [order.id for order in page.items] == found


@pytest.mark.parametrize("newest_first", [False, True])
@pytest.mark.parametrize("limit", [1, 2, 100])
async def test_orders_placed_before_a_moment_are_listed(
    store: Store, limit: int, *, newest_first: bool
) -> None:
    await place_each(store, *["Jane"] * 12)
    await store.write(update_order(Change(NOON), 2, OrderPatch(status="approved")))
    tick = timedelta(microseconds=1)
    for moment, first in (
        *((utc(NOON), 0), (utc(NOON) + tick, 1), (utc(NOON + 3 * MINUTE), 3)),
        *((utc(NOON + 3 * MINUTE) - tick, 3), (utc(NOON + 3 * MINUTE + 1), 4)),
        *((utc(253_402_300_799_999), 12), (utc(-62_135_596_800_000), 0)),
    ):
        wanted = range(1, first + 1)
        statuses: dict[OrderStatus | UnsetType, set[int]] = {
            UNSET: {*wanted},
            "placed": {*wanted} - {2},
            "approved": {*wanted} & {2},
        }
        for status, expected in statuses.items():
            filters = OrderFilter(status, placed_before=moment)
            found = await ids(store, filters, limit, newest_first=newest_first)
            assert found == sorted(expected, reverse=newest_first), (moment, status)


async def test_a_clock_may_be_minutes_late(store: Store) -> None:
    await place_each(store, "Jane", "Jane")
    await store.write(do("UPDATE orders SET placed_at = placed_at - 240000 WHERE id = 2"))
    for newest_first in (False, True):
        wanted = OrderFilter(placed_before=utc(NOON))
        assert await ids(store, wanted, 1, newest_first=newest_first) == [2]


async def test_the_last_page_does_not_look_at_all_later_orders(store: Store) -> None:
    await store.write(
        do(
            "INSERT INTO orders (pet_id, status, placed_at)"
            " WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers"
            " WHERE n < 500) SELECT n, 'cancelled', n * 60000 FROM numbers"
        )
    )
    wanted = OrderFilter("cancelled", placed_before=utc(3 * MINUTE))
    page = await list_orders(store, wanted, None, 20)
    assert ([order.id for order in page.items], page.next_after) == ([1, 2], None)


# Reservations that lapse


@pytest.fixture
def reservations(store: Store, clock: ManualClock) -> Reservations:
    return Reservations(store, clock)


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a lapse take as long as a busy machine does."""
    monkeypatch.setattr("petstore.orders.store._TIMEOUT", 30)


@pytest.fixture
async def other(address: str) -> AsyncIterator[Store]:
    """Another service's connection to the same database."""
    async with open_store(address) as other:
        yield other


def place_all(count: int, now: int, minutes: int) -> Unit[None]:
    """Add so many pets and order each."""
    yield from create_pets([NewPet("Bella", 1, "available")] * count)
    for pet_id in range(1, count + 1):
        yield from place_order(Change(now, reservation_minutes=minutes), OrderCreate(pet_id))


async def order_status(store: Store, order_id: int = 1) -> str:
    return (await get_order(store, order_id)).status


@pytest.mark.usefixtures("unhurried")
async def test_a_reservation_that_is_made_during_a_refresh_lapses_in_time(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    reservations = Reservations(store, clock)
    read = store.read

    async def read_before_an_order(statement: Statement) -> list[Row]:
        rows = await read(statement)
        await store.write(place_all(1, clock(), 1))
        reservations.note(clock() + MINUTE)
        return rows

    with monkeypatch.context() as patch:
        patch.setattr(store, "read", read_before_an_order)
        await reservations.refresh()
    clock.now += MINUTE
    assert reservations.are_due()
    await reservations.settle()
    assert await order_status(store) == "cancelled"
    for until in (clock() + 3, clock() + 2, clock() + 4):
        reservations.note(until)
    for is_due in (False, True):
        clock.now += 1
        assert reservations.are_due() is is_due


@pytest.mark.parametrize("timeout_ms", [60_000])  # what lapses is ordered in one unit of work
async def test_many_reservations_can_lapse_at_once(
    store: Store, clock: ManualClock, reservations: Reservations
) -> None:
    await store.write(place_all(300, clock(), 1))  # more than a batch
    clock.now += MINUTE
    await reservations.refresh()
    assert await get_inventory(store) == Inventory(available=300)
    assert not reservations.are_due()


async def test_only_due_reservations_lapse(
    store: Store, clock: ManualClock, reservations: Reservations
) -> None:
    await store.write(create_pets([NewPet("Bella", 1, "available")] * 4))
    for pet_id, minutes in ((1, 1), (2, 2), (3, 0), (4, 1)):
        await store.write(
            place_order(Change(clock(), reservation_minutes=minutes), OrderCreate(pet_id))
        )
    await store.write(update_order(Change(0), 4, OrderPatch(status="approved")))
    for passed, statuses in (
        (1, ["cancelled", "placed", "placed", "approved"]),
        (1, ["cancelled", "cancelled", "placed", "approved"]),
        (100 * 365 * 24 * 60, ["cancelled", "cancelled", "placed", "approved"]),
    ):
        clock.now += passed * MINUTE
        await reservations.refresh()
        assert [await order_status(store, order_id) for order_id in (1, 2, 3, 4)] == statuses
    assert await get_inventory(store) == Inventory(available=2, pending=2)


@pytest.mark.usefixtures("unhurried")
async def test_a_pet_released_by_another_process_is_not_released_again(
    store: Store, clock: ManualClock, reservations: Reservations, other: Store
) -> None:
    await store.write(place_all(1, clock(), 1))
    await reservations.refresh()
    clock.now += MINUTE
    await Reservations(other, clock).refresh()
    await other.write(place_order(Change(clock(), reservation_minutes=1), OrderCreate(1)))
    assert reservations.are_due()
    await reservations.settle()
    assert not reservations.are_due()
    assert await order_status(store, 2) == "placed"
    assert await get_inventory(store) == Inventory(pending=1)


async def test_a_lapse_is_retried_later_while_the_database_refuses_changes(
    store: Store,
    database: Path,
    clock: ManualClock,
    reservations: Reservations,
    caplog: pytest.LogCaptureFixture,
) -> None:
    await store.write(place_all(1, clock(), 1))
    await reservations.refresh()
    clock.now += MINUTE
    with locked(database, store):
        await reservations.settle()
        assert "lapsed reservations were not released: " in caplog.text
        assert not reservations.are_due()
        with pytest.raises(Unavailable):
            await reservations.refresh()
    await reservations.refresh()
    assert await order_status(store) == "cancelled"


# Personal data: forgotten when it is old, or on request


async def sell(store: Store, *buyers: str, complete: bool = True, **others: Any) -> None:
    """Sell a pet to each buyer, over the counter; or place an order."""
    pets = await store.write(create_pets([NewPet("Bella", 1, "available")] * len(buyers)))
    for pet, buyer in zip(pets, buyers, strict=True):
        new = OrderCreate(pet.id, buyer=buyer, complete=complete, **others)
        await store.write(place_order(Change(NOON), new))


async def personal(store: Store) -> dict[int, tuple[object, object]]:
    """Return buyer and note of the orders that have one, or a reason."""
    page = await list_orders(store, OrderFilter(), None, 1000)
    known = (one for one in page.items if one.buyer or one.note or one.cancel_reason)
    return {one.id: (one.buyer, one.note) for one in known}


async def forget(store: Store, buyer: str, clock: ManualClock) -> Forgotten:
    return await forget_buyer(store, buyer, clock, Author("key/7"))


async def test_a_buyer_is_forgotten_in_closed_orders_in_any_case(
    store: Store, clock: ManualClock
) -> None:
    await sell(store, "Jane Doe", "JANE DOE", "Jäne Doe", "Jane Doe Smith", note="Hi")
    await sell(store, "Jane Doe", "Jane Doe", complete=False)
    await store.write(update_order(Change(NOON), 6, OrderPatch(status="cancelled")))
    assert await forget(store, "jane doe", clock) == (3, 1)
    kept = {3: ("Jäne Doe", "Hi"), 4: ("Jane Doe Smith", "Hi"), 5: ("Jane Doe", UNSET)}
    assert await personal(store) == kept
    await sell(store, *["Jane Doe"] * 201)
    assert await forget(store, "JANE DOE", clock) == (201, 1)
    assert await personal(store) == kept


async def test_a_forgotten_buyer_is_nowhere_in_the_database(
    address: str, tmp_path: Path, clock: ManualClock
) -> None:
    returned = OrderPatch(status="returned", return_reason="Jane Doe moved to Elm Street")
    tables = ("orders", "order_words", "order_words_queue", "events")
    async with open_store(address) as store:
        await sell(store, "Jane Doe", note="Elm Street 9, " * 70)
        await sell(store, "Anna")
        await store.write(update_order(Change(NOON), 1, returned))
        await ORDERS_BY_WORD.update(store)
        assert await forget(store, "Jane Doe", clock) == (1, 0)
        *_, told = [plain(event) for event in await events_after(store)]
        rows = [await store.read(Statement(f"SELECT * FROM {table}")) for table in tables]  # noqa: S608
    assert (told["type"], told["resource"], told["previous"]) == ("order.updated", "order/1", {})
    assert told["actor"] == {"type": "key", "id": 7}
    files = [path.read_bytes() for path in tmp_path.iterdir() if path.is_file()]
    content = b"".join((str(rows).encode(), *files))
    found = (text for text in (b"Jane", b"jane", b"doe", b"Elm Street", b"Anna") if text in content)
    assert [*found] == [b"Anna"]


@pytest.mark.parametrize("days", [0, 30])
async def test_old_buyers_are_forgotten_after_the_days_of_the_setting(
    store: Store, clock: ManualClock, days: int
) -> None:
    await sell(store, "Jane")
    await sell(store, "Anna", complete=False, note="Hi")
    await sell(store, "Zoe", complete=False)
    clock.now = NOON + DAY
    cancel = OrderPatch(status="cancelled", cancel_reason="Moved")
    await store.write(update_order(Change(clock()), 2, cancel))
    clock.now = NOON + 30 * DAY
    await forget_old_buyers(store, clock, days)
    assert [*await personal(store)] == [1, 2, 3]
    clock.now += 1
    await forget_old_buyers(store, clock, days)
    assert [*await personal(store)] == ([2, 3] if days else [1, 2, 3])
    clock.now += 300 * DAY
    await forget_old_buyers(store, clock, days)
    assert [*await personal(store)] == ([3] if days else [1, 2, 3])
