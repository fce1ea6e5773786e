"""Placing and moving orders, below HTTP."""

import pytest
from msgspec import UNSET

from petstore.databases.contract import Store, Unit
from petstore.errors import IllegalTransition, OrderClosed, PetNotAvailable
from petstore.keys.store import unconditional
from petstore.orders.model import Order, OrderCreate, OrderFilter, OrderPatch, OrderStatus
from petstore.orders.store import cancel_order, get_order, list_orders, place_order, update_order
from petstore.pets.model import NewPet, PetStatus
from petstore.pets.store import delete_pet, get_pet
from support.changes import create_pet
from support.order_rows import order_row
from support.units import by_hand

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]

NOW = 1_000_000
PLACED = order_row(5, 1, "placed", NOW, NOW + 60_000)
CANCELLED = order_row(5, 1, "cancelled", NOW)


async def add(store: Store, status: PetStatus | None = "available") -> None:
    await store.write(create_pet(NewPet("Bella", 7, UNSET if status is None else status)))


def update(status: OrderStatus, order_id: int = 1) -> Unit[Order]:
    return update_order(order_id, OrderPatch(status=status), NOW, unconditional)


async def status_of(store: Store) -> object:
    """Return the status of the animal 1."""
    return (await get_pet(store, 1)).status


# On a database


@pytest.mark.parametrize(
    ("status", "word"), [(None, "without a status"), ("pending", "pending"), ("sold", "sold")]
)
async def test_an_animal_that_is_not_available_cannot_be_ordered(
    store: Store, status: PetStatus | None, word: str
) -> None:
    await add(store, status)
    message = f"^pet 1 is {word}; only an available one can be ordered$"
    with pytest.raises(PetNotAvailable, match=message):
        await store.write(place_order(OrderCreate(1), NOW, 1))
    assert await status_of(store) == (status or UNSET)
    assert (await list_orders(store, OrderFilter(), None, 10)).items == []


async def test_an_ended_order_does_not_change_the_animal_of_another_order(store: Store) -> None:
    await add(store)
    await store.write(place_order(OrderCreate(1), NOW, 1))
    await store.write(update("cancelled"))
    await store.write(place_order(OrderCreate(1), NOW, 1))
    await store.write(cancel_order(1, NOW, unconditional))
    for status in ("approved", "delivered", "cancelled"):
        with pytest.raises(IllegalTransition):
            await store.write(update(status))
    with pytest.raises(OrderClosed):
        await store.write(update_order(1, OrderPatch(ship_date=None), NOW, unconditional))
    assert await status_of(store) == "pending"
    assert (await get_order(store, 2)).status == "placed"


async def test_an_order_is_kept_after_its_animal_is_deleted(store: Store) -> None:
    await add(store)
    await store.write(place_order(OrderCreate(1), NOW, 1))
    await store.write(update("approved"))
    order = await store.write(update("delivered"))
    await store.write(delete_pet(1, 0, unconditional))
    assert await get_order(store, 1) == order
    await add(store)
    assert (await store.write(place_order(OrderCreate(2), NOW, 1))).id == 2


# By hand: what others do between two statements, which SQLite does not let happen


def test_a_change_that_changes_nothing_is_not_written() -> None:
    unit = update_order(5, OrderPatch(ship_date=None), NOW, unconditional)
    assert by_hand(unit, [PLACED]).status == "placed"
    assert by_hand(cancel_order(5, NOW, unconditional), [CANCELLED]) is None


def test_an_order_can_be_approved_in_the_last_millisecond() -> None:
    unit = update_order(5, OrderPatch(status="approved"), NOW + 59_999, unconditional)
    assert by_hand(unit, [PLACED], [], []).status == "approved"
