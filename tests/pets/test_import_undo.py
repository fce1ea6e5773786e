"""The undo of an import: which animals it deletes, and which stay."""

import asyncio
from io import BytesIO

import pytest
from msgspec import UNSET

from petstore.categories.model import CategoryCreate
from petstore.databases.contract import Statement, Store
from petstore.errors import NotFound
from petstore.events.model import Author
from petstore.orders.model import OrderCreate
from petstore.orders.store import cancel_order, place_order
from petstore.pets.console_imports import (
    ROWS_AT_ONCE,
    ConsoleImport,
    add_batch,
    find_import,
    stop_import,
)
from petstore.pets.import_preparation import store_import
from petstore.pets.import_undo import count_next_undo, read_staying, undo_batch
from petstore.pets.model import NewPet, PetPatch
from petstore.pets.rows import pet_of
from petstore.pets.store import delete_pet, update_pet
from support.changes import NOW, create_category, create_pet
from support.keys import issue
from support.manual_clock import ManualClock
from support.pet_rows import select_pets
from support.stores import do, open_store

pytestmark = pytest.mark.anyio
each_database = pytest.mark.each_database

KEY = 1
GRACE = Author("person/2", "r-7")
EVENTS = (
    "SELECT resource, actor, request_id FROM /*sqlite*/ events /*end*/ /*pg events_outbox */"
    " WHERE type = 'pet.deleted' ORDER BY /*sqlite*/ sequence /*end*/ /*pg position */"
)


@pytest.fixture
async def store(store: Store, clock: ManualClock) -> Store:
    """A store with a category, and with the key that imports; its id is ``KEY``."""
    assert (await issue(store, clock)).id == KEY
    await store.write(create_category(CategoryCreate("Dogs")))
    return store


def unchecked(_: object) -> None:
    """Change whatever version there is."""


async def stored(store: Store, count: int) -> int:
    """Store a file of available animals, and return the id of its import."""
    rows = b"".join(b"Animal %d,1,available\n" % number for number in range(count))
    content = BytesIO(b"name,categoryId,status\n" + rows)
    return await store_import(store, KEY, "a.csv", content, lambda: NOW, named_categories=False)


async def add(store: Store, import_id: int, limit: int = 200) -> ConsoleImport:
    unit = add_batch(import_id, KEY, now=NOW, limit=limit)
    return await store.write(unit)


async def imported(store: Store, count: int) -> int:
    """Import so many available animals, and return the id of the import."""
    import_id = await stored(store, count)
    while (await add(store, import_id)).waiting:
        pass
    return import_id


async def undo(store: Store, import_id: int, limit: int = ROWS_AT_ONCE) -> ConsoleImport:
    return await store.write(undo_batch(import_id, KEY, now=NOW, limit=limit, by=GRACE))


async def undo_all(store: Store, import_id: int) -> ConsoleImport:
    while (found := await undo(store, import_id)).undoable:
        pass
    return found


async def left(store: Store) -> list[int]:
    return [pet_of(row).id for row in await store.read(select_pets(100_000))]


async def staying(store: Store, import_id: int, limit: int = 1_000) -> dict[int, str]:
    return {each.pet.id: each.reason async for each in read_staying(store, import_id, limit)}


def counts(found: ConsoleImport) -> tuple[int, int, int]:
    return found.undoable, found.undone, found.stayed


@each_database
async def test_an_undo_deletes_what_the_import_added_and_nothing_in_between(store: Store) -> None:
    import_id = await stored(store, 3)
    await add(store, import_id, limit=1)
    await store.write(create_pet(NewPet("Other", 1)))
    await add(store, import_id)
    assert counts(await undo(store, import_id)) == (0, 3, 0)
    assert await left(store) == [2]


@each_database
async def test_each_deletion_has_its_event_with_its_author(store: Store) -> None:
    import_id = await imported(store, 2)
    await undo(store, import_id)
    events = await store.read(Statement(EVENTS))
    assert events == [("pet/1", *GRACE), ("pet/2", *GRACE)]


@each_database
async def test_animals_that_somebody_changed_ordered_or_deleted_stay(store: Store) -> None:
    import_id = await imported(store, 6)
    for pet_id, patch in {1: PetPatch(name="Bella"), 2: PetPatch(status=None)}.items():
        await store.write(update_pet(pet_id, patch, NOW, unchecked, strict_categories=False))
    await store.write(place_order(OrderCreate(3), NOW, 60))
    await store.write(place_order(OrderCreate(4), NOW, 60))
    await store.write(cancel_order(2, NOW, unchecked))
    await store.write(delete_pet(5, NOW, unchecked))
    assert counts(await undo(store, import_id)) == (0, 1, 5)
    reasons = {1: "changed", 2: "changed", 3: "ordered", 4: "ordered", 5: "deleted"}
    assert await staying(store, import_id) == reasons
    assert await left(store) == [1, 2, 3, 4]


