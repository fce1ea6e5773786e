"""Pages of animals, and single ones."""

from itertools import product

import pytest
from msgspec import UNSET

from petstore.databases.contract import Store
from petstore.domain.fields import INT64_MAX
from petstore.pets.model import NewPet, Pet, PetFilter, PetStatus
from petstore.pets.store import list_pets
from support.changes import create_pets

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]

STATUSES: tuple[PetStatus, ...] = ("available", "pending", "sold")
ANIMALS = [
    NewPet(f"Animal {n}", n % 4, STATUSES[n % 3]) if n % 5 else NewPet(f"Animal {n}", n % 4)
    for n in range(1, 61)
]
PETS = [Pet(n, new.name, new.category_id, new.status) for n, new in enumerate(ANIMALS, 1)]


async def walk(store: Store, wanted: PetFilter, limit: int) -> list[list[Pet]]:
    """Return all pages."""
    pages, after = [], None
    while True:
        page = await list_pets(store, wanted, after, limit)
        pages.append(page.items)
        after = page.next_after
        if after is None:
            return pages


async def test_the_pages_list_every_animal_once_in_order_of_id(store: Store) -> None:
    await store.write(create_pets(ANIMALS))
    for limit in (1, 19, 20, 59, 60, 61, 100):
        pages = await walk(store, PetFilter(), limit)
        assert [pet for page in pages for pet in page] == PETS
        assert all(len(page) == limit for page in pages[:-1])
        assert 1 <= len(pages[-1]) <= limit


async def test_a_page_can_start_after_a_deleted_animal(store: Store) -> None:
    await store.write(create_pets(ANIMALS))
    assert (await list_pets(store, PetFilter(), -5, 1)).items == PETS[:1]
    assert (await list_pets(store, PetFilter(), 60, 1)).items == []
    assert (await list_pets(store, PetFilter(), INT64_MAX, 1)).items == []


async def test_filters_can_be_combined(store: Store) -> None:
    await store.write(create_pets(ANIMALS))
    chosen = (58, 7, 7, 3, 999, -1)
    for status, category, ids in product((UNSET, "sold"), (UNSET, 3), (UNSET, chosen, ())):
        wanted = PetFilter(status, category, ids)  # type: ignore[arg-type] # one of each
        pages = await walk(store, wanted, 2)
        assert [pet for page in pages for pet in page] == [
            pet
            for pet in PETS
            if status in (UNSET, pet.status)
            and category in (UNSET, pet.category_id)
            and (wanted.ids is UNSET or pet.id in wanted.ids)
        ]
