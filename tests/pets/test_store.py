"""Listing, changing and deleting pets, below HTTP, and their inventory."""

from collections import Counter
from collections.abc import Callable
from itertools import pairwise, product
from typing import Any, TypeAlias

import pytest
from msgspec import UNSET
from msgspec.structs import astuple

from petstore.categories.model import CategoryCreate
from petstore.clock import MINUTE
from petstore.databases.contract import Row, Statement, Store, Unit
from petstore.errors import IllegalTransition, PetNotAvailable, PetReserved, UnknownCategory
from petstore.events.store import Change
from petstore.orders.model import OrderCreate, OrderPatch, OrderStatus
from petstore.orders.store import cancel_order, get_order, place_order, update_order
from petstore.pets.model import (
    CategoryCounts,
    Inventory,
    NewPet,
    Pet,
    PetFilter,
    PetPatch,
    PetStatus,
)
from petstore.pets.store import (
    count_pets,
    delete_pet,
    get_inventory,
    get_inventory_by_category,
    get_pet,
    list_pets,
    update_pet,
)
from support.cases import case
from support.changes import create_category, create_pet, create_pets
from support.races import by_hand
from support.sending import Send
from support.service import Service
from support.stores import do

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]

BELLA = NewPet("Bella", 7, "available")
ROW: Row = (1, "Bella", 7, "available")


def update(patch: PetPatch, *, strict_categories: bool = False) -> Unit[Pet]:
    return update_pet(Change(0, strict_categories=strict_categories), 1, patch)


# Lists

STATUSES: tuple[PetStatus, ...] = ("available", "pending", "sold")
NEWS = [
    NewPet(f"Bella {n}", n % 4, STATUSES[n % 3]) if n % 5 else NewPet(f"Bella {n}", n % 4)
    for n in range(1, 61)
]
PETS = [Pet(n, *astuple(new)) for n, new in enumerate(NEWS, 1)]


async def walk(
    store: Store, wanted: PetFilter, limit: int, *, newest_first: bool = False
) -> list[Pet]:
    """Return what all pages have; each but the last is full, and none is empty for nothing."""
    pets: list[Pet] = []
    after = None
    while True:
        page = await list_pets(store, wanted, after, limit, newest_first=newest_first)
        pets += page.items
        after = page.next_after
        if after is None:
            assert page.items or not pets
            return pets
        assert len(page.items) == limit


@pytest.mark.parametrize("newest_first", [False, True])
async def test_filters_can_be_combined_and_counted(store: Store, *, newest_first: bool) -> None:
    await store.write(create_pets(NEWS))
    chosen = (58, 7, 7, 3, 999, -1)
    for status, category, ids, has_status, limit in product(
        (UNSET, "sold"), (UNSET, 3), (UNSET, chosen, ()), (UNSET, True, False), (2, 100)
    ):
        if status is not UNSET and has_status is False:
            continue
        wanted = PetFilter(status, category, ids, has_status)  # type: ignore[arg-type] # one of each
        listed = [
            pet
            for pet in PETS
            if wanted.admits(pet) and (wanted.ids is UNSET or pet.id in wanted.ids)
        ]
        found = await walk(store, wanted, limit, newest_first=newest_first)
        assert found == (listed[::-1] if newest_first else listed), wanted
        for most in (len(listed) or 1, len(listed) + 1, 1):
            assert await count_pets(store, wanted, most) == min(len(listed), most)


