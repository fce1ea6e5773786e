"""Changing and deleting animals, below HTTP."""

import pytest

from petstore.categories.model import CategoryCreate
from petstore.databases.contract import Row, Store, Unit
from petstore.errors import PetReserved, UnknownCategory
from petstore.events.store import Change
from petstore.orders.model import OrderCreate, OrderPatch, OrderStatus
from petstore.orders.store import place_order, update_order
from petstore.pets.model import NewPet, Pet, PetPatch
from petstore.pets.store import delete_pet, get_pet, update_pet
from support.changes import create_category, create_pet
from support.units import by_hand

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]

BELLA = NewPet("Bella", 7, "available")
ROW: Row = (1, "Bella", 7, "available")


def update(patch: PetPatch, *, strict_categories: bool = False) -> Unit[Pet]:
    return update_pet(Change(0, strict_categories=strict_categories), 1, patch)


# On a database


@pytest.mark.parametrize("status", ["placed", "approved"])
async def test_a_reserved_pet_cannot_change_status_or_be_deleted(store: Store, status: str) -> None:
    await store.write(create_pet(BELLA))
    await store.write(place_order(Change(0), OrderCreate(1)))
    if status == "approved":
        await store.write(update_order(Change(0), 1, OrderPatch(status="approved")))
    held = f"^order 1 is {status} and reserves pet 1$"
    for patch in (PetPatch(status="available"), PetPatch(status="sold"), PetPatch(status=None)):
        with pytest.raises(PetReserved, match=held):
            await store.write(update(patch))
    with pytest.raises(PetReserved, match=held):
        await store.write(delete_pet(Change(0), 1))
    changed = await store.write(update(PetPatch("Max", 8, "pending")))
    assert changed == Pet(1, "Max", 8, "pending") == await get_pet(store, 1)


@pytest.mark.parametrize("moves", [("cancelled",), ("approved", "delivered")])
async def test_an_ended_order_does_not_reserve_an_animal(
    store: Store, moves: tuple[OrderStatus, ...]
) -> None:
    await store.write(create_pet(BELLA))
    await store.write(place_order(Change(0), OrderCreate(1)))
    for status in moves:
        await store.write(update_order(Change(0), 1, OrderPatch(status=status)))
    await store.write(update(PetPatch(status="available")))
    await store.write(delete_pet(Change(0), 1))


async def test_a_strict_store_accepts_only_registered_categories(store: Store) -> None:
    await store.write(create_category(CategoryCreate("Dogs")))
    unknown = r"^categoryId: expected a registered category; there is no category 7$"
    with pytest.raises(UnknownCategory, match=unknown):
        await store.write(create_pet(BELLA, strict_categories=True))
    pet = await store.write(create_pet(NewPet("Bella", 1), strict_categories=True))
    with pytest.raises(UnknownCategory, match=unknown):
        await store.write(update(PetPatch(category_id=7), strict_categories=True))
    assert await get_pet(store, 1) == pet == Pet(1, "Bella", 1)


async def test_a_strict_store_keeps_an_existing_unregistered_category(store: Store) -> None:
    await store.write(create_pet(BELLA, strict_categories=False))
    changed = await store.write(update(PetPatch("Max", 7), strict_categories=True))
    assert changed == Pet(1, "Max", 7, "available")
    await store.write(create_category(CategoryCreate("Dogs")))
    assert (await store.write(update(PetPatch(category_id=1), strict_categories=True))).category_id


# By hand: what others do between two statements, which SQLite does not let happen


def test_a_change_that_changes_nothing_is_not_written() -> None:
    for patch in (PetPatch(), PetPatch("Bella", 7, "available")):
        assert by_hand(update(patch), [], [ROW]) == Pet(*ROW)
    assert by_hand(update(PetPatch(category_id=7), strict_categories=True), [], [ROW]) == Pet(*ROW)
