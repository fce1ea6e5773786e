"""Reservations that have lapsed and were not settled in time: no change to their pet waits."""

from collections.abc import AsyncIterator

import pytest

from petstore.clock import MINUTE
from petstore.databases.contract import Store, Unit
from petstore.errors import IllegalTransition, NotFound, PetNotAvailable, PetReserved
from petstore.events.store import Change
from petstore.orders.model import OrderCreate, OrderPatch, OrderStatus
from petstore.orders.store import cancel_order, get_order, place_order, update_order
from petstore.pets.model import Inventory, NewPet, Pet, PetPatch, PetStatus
from petstore.pets.store import delete_pet, get_inventory, get_pet, update_pet
from support.changes import create_pet
from support.stores import open_store

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]

PLACED_AT = 1_000_000
LAPSED = PLACED_AT + MINUTE
IN_TIME = LAPSED - 1


@pytest.fixture
async def store(address: str) -> AsyncIterator[Store]:
    """A store with a pet that the order 1 holds for a minute."""
    async with open_store(address) as store:
        await store.write(create_pet(NewPet("Bella", 7, "available")))
        await store.write(place_order(Change(PLACED_AT, reservation_minutes=1), OrderCreate(1)))
        yield store


def update(patch: PetPatch, now: int) -> Unit[Pet]:
    return update_pet(Change(now), 1, patch)


async def statuses_of_orders(store: Store, *order_ids: int) -> list[OrderStatus]:
    return [(await get_order(store, order_id)).status for order_id in order_ids]


async def test_another_buyer_can_order_the_pet_only_after_the_lapse(store: Store) -> None:
    with pytest.raises(PetNotAvailable):
        await store.write(place_order(Change(IN_TIME, reservation_minutes=1), OrderCreate(1)))
    order = await store.write(place_order(Change(LAPSED, reservation_minutes=1), OrderCreate(1)))
    assert await statuses_of_orders(store, 1, order.id) == ["cancelled", "placed"]
    assert await get_inventory(store) == Inventory(pending=1)


async def test_the_pet_changes_from_available_only_after_the_lapse(store: Store) -> None:
    with pytest.raises(PetReserved):
        await store.write(update(PetPatch(status=None), IN_TIME))
    changed = await store.write(update(PetPatch(status=None), LAPSED))
    assert changed == Pet(1, "Bella", 7) == await get_pet(store, 1)
    assert await statuses_of_orders(store, 1) == ["cancelled"]
    assert await get_inventory(store) == Inventory()


@pytest.mark.parametrize(("now", "status"), [(IN_TIME, "pending"), (LAPSED, "available")])
async def test_a_change_of_another_field_returns_the_current_status(
    store: Store, now: int, status: PetStatus
) -> None:
    seen: list[Pet] = []
    patch = PetPatch(name="Max")
    changed = await store.write(update_pet(Change(now, check=seen.append), 1, patch))
    assert seen == [Pet(1, "Bella", 7, status)]
    assert changed == Pet(1, "Max", 7, status) == await get_pet(store, 1)


async def test_the_pet_can_be_deleted_only_after_the_lapse(store: Store) -> None:
    with pytest.raises(PetReserved):
        await store.write(delete_pet(Change(IN_TIME), 1))
    await store.write(delete_pet(Change(LAPSED), 1))
    with pytest.raises(NotFound):
        await get_pet(store, 1)
    assert await statuses_of_orders(store, 1) == ["cancelled"]


@pytest.mark.parametrize("status", ["approved", "cancelled", "placed"])
async def test_the_lapsed_order_is_cancelled(store: Store, status: OrderStatus) -> None:
    patch = OrderPatch(status=status)
    with pytest.raises(IllegalTransition, match=r"^status: cancelled is final"):
        await store.write(update_order(Change(LAPSED), 1, patch))
    await store.write(cancel_order(Change(LAPSED), 1))
    assert await statuses_of_orders(store, 1) == ["cancelled"]
    assert await get_inventory(store) == Inventory(available=1)


async def test_an_order_that_was_approved_in_time_still_reserves_the_pet(store: Store) -> None:
    await store.write(update_order(Change(IN_TIME), 1, OrderPatch(status="approved")))
    for unit in (
        update(PetPatch(status="available"), LAPSED),
        delete_pet(Change(LAPSED), 1),
        place_order(Change(LAPSED, reservation_minutes=1), OrderCreate(1)),
    ):
        with pytest.raises((PetReserved, PetNotAvailable)):
            await store.write(unit)
    assert await statuses_of_orders(store, 1) == ["approved"]
