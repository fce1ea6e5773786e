"""The page of the stock."""

import re

import pytest

from petstore.categories.model import CategoryCreate
from petstore.pets.model import NewPet
from petstore.pets.store import MAX_CATEGORIES
from support.changes import create_category, create_pets
from support.manual_clock import ManualClock
from support.service import Service
from support.visitor import Visitor, signed_in, words

pytestmark = pytest.mark.anyio


async def rows(visitor: Visitor) -> list[str]:
    """Return the rows of the table: a category, and its pets that are available, pending, sold."""
    page = await visitor.get("/categories")
    assert page.status_code == 200
    found = re.findall(r"<tr>(.*?)</tr>", page.text.partition("<tbody")[2], re.DOTALL)
    return [" ".join(re.sub("<[^>]*>", " ", row).split()) for row in found]


async def test_the_numbers_are_always_current(
    service: Service, staff: Visitor, clock: ManualClock
) -> None:
    await service.store.write(create_pets([NewPet("Bella", 1, "available")] * 3))
    await service.store.write(create_pets([NewPet("Rex", 1, "sold"), NewPet("Kim", 1)]))
    assert await rows(staff) == ["category 1 3 0 1"]
    await staff.submit("/pets/1/reserve")
    assert await rows(staff) == ["category 1 2 1 1"]
    clock.advance(24 * 60 * 60)
    assert await rows(await signed_in(service)) == ["category 1 3 0 1"]


async def test_the_category_with_fewest_pets_comes_first(service: Service, staff: Visitor) -> None:
    for name in ("Dogs", "Cats", "Ants"):
        await service.store.write(create_category(CategoryCreate(name)))
    pets = [NewPet("Rex", 1, "available")] * 2 + [NewPet("Mia", 2, "sold")]
    await service.store.write(create_pets([*pets, NewPet("Kim", 9, "available")]))
    assert await rows(staff) == ["Ants 0 0 0", "Cats 0 0 1", "category 9 1 0 0", "Dogs 2 0 0"]
    html = (await staff.get("/categories")).text
    assert 'href="/console/pets?categoryId=1&amp;status=available"' in html
    assert 'href="/console/pets?categoryId=9"' in html
    assert 'rect width="50.0%"' in html


async def test_categories_beyond_the_limit_share_a_row(service: Service, staff: Visitor) -> None:
    pets = [NewPet("Rex", number, "available") for number in range(1, MAX_CATEGORIES + 3)]
    await service.store.write(create_pets(pets))
    found = await rows(staff)
    assert (len(found), found[-1]) == (MAX_CATEGORIES + 1, "all other categories 2 0 0")


async def test_without_the_right_to_orders_the_stock_is_not_counted(service: Service) -> None:
    await service.store.write(create_category(CategoryCreate("Dogs")))
    reader = await signed_in(service, scopes=frozenset({"pets:read"}))
    assert "Dogs" in words(await reader.get("/categories"))
