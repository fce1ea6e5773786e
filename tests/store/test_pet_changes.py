"""Changing and deleting animals, below HTTP."""

import pytest
from msgspec import UNSET

from petstore.databases.contract import Row, Store, Unit
from petstore.domain.categories import CategoryCreate
from petstore.domain.orders import OrderCreate, OrderPatch, OrderStatus
from petstore.domain.pets import NewPet, Pet, PetPatch
from petstore.errors import (
    NotFound,
    PetReserved,
    PreconditionFailed,
    UnknownCategory,
)
from petstore.store.api_keys import unconditional
from petstore.store.orders import place_order, update_order
from petstore.store.pets import delete_pet, get_pet, update_pet
from support.changes import create_category, create_pet
from support.units import by_hand

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]

BELLA = NewPet("Bella", 7, "available")
ROW: Row = (1, "Bella", 7, "available")


def refuse(_: object) -> None:
    msg = "another version"
    raise PreconditionFailed(msg)


def update(patch: PetPatch, *, strict_categories: bool = False) -> Unit[Pet]:
    return update_pet(1, patch, 0, unconditional, strict_categories=strict_categories)


# On a database


async def test_an_animal_that_is_not_there_is_not_found(store: Store) -> None:
    with pytest.raises(NotFound, match=r"^there is no pet 1$"):
        await store.write(update(PetPatch(name="Max")))
    with pytest.raises(NotFound, match=r"^there is no pet 1$"):
        await store.write(delete_pet(1, 0, unconditional))


async def test_an_animal_changes_and_others_stay(store: Store) -> None:
    for _ in range(2):
        await store.write(create_pet(BELLA))
    changed = await store.write(update(PetPatch("Max", 8, None)))
    assert changed == Pet(1, "Max", 8) == await get_pet(store, 1)
    assert changed.status is UNSET
    assert await get_pet(store, 2) == Pet(2, "Bella", 7, "available")


async def test_an_animal_without_a_status_changes_too(store: Store) -> None:
    await store.write(create_pet(NewPet("Bella", 7)))
    assert await store.write(update(PetPatch(name="Max"))) == Pet(1, "Max", 7)
    assert await store.write(update(PetPatch(status="sold"))) == Pet(1, "Max", 7, "sold")


async def test_a_deleted_animal_is_gone_and_its_id_stays_spent(store: Store) -> None:
    for _ in range(2):
        await store.write(create_pet(BELLA))
    await store.write(delete_pet(2, 0, unconditional))
    with pytest.raises(NotFound):
        await get_pet(store, 2)
    assert (await store.write(create_pet(BELLA))).id == 3


async def test_the_check_sees_the_animal_and_may_refuse_it(store: Store) -> None:
    pet = await store.write(create_pet(BELLA))
    seen: list[Pet] = []
    await store.write(update_pet(1, PetPatch(), 0, seen.append, strict_categories=False))
    for unit in (
        update_pet(1, PetPatch(name="Max"), 0, refuse, strict_categories=False),
        delete_pet(1, 0, refuse),
    ):
        with pytest.raises(PreconditionFailed, match=r"^another version$"):
            await store.write(unit)
    assert await get_pet(store, 1) == pet
    await store.write(delete_pet(1, 0, seen.append))
    assert seen == [pet, pet]


@pytest.mark.parametrize("status", ["placed", "approved"])
async def test_an_open_order_holds_status_and_animal(store: Store, status: str) -> None:
    await store.write(create_pet(BELLA))
    await store.write(place_order(OrderCreate(1), 0, 0))
    if status == "approved":
        await store.write(update_order(1, OrderPatch(status="approved"), 0, unconditional))
    held = f"^order 1 is {status} and reserves pet 1$"
    for patch in (PetPatch(status="available"), PetPatch(status="sold"), PetPatch(status=None)):
        with pytest.raises(PetReserved, match=held):
            await store.write(update(patch))
    with pytest.raises(PetReserved, match=held):
        await store.write(delete_pet(1, 0, unconditional))
    changed = await store.write(update(PetPatch("Max", 8, "pending")))
    assert changed == Pet(1, "Max", 8, "pending") == await get_pet(store, 1)


@pytest.mark.parametrize("moves", [("cancelled",), ("approved", "delivered")])
async def test_an_order_that_has_ended_holds_nothing(
    store: Store, moves: tuple[OrderStatus, ...]
) -> None:
    await store.write(create_pet(BELLA))
    await store.write(place_order(OrderCreate(1), 0, 0))
    for status in moves:
        await store.write(update_order(1, OrderPatch(status=status), 0, unconditional))
    await store.write(update(PetPatch(status="available")))
    await store.write(delete_pet(1, 0, unconditional))


async def test_a_strict_store_takes_registered_categories_alone(store: Store) -> None:
    await store.write(create_category(CategoryCreate("Dogs")))
    unknown = r"^categoryId: expected a registered category; there is no category 7$"
    with pytest.raises(UnknownCategory, match=unknown):
        await store.write(create_pet(BELLA, strict_categories=True))
    pet = await store.write(create_pet(NewPet("Bella", 1), strict_categories=True))
    with pytest.raises(UnknownCategory, match=unknown):
        await store.write(update(PetPatch(categoryId=7), strict_categories=True))
    assert await get_pet(store, 1) == pet == Pet(1, "Bella", 1)


async def test_a_strict_store_lets_an_old_category_be(store: Store) -> None:
    await store.write(create_pet(BELLA, strict_categories=False))
    changed = await store.write(update(PetPatch("Max", 7), strict_categories=True))
    assert changed == Pet(1, "Max", 7, "available")
    await store.write(create_category(CategoryCreate("Dogs")))
    assert (await store.write(update(PetPatch(categoryId=1), strict_categories=True))).categoryId


# By hand: what others do between two statements, which SQLite does not let happen


def test_a_change_that_changes_nothing_is_not_written() -> None:
    for patch in (PetPatch(), PetPatch("Bella", 7, "available")):
        assert by_hand(update(patch), [], [ROW]) == Pet(*ROW)
    assert by_hand(update(PetPatch(categoryId=7), strict_categories=True), [], [ROW]) == Pet(*ROW)
