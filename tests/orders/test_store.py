"""Placing and moving orders, below HTTP."""

import asyncio
from contextlib import suppress

import pytest
from msgspec import UNSET

from petstore.clock import utc
from petstore.databases.contract import Statement, Store, Unit
from petstore.databases.postgres import PostgresStore
from petstore.errors import IllegalTransition, OrderClosed, PetNotAvailable
from petstore.events.store import Change
from petstore.orders.model import Order, OrderCreate, OrderFilter, OrderPatch, OrderStatus
from petstore.orders.store import cancel_order, get_order, list_orders, place_order, update_order
from petstore.pets.model import NewPet, PetPatch, PetStatus
from petstore.pets.store import delete_pet, get_pet, update_pet
from support.changes import create_pet
from support.history import events_after, plain
from support.order_rows import order_row
from support.races import lingering
from support.units import by_hand

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]

NOW = 1_000_000
PLACED = order_row(5, 1, "placed", NOW, NOW + 60_000)
CANCELLED = order_row(5, 1, "cancelled", NOW)


async def add(store: Store, status: PetStatus | None = "available") -> None:
    await store.write(create_pet(NewPet("Bella", 7, UNSET if status is None else status)))


def update(status: OrderStatus, order_id: int = 1) -> Unit[Order]:
    return update_order(Change(NOW), order_id, OrderPatch(status=status))


async def status_of(store: Store) -> object:
    """Return the status of the pet 1."""
    return (await get_pet(store, 1)).status


# On a database


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


async def test_an_ended_order_does_not_change_the_pet_of_another_order(store: Store) -> None:
    await add(store)
    await store.write(place_order(Change(NOW, reservation_minutes=1), OrderCreate(1)))
    await store.write(update("cancelled"))
    await store.write(place_order(Change(NOW, reservation_minutes=1), OrderCreate(1)))
    await store.write(cancel_order(Change(NOW), 1))
    for status in ("approved", "delivered", "cancelled"):
        with pytest.raises(IllegalTransition):
            await store.write(update(status))
    with pytest.raises(OrderClosed):
        await store.write(update_order(Change(NOW), 1, OrderPatch(ship_date=None)))
    assert await status_of(store) == "pending"
    assert (await get_order(store, 2)).status == "placed"


async def test_an_order_is_kept_after_its_pet_is_deleted(store: Store) -> None:
    await add(store)
    await store.write(place_order(Change(NOW, reservation_minutes=1), OrderCreate(1)))
    await store.write(update("approved"))
    order = await store.write(update("delivered"))
    await store.write(delete_pet(Change(0), 1))
    assert await get_order(store, 1) == order
    await add(store)
    assert (
        await store.write(place_order(Change(NOW, reservation_minutes=1), OrderCreate(2)))
    ).id == 2


# By hand: what others do between two statements, which SQLite does not let happen


def test_a_change_that_changes_nothing_is_not_written() -> None:
    unit = update_order(Change(NOW), 5, OrderPatch(ship_date=None))
    assert by_hand(unit, [PLACED]).status == "placed"
    assert by_hand(cancel_order(Change(NOW), 5), [CANCELLED]) is None


def test_an_order_can_be_approved_in_the_last_millisecond() -> None:
    unit = update_order(Change(NOW + 59_999), 5, OrderPatch(status="approved"))
    assert by_hand(unit, [PLACED], [], []).status == "approved"


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


async def test_a_sale_over_the_counter_delivers_the_order_and_sells_the_pet(
    store: Store,
) -> None:
    await add(store)
    sold = await store.write(
        place_order(Change(NOW, reservation_minutes=1, currency="EUR"), sale())
    )
    assert sold == await get_order(store, 1)
    assert (sold.status, sold.complete, sold.amount, sold.currency) == (
        *("delivered", True, 500, "EUR"),
    )
    assert sold.placed_at == sold.delivered_at == utc(NOW)
    assert (sold.approved_at, sold.reserved_until) == (UNSET, UNSET)
    assert await status_of(store) == "sold"
    with pytest.raises(PetNotAvailable, match=r"^pet 1 is sold; "):
        await store.write(place_order(Change(NOW), sale()))
    assert await events_of(store) == [
        ("order.delivered", "order/1", "delivered", None),
        ("pet.updated", "pet/1", "sold", {"status": "available"}),
    ]


async def test_a_pet_whose_reservation_has_lapsed_can_be_sold(store: Store) -> None:
    await add(store)
    await store.write(place_order(Change(NOW, reservation_minutes=1), OrderCreate(1)))
    assert (
        await store.write(place_order(Change(NOW + 60_000, reservation_minutes=1), sale()))
    ).id == 2
    ended = await get_order(store, 1)
    assert (ended.status, ended.cancelled_at) == ("cancelled", utc(NOW + 60_000))