async def test_an_animal_that_was_ordered_and_then_deleted_is_deleted(store: Store) -> None:
    import_id = await imported(store, 1)
    await store.write(place_order(OrderCreate(1), NOW, 60))
    await store.write(cancel_order(1, NOW, unchecked))
    await store.write(delete_pet(1, NOW, unchecked))
    await undo(store, import_id)
    assert await staying(store, import_id) == {1: "deleted"}


@each_database
async def test_an_order_that_is_just_placed_keeps_its_animal(address: str, store: Store) -> None:
    import_id = await imported(store, 40)
    async with open_store(address) as other:
        orders = (other.write(place_order(OrderCreate(number), NOW, 60)) for number in range(1, 41))
        done = await asyncio.gather(
            *orders, *(undo(store, import_id, 10) for _ in range(4)), return_exceptions=True
        )
    ordered = {one.pet_id for one in done[:40] if not isinstance(one, BaseException)}
    assert not [one for one in done[40:] if isinstance(one, BaseException)]
    assert set(await left(store)) == ordered
    assert await staying(store, import_id) == dict.fromkeys(sorted(ordered), "ordered")


async def test_an_undo_looks_at_no_more_animals_than_it_may(store: Store) -> None:
    import_id = await imported(store, 300)
    await store.write(delete_pet(250, NOW, unchecked))
    assert await count_next_undo(store, import_id) == 200
    assert counts(await undo(store, import_id, 80)) == (220, 80, 0)
    assert await count_next_undo(store, import_id) == 120
    assert counts(await undo_all(store, import_id)) == (0, 299, 1)
    assert await count_next_undo(store, import_id) == 0
    assert counts(await undo(store, import_id)) == (0, 299, 1)
    assert await left(store) == []


@each_database
async def test_two_undos_at_once_delete_each_animal_once(address: str, store: Store) -> None:
    import_id = await imported(store, 250)
    async with open_store(address) as other:
        await asyncio.gather(*(undo_all(one, import_id) for one in (store, other, store)))
    assert counts(await find_import(store, import_id, KEY)) == (0, 250, 0)
    assert len(await store.read(Statement(EVENTS))) == 250


@each_database
async def test_an_import_that_is_undone_adds_no_more_rows(store: Store) -> None:
    import_id = await stored(store, 500)
    await add(store, import_id)
    found = await undo_all(store, import_id)
    assert (found.waiting, found.added, found.finished_at) == (0, 200, NOW)
    assert (await add(store, import_id)).added == 200
    assert await left(store) == []


async def test_an_import_is_stopped_once_and_deleted_if_it_added_nothing(store: Store) -> None:
    first, second = await stored(store, 300), await stored(store, 2)
    await add(store, first)
    for waiting in (100, 0):
        stopped = await store.write(stop_import(first, KEY, now=NOW))
        assert (stopped.waiting, stopped.added) == (waiting, 200)
    assert (await find_import(store, first, KEY)).finished_at == NOW
    await store.write(stop_import(second, KEY, now=NOW))
    with pytest.raises(NotFound):
        await find_import(store, second, KEY)


async def test_the_first_animals_that_stay_are_read_across_batches(store: Store) -> None:
    import_id = await imported(store, 600)
    for pet_id in (200, 201, 402):
        await store.write(delete_pet(pet_id, NOW, unchecked))
    await undo_all(store, import_id)
    assert [*await staying(store, import_id, 2)] == [200, 201]
    assert [*await staying(store, import_id)] == [200, 201, 402]


async def test_an_undo_is_for_the_key_that_imported(store: Store, clock: ManualClock) -> None:
    import_id = await imported(store, 1)
    other = (await issue(store, clock)).id
    with pytest.raises(NotFound):
        await store.write(undo_batch(import_id, other, now=NOW, limit=1))
    assert await left(store) == [1]


async def test_an_animal_that_was_changed_back_is_as_it_was(store: Store) -> None:
    import_id = await imported(store, 1)
    for patch in (PetPatch(status=None), PetPatch(status="available", name=UNSET)):
        await store.write(update_pet(1, patch, NOW, unchecked, strict_categories=False))
    assert counts(await undo(store, import_id)) == (0, 1, 0)


async def test_animals_that_an_earlier_version_added_are_not_known(store: Store) -> None:
    import_id = await imported(store, 2)
    await store.write(do("UPDATE console_import_batches SET added = '[]'"))
    await store.write(do("UPDATE console_imports SET undoable = 0"))
    assert counts(await undo(store, import_id)) == (0, 0, 0)
    assert await left(store) == [1, 2]
