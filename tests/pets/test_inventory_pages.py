"""The page of the inventory."""

import re

import pytest

from petstore.pets.model import NewPet
from support.changes import create_pets
from support.manual_clock import ManualClock
from support.service import Service
from support.visitor import Visitor, signed_in

pytestmark = pytest.mark.anyio


async def numbers(visitor: Visitor) -> list[int]:
    """Return the numbers of the table: available, pending, sold, all."""
    page = await visitor.get("/inventory")
    assert page.status_code == 200
    return [
        int(number) for number in re.findall(r'<td class="number"><data value="(\d+)">', page.text)
    ]


async def test_an_empty_store_has_an_inventory(staff: Visitor) -> None:
    assert await numbers(staff) == [0, 0, 0, 0]


async def test_the_numbers_are_always_current(
    service: Service, staff: Visitor, clock: ManualClock
) -> None:
    await service.store.write(create_pets([NewPet("Bella", 1, "available")] * 1200))
    await service.store.write(create_pets([NewPet("Rex", 1, "sold"), NewPet("Kim", 1)]))
    assert await numbers(staff) == [1200, 0, 1, 1201]
    await staff.submit("/orders", petId=1)
    assert await numbers(staff) == [1199, 1, 1, 1201]
    clock.advance(24 * 60 * 60)
    assert await numbers(await signed_in(service)) == [1200, 0, 1, 1201]


async def test_the_chart_states_its_numbers_and_links_to_the_animals(
    service: Service, staff: Visitor
) -> None:
    pets = [NewPet("Bella", 1, "available")] * 3 + [NewPet("Rex", 1, "sold")]
    await service.store.write(create_pets(pets))
    page = (await staff.get("/inventory")).text
    assert 'aria-label="Animals by status: 3 available, 0 pending, 1 sold"' in page
    assert 'x="75.0%" width="25.0%"' in page
    assert 'href="/console/pets?status=sold"' in page


async def test_without_the_scope_to_read_animals_there_are_no_links(service: Service) -> None:
    reader = await signed_in(service, scopes=frozenset({"orders:read"}))
    assert "pets?status" not in (await reader.get("/inventory")).text