async def test_an_undone_sale_is_cancelled_and_its_pet_available(store: Store) -> None:
    await add(store)
    await store.write(place_order(Change(NOW, reservation_minutes=1), sale()))
    undo = OrderPatch(status="cancelled", cancel_reason="Wrong pet")
    undone = await store.write(update_order(Change(NOW + 59_999), 1, undo))
    assert undone == await get_order(store, 1)
    assert (undone.status, undone.complete, undone.delivered_at) == ("cancelled", False, UNSET)
    assert (undone.cancelled_at, undone.cancel_reason) == (utc(NOW + 59_999), "Wrong pet")
    assert await status_of(store) == "available"
    previous = {
        "status": "delivered",
        "complete": True,
        "deliveredAt": "1970-01-01T00:16:40Z",
        "cancelledAt": None,
    }
    assert (await events_of(store))[2:] == [
        ("order.cancelled", "order/1", "cancelled", previous),
        ("pet.updated", "pet/1", "available", {"status": "sold"}),
    ]


async def test_a_sale_is_final_after_a_minute_and_is_never_deleted(store: Store) -> None:
    await add(store)
    await store.write(place_order(Change(NOW, reservation_minutes=1), sale()))
    with pytest.raises(IllegalTransition):
        await store.write(cancel_order(Change(NOW), 1))
    late = update_order(Change(NOW + 60_000), 1, OrderPatch(status="cancelled"))
    with pytest.raises(IllegalTransition):
        await store.write(late)
    assert await status_of(store) == "sold"


@pytest.mark.parametrize("after", ["available", "pending", "sold again", "deleted"])
async def test_undoing_a_sale_leaves_a_pet_with_which_more_has_happened(
    store: Store, after: str
) -> None:
    await add(store)
    await store.write(place_order(Change(NOW, reservation_minutes=1), sale()))
    back = PetPatch(status="available")
    await store.write(update_pet(Change(NOW), 1, back))
    if after == "pending":
        await store.write(place_order(Change(NOW, reservation_minutes=1), OrderCreate(1)))
    elif after == "sold again":
        await store.write(place_order(Change(NOW, reservation_minutes=1), sale("Anna")))
    elif after == "deleted":
        await store.write(delete_pet(Change(NOW), 1))
    count = len(await events_of(store))
    undo = OrderPatch(status="cancelled")
    undone = await store.write(update_order(Change(NOW), 1, undo))
    assert undone.status == "cancelled"
    assert [kind for kind, *_ in await events_of(store)][count:] == ["order.cancelled"]
    if after != "deleted":
        assert await status_of(store) == after.removesuffix(" again")


# What a sale leaves


async def test_events_have_neither_buyer_nor_note(store: Store) -> None:
    await add(store)
    await store.write(
        place_order(Change(NOW, reservation_minutes=1), OrderCreate(1, buyer="Jane", note="Hi"))
    )
    for patch in (
        OrderPatch(buyer="Anna"),
        OrderPatch(note="Hello", amount=5),
        OrderPatch(status="approved", buyer=None),
        OrderPatch(status="cancelled", note=None),
    ):
        await store.write(update_order(Change(NOW), 1, patch))
    told = [plain(event) for event in await events_after(store)]
    assert not [event for event in told if {"buyer", "note"} & event["data"].keys()]
    changes = [event for event in told if event["resource"] == "order/1"][1:]
    previous = [event["previous"] for event in changes]
    assert previous[:2] == [{}, {"amount": None, "currency": None}]
    assert not [each for each in previous if {"buyer", "note"} & each.keys()]


async def test_the_category_of_a_sale_is_that_of_the_pet_at_its_time(store: Store) -> None:
    await add(store)
    await store.write(place_order(Change(NOW), OrderCreate(1)))
    for status in ("approved", "delivered"):
        await store.write(update(status))
    moved_on = PetPatch(category_id=8)
    await store.write(update_pet(Change(NOW), 1, moved_on))
    await store.write(update_order(Change(NOW), 1, OrderPatch(note="Late")))
    assert await store.read(Statement("SELECT category_id FROM orders")) == [(7,)]


@pytest.mark.parametrize("undoes", [False, True])
async def test_racing_sales_and_undos_leave_one_buyer(store: Store, *, undoes: bool) -> None:
    await add(store)
    await store.write(place_order(Change(NOW, reservation_minutes=1), sale()))
    if undoes:
        back = PetPatch(status="available")
        await store.write(update_pet(Change(NOW), 1, back))

    async def attempt(unit: Unit[object]) -> None:
        with suppress(PetNotAvailable, IllegalTransition):
            await store.write(lingering(unit) if isinstance(store, PostgresStore) else unit)

    undo = OrderPatch(status="cancelled")
    await asyncio.gather(
        attempt(update_order(Change(NOW), 1, undo)),
        *(
            attempt(place_order(Change(NOW, reservation_minutes=1), sale(f"Anna {n}")))
            for n in range(5)
        ),
    )
    orders = (await list_orders(store, OrderFilter(), None, 10)).items
    sold = [order for order in orders if order.status == "delivered"]
    assert await status_of(store) == ("sold" if sold else "available")
    assert len(sold) <= 1