@pytest.mark.parametrize("moves", [("cancelled",), ("approved", "delivered")])
async def test_only_an_open_order_keeps_a_pet_from_changing_status_and_being_deleted(
    store: Store, moves: tuple[OrderStatus, ...]
) -> None:
    await store.write(create_pet(BELLA))
    await store.write(place_order(Change(0), OrderCreate(1)))
    for status, following in pairwise(("placed", *moves)):
        held = f"^order 1 is {status} and reserves pet 1$"
        for patch in (PetPatch(status="available"), PetPatch(status="sold"), PetPatch(status=None)):
            with pytest.raises(PetReserved, match=held):
                await store.write(update(patch))
        with pytest.raises(PetReserved, match=held):
            await store.write(delete_pet(Change(0), 1))
        changed = await store.write(update(PetPatch("Max", 8, "pending")))
        assert changed == Pet(1, "Max", 8, "pending") == await get_pet(store, 1)
        await store.write(update_order(Change(0), 1, OrderPatch(status=following)))
    await store.write(update(PetPatch(status="available")))
    await store.write(delete_pet(Change(0), 1))


async def test_a_strict_store_takes_only_registered_categories_and_keeps_others(
    store: Store,
) -> None:
    await store.write(create_category(CategoryCreate("Dogs")))
    unknown = r"^categoryId: expected a registered category; there is no category 7$"
    with pytest.raises(UnknownCategory, match=unknown):
        await store.write(create_pet(BELLA, strict_categories=True))
    await store.write(create_pet(BELLA))
    changed = await store.write(update(PetPatch("Max", 7), strict_categories=True))
    assert changed == Pet(1, "Max", 7, "available")
    changed = await store.write(update(PetPatch(category_id=1), strict_categories=True))
    with pytest.raises(UnknownCategory, match=unknown):
        await store.write(update(PetPatch(category_id=7), strict_categories=True))
    assert await get_pet(store, 1) == changed == Pet(1, "Max", 1, "available")


def test_a_change_that_changes_nothing_is_not_written() -> None:
    for patch in (PetPatch(), PetPatch("Bella", 7, "available")):
        assert by_hand(update(patch), [], [ROW]) == Pet(*ROW)
    assert by_hand(update(PetPatch(category_id=7), strict_categories=True), [], [ROW]) == Pet(*ROW)


# Reservations that have lapsed and were not settled in time: no change to their pet waits.

PLACED_AT = 1_000_000
LAPSED = PLACED_AT + MINUTE
IN_TIME = LAPSED - 1


@pytest.fixture
async def held(store: Store) -> Store:
    """A store with a pet that the order 1 holds for a minute."""
    await store.write(create_pet(BELLA))
    await store.write(place_order(Change(PLACED_AT, reservation_minutes=1), OrderCreate(1)))
    return store


@pytest.mark.parametrize(("now", "status"), [(IN_TIME, "pending"), (LAPSED, "available")])
async def test_a_change_of_another_field_returns_the_current_status(
    held: Store, now: int, status: PetStatus
) -> None:
    seen: list[Pet] = []
    patch = PetPatch(name="Max")
    changed = await held.write(update_pet(Change(now, check=seen.append), 1, patch))
    assert seen == [Pet(1, "Bella", 7, status)]
    assert changed == Pet(1, "Max", 7, status) == await get_pet(held, 1)


async def test_the_lapsed_order_is_cancelled(held: Store) -> None:
    statuses: tuple[OrderStatus, ...] = ("placed", "approved")
    for status in statuses:
        with pytest.raises(IllegalTransition, match=r"^status: cancelled is final"):
            await held.write(update_order(Change(LAPSED), 1, OrderPatch(status=status)))
    await held.write(cancel_order(Change(LAPSED), 1))
    assert (await get_order(held, 1)).status == "cancelled"
    assert await get_inventory(held) == Inventory(available=1)


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
    held: Store, name: str
) -> None:
    unit, inventory = UNITS[name]
    with pytest.raises((PetReserved, PetNotAvailable)):
        await held.write(unit(IN_TIME))
    await held.write(unit(LAPSED))
    assert (await get_order(held, 1)).status == "cancelled"
    assert await get_inventory(held) == inventory


async def test_an_order_that_was_approved_in_time_still_reserves_the_pet(held: Store) -> None:
    await held.write(update_order(Change(IN_TIME), 1, OrderPatch(status="approved")))
    for unit, _ in UNITS.values():
        with pytest.raises((PetReserved, PetNotAvailable)):
            await held.write(unit(LAPSED))
    assert (await get_order(held, 1)).status == "approved"


