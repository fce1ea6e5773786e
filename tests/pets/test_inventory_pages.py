"""The page of the inventory."""

import re

import httpx
import pytest

from petstore.categories.model import CategoryCreate
from petstore.pets.model import NewPet
from petstore.pets.store import MAX_CATEGORIES
from support.changes import create_category, create_pets
from support.manual_clock import ManualClock
from support.service import Service
from support.visitor import Visitor, signed_in, words

pytestmark = pytest.mark.anyio


async def numbers(visitor: Visitor) -> list[int]:
    """Return the numbers of the first table: available, pending, sold, all."""
    page = await visitor.get("/inventory")
    assert page.status_code == 200
    table = page.text.partition("</table>")[0]
    return [int(number) for number in re.findall(r'<td class="number"><data value="(\d+)">', table)]


def categories(page: httpx.Response) -> list[str]:
    """Return the rows of the table of categories."""
    table = page.text.partition('aria-label="Pets by category"')[2].partition("</table>")[0]
    found = re.findall(r"<tr[^>]*>(.*?)</tr>", table.partition("<tbody")[2], re.DOTALL)
    return [" ".join(re.sub("<[^>]*>", " ", row).split()) for row in found]


def bars(page: httpx.Response) -> list[str]:
    """Return what the bars of categories say, each with where its shares begin and their widths."""
    chart = page.text.partition('<ul class="rows">')[2].partition("</ul>")[0]
    return [
        " ".join(
            [re.sub("<[^>]*>", "", words), *re.findall(r'x="([^"]*)" width="([^"]*)"', svg)[0]]
        )
        for words, svg in re.findall(r"<p>(.*?)</p>\s*<svg(.*?)</svg>", chart, re.DOTALL)
    ]


async def test_the_numbers_are_always_current(
    service: Service, staff: Visitor, clock: ManualClock
) -> None:
    assert await numbers(staff) == [0, 0, 0, 0]
    await service.store.write(create_pets([NewPet("Bella", 1, "available")] * 1200))
    await service.store.write(create_pets([NewPet("Rex", 1, "sold"), NewPet("Kim", 1)]))
    assert await numbers(staff) == [1200, 0, 1, 1201]
    await staff.submit("/pets/1/reserve")
    assert await numbers(staff) == [1199, 1, 1, 1201]
    clock.advance(24 * 60 * 60)
    assert await numbers(await signed_in(service)) == [1200, 0, 1, 1201]


async def test_each_category_has_a_bar_and_a_row_the_most_to_sell_first(
    service: Service, staff: Visitor
) -> None:
    await service.store.write(create_category(CategoryCreate("Dogs")))
    pets = [NewPet("Rex", 1, "available")] * 2 + [NewPet("Mia", 2, "sold")]
    await service.store.write(create_pets([*pets, NewPet("Kim", 1, "sold")]))
    page = await staff.get("/inventory")
    assert 'aria-label="Pets by status: 2 available, 0 pending, 2 sold"' in page.text
    assert 'x="50.0%" width="50.0%"' in page.text
    assert 'href="/console/pets?status=sold"' in page.text
    assert categories(page) == ["Dogs 2 0 1 3", "category 2 0 0 1 1"]
    assert bars(page) == [
        "Dogs 2 available, 0 pending, 1 sold 0.0% 66.67%",
        "category 2 0 available, 0 pending, 1 sold 0.0% 33.33%",
    ]
    assert 'href="/console/pets?categoryId=1"' in page.text


async def test_the_table_has_more_categories_than_the_chart_and_the_rest_in_one_row(
    service: Service, staff: Visitor
) -> None:
    pets = [NewPet("Rex", number, "available") for number in range(1, MAX_CATEGORIES + 3)]
    await service.store.write(create_pets(pets))
    page = await staff.get("/inventory")
    assert (len(bars(page)), len(categories(page))) == (30, MAX_CATEGORIES + 1)
    assert "These are the 30 categories with the most pets to sell." in words(page)
    assert categories(page)[-1] == "all other categories 2 0 0 2"
