"""Reservations that have lapsed and were not settled in time: no change to their pet waits."""

from collections.abc import AsyncIterator, Callable
from typing import Any, TypeAlias

import pytest

from petstore.clock import MINUTE
from petstore.databases.contract import Store, Unit
from petstore.errors import IllegalTransition, PetNotAvailable, PetReserved
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


@pytest.mark.parametrize(("now", "status"), [(IN_TIME, "pending"), (LAPSED, "available")])
async def test_a_change_of_another_field_returns_the_current_status(
    store: Store, now: int, status: PetStatus
) -> None:
    seen: list[Pet] = []
    patch = PetPatch(name="Max")
    changed = await store.write(update_pet(Change(now, check=seen.append), 1, patch))
    assert seen == [Pet(1, "Bella", 7, status)]
    assert changed == Pet(1, "Max", 7, status) == await get_pet(store, 1)


async def test_the_lapsed_order_is_cancelled(store: Store) -> None:
    statuses: tuple[OrderStatus, ...] = ("placed", "approved")
    for status in statuses:
        with pytest.raises(IllegalTransition, match=r"^status: cancelled is final"):
            await store.write(update_order(Change(LAPSED), 1, OrderPatch(status=status)))
    await store.write(cancel_order(Change(LAPSED), 1))
    assert (await get_order(store, 1)).status == "cancelled"
    assert await get_inventory(store) == Inventory(available=1)


Units: TypeAlias = Callable[[int], Unit[Any]]
UNITS: dict[str, tuple[Units, Inventory]] = {
    "order": (
        lambda now: place_order(Change(now, reservation_minutes=1), OrderCreate(1)),
        Inventory(pending=1),
    ),
    "change": (lambda now: update_pet(Change(now), 1, PetPatch(status=None)), Inventory()),
    "delete": (lambda now: delete_pet(Change(now), 1), Inventory()),
}


@pytest.mark.parametrize("name", UNITS)
async def test_a_pet_is_ordered_changed_and_deleted_only_after_the_lapse(
    store: Store, name: str
) -> None:
    unit, inventory = UNITS[name]
    with pytest.raises((PetReserved, PetNotAvailable)):
        await store.write(unit(IN_TIME))
    await store.write(unit(LAPSED))
    assert (await get_order(store, 1)).status == "cancelled"
    assert await get_inventory(store) == inventory


async def test_an_order_that_was_approved_in_time_still_reserves_the_pet(store: Store) -> None:
    await store.write(update_order(Change(IN_TIME), 1, OrderPatch(status="approved")))
    for unit, _ in UNITS.values():
        with pytest.raises((PetReserved, PetNotAvailable)):
            await store.write(unit(LAPSED))
    assert (await get_order(store, 1)).status == "approved"
