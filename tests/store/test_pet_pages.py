"""Pages of animals, and single ones."""

from collections.abc import Callable
from itertools import product

import pytest
from msgspec import UNSET, UnsetType

from petstore.databases.contract import Store
from petstore.domain.fields import INT64_MAX, INT64_MIN
from petstore.domain.pets import NewPet, Pet, PetFilter, PetStatus
from petstore.errors import NotFound
from petstore.store.pets import get_pet, list_pets, next_pets_after
from support.changes import create_pet, create_pets

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]

STATUSES: tuple[PetStatus, ...] = ("available", "pending", "sold")
ANIMALS = [
    NewPet(f"Animal {n}", n % 4, STATUSES[n % 3]) if n % 5 else NewPet(f"Animal {n}", n % 4)
    for n in range(1, 61)
]
PETS = [Pet(n, new.name, new.categoryId, new.status) for n, new in enumerate(ANIMALS, 1)]


async def walk(store: Store, wanted: PetFilter, limit: int) -> list[list[Pet]]:
    """Return all pages."""
    pages, after = [], None
    while True:
        page = await list_pets(store, wanted, after, limit)
        pages.append(page.items)
        after = page.next_after
        if after is None:
            return pages


@pytest.mark.parametrize("pet_id", [0, -1, 2, INT64_MIN, INT64_MAX])
async def test_an_animal_that_is_not_there_is_not_found(store: Store, pet_id: int) -> None:
    await store.write(create_pet(NewPet("Bella", 1), strict_categories=False))
    with pytest.raises(NotFound, match=f"^there is no pet {pet_id}$"):
        await get_pet(store, pet_id)


async def test_an_animal_that_was_added_is_found(store: Store) -> None:
    pet = await store.write(create_pet(NewPet("Bella", INT64_MIN, "sold"), strict_categories=False))
    assert pet == Pet(1, "Bella", INT64_MIN, "sold")
    assert await get_pet(store, pet.id) == pet


async def test_an_empty_store_has_one_empty_page(store: Store) -> None:
    assert await walk(store, PetFilter(), 20) == [[]]


@pytest.mark.parametrize("limit", [1, 19, 20, 59, 60, 61, 100])
async def test_the_pages_are_all_animals_by_id_once_each(store: Store, limit: int) -> None:
    await store.write(create_pets(ANIMALS))
    pages = await walk(store, PetFilter(), limit)
    assert [pet for page in pages for pet in page] == PETS
    assert all(len(page) == limit for page in pages[:-1])
    assert 1 <= len(pages[-1]) <= limit


@pytest.mark.parametrize("after", [None, 0, 41, 60])
@pytest.mark.parametrize("limit", [1, 19, 20, 59, 60, 61])
async def test_the_start_of_the_next_page_is_known_without_the_page(
    store: Store, after: int | None, limit: int
) -> None:
    await store.write(create_pets(ANIMALS))
    for wanted in (PetFilter(), PetFilter("sold"), PetFilter("sold", 3), PetFilter(UNSET, 3)):
        page = await list_pets(store, wanted, after, limit)
        assert await next_pets_after(store, wanted, after, limit) == page.next_after


async def test_a_page_starts_behind_an_animal_that_is_gone(store: Store) -> None:
    await store.write(create_pets(ANIMALS))
    assert (await list_pets(store, PetFilter(), -5, 1)).items == PETS[:1]
    assert (await list_pets(store, PetFilter(), 60, 1)).items == []
    assert await list_pets(store, PetFilter(), INT64_MAX, 1) == ([], None)


@pytest.mark.parametrize(
    ("status", "category", "ids"),
    list(product((UNSET, "sold"), (UNSET, 3), (UNSET, (58, 7, 7, 3, 999, -1), ()))),
)
async def test_filters_hold_together(
    store: Store,
    status: PetStatus | UnsetType,
    category: int | UnsetType,
    ids: tuple[int, ...] | UnsetType,
) -> None:
    await store.write(create_pets(ANIMALS))
    holds: Callable[[Pet], bool] = lambda pet: (  # noqa: E731 - the filter in one expression
        status in (UNSET, pet.status)
        and category in (UNSET, pet.categoryId)
        and (ids is UNSET or pet.id in ids)
    )
    pages = await walk(store, PetFilter(status, category, ids), 2)
    assert [pet for page in pages for pet in page] == list(filter(holds, PETS))