# The inventory: right at every moment, and never counted

REX = {"name": "Rex", "categoryId": 1}
STEPS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    *(("POST", "/pets", REX | {"status": status}) for status in ("available", *STATUSES)),
    *(("POST", "/pets", REX) for _ in range(2)),
    # A pet moves from status to status.
    *(("PATCH", "/pets/5", {"status": status}) for status in ("available", None, "sold")),
    *(("PATCH", "/pets/5", {"status": status}) for status in ("available", "pending")),
    # An order moves it.
    ("POST", "/store/orders", {"petId": 1}),
    ("PATCH", "/store/orders/1", {"status": "approved"}),
    ("PATCH", "/store/orders/1", {"status": "cancelled"}),
    ("POST", "/store/orders", {"petId": 1}),
    *(("DELETE", "/store/orders/2", {}) for _ in range(2)),
    ("POST", "/store/orders", {"petId": 2}),
    ("PATCH", "/store/orders/3", {"status": "approved"}),
    ("PATCH", "/store/orders/3", {"status": "delivered"}),
    # Pets move from category to category: with a status, without one, and with a change of it.
    *(
        ("PATCH", f"/pets/{pet_id}", {"categoryId": category})
        for category in (2, -(2**63), 2**63 - 1, 1)
        for pet_id in (1, 4, 6)
    ),
    ("PATCH", "/pets/6", {"categoryId": 5, "status": "available"}),
    ("PATCH", "/pets/1", {"categoryId": 5, "status": None}),
    *(("DELETE", f"/pets/{pet_id}", {}) for pet_id in range(1, 7)),
)


async def check(send: Send) -> None:
    """Check that the inventory agrees with the list of pets."""
    counts: dict[str, int] = (await send("GET", "/store/inventory")).json()
    listed = (await send("GET", "/pets?limit=100")).json()
    pets = [(pet["categoryId"], pet["status"]) for pet in listed if "status" in pet]
    expected = Counter(status for _, status in pets)
    assert counts == {status: expected[status] for status in STATUSES}
    rows = (await send("GET", "/store/inventory?by=category")).json()["categories"]
    found = {(row["categoryId"], status): row[status] for row in rows for status in STATUSES}
    assert Counter(found) == Counter(pets)
    assert all(any(row[status] for status in STATUSES) for row in rows)


async def test_each_change_of_a_pet_and_of_its_order_is_counted(send: Send) -> None:
    await check(send)
    for method, path, body in STEPS:
        with case(method, path, body):
            response = await send(method, path, json=body)
            assert response.is_success, response.text
            await check(send)


async def test_many_changes_of_one_are_summed_up(service: Service, database_kind: str) -> None:
    store = service.store
    if database_kind == "postgresql":  # rows that cancel each other out stay until then
        for count in (1, -1):
            await store.write(do(f"INSERT INTO category_inventory VALUES (4, 0, 0, {count})"))  # noqa: S608
    await store.write(create_pets([NewPet("Bella", 1, "available")] * 1500))
    for status in ("sold", "available", "pending"):
        await store.write(do(f"UPDATE pets SET status = '{status}'"))  # noqa: S608
    found = await get_inventory_by_category(store)
    assert found.categories == [CategoryCounts(pending=1500, category_id=1)]
    ((rows,),) = await store.read(Statement("SELECT count(*) FROM category_inventory"))
    assert rows <= (1 if database_kind == "sqlite" else 2000)


async def test_the_first_thousand_categories_are_counted(service: Service) -> None:
    store = service.store
    await store.write(create_pets(NewPet("Bella", n, "sold") for n in range(1003)))
    found = await get_inventory_by_category(store)
    assert found.categories == [CategoryCounts(sold=1, category_id=n) for n in range(1000)]
    assert found.sold == 1003
