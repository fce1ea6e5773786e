"""The first page of the staff: what to do, what was sold, what is low, what others did."""

import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from petstore.clock import DAY, HOUR, Milliseconds, utc
from petstore.events.model import Author
from petstore.events.store import Change
from petstore.orders.model import OrderCreate, OrderPatch
from petstore.orders.store import place_order, update_order
from petstore.pets.model import NewPet
from petstore.pets.store import create_pets
from support.changes import create_pet
from support.manual_clock import ManualClock
from support.page_forms import succeed
from support.service import Service, running_service
from support.visitor import Visitor, signed_in_person, words

pytestmark = pytest.mark.anyio

NOON = ManualClock().now
"""Noon of Tuesday, 1 December 2026, in UTC."""


@pytest.fixture
async def ada(service: Service) -> Visitor:
    """An administrator."""
    return await signed_in_person(service, "administrator", "Ada")


async def order(
    service: Service, at: Milliseconds, minutes: int = 0, currency: str = "USD", **fields: Any
) -> int:
    """Order a new pet at a moment, and return the number of the order."""
    pet = await service.store.write(create_pet(NewPet("Bella", 1, "available")))
    change = Change(at, reservation_minutes=minutes, currency=currency)
    return (await service.store.write(place_order(change, OrderCreate(pet.id, **fields)))).id


async def sell(service: Service, at: Milliseconds, amount: int, **fields: Any) -> None:
    await order(service, at, amount=amount, complete=True, **fields)


async def approve(service: Service, order_id: int) -> None:
    patch = OrderPatch(status="approved")
    await service.store.write(update_order(Change(service.clock()), order_id, patch))


def section_html(page: httpx.Response, name: str) -> str:
    found = re.search(rf'<section class="panel" id="{name}".*?</section>', page.text, re.DOTALL)
    assert found is not None, page.text
    return found[0]


def section(page: httpx.Response, name: str) -> str:
    """Return the text of a section of a page, without the invisible isolates."""
    html = section_html(page, name)
    text = re.sub(r"<[^>]*>|[\u2068\u2069]", "", html).replace("\N{NARROW NO-BREAK SPACE}", " ")
    return " ".join(text.split())


async def test_late_orders_come_first_then_due_ones(service: Service, ada: Visitor) -> None:
    due = {"late": NOON - 4 * DAY, "a day late": NOON - DAY, "today": NOON + HOUR}
    for name, ship_date in reversed(due.items()):
        await approve(service, await order(service, NOON, ship_date=utc(ship_date), buyer=name))
    await approve(service, await order(service, NOON - 5 * DAY, buyer="old"))
    await order(service, NOON - 3 * DAY, 74 * 60, buyer="Jörg", amount=24_900)
    await order(service, NOON - DAY)
    todo = section(await ada.get("/today"), "todo")
    assert todo.startswith("To do To approve: 2 To hand over: 4")
    assert re.findall(r"Bella(?: for ([^O]+))? Order \d, (.*?) (?:Appr|Hand)", todo) == [
        ("late", "4 days late"),
        ("a day late", "1 day late"),
        ("today", "ships today"),
        ("Jörg $249.00", "2 h left"),
        ("old", "placed 5 days ago"),
        ("", "placed a day ago"),
    ]


async def test_orders_are_approved_and_handed_over(service: Service, ada: Visitor) -> None:
    await order(service, NOON, 60, buyer="Jörg", amount=24_900)
    page = await succeed(ada, await ada.get("/today"), "Approve")
    assert "Approved order 1: Bella stays reserved." in words(page)
    assert "This marks Bella as sold." in words(page)
    page = await succeed(ada, page, "Hand over Bella")
    assert page.text.count("<h1>Today</h1>") == 1
    assert "Nothing to approve or to hand over." in words(page)
    viewer = await signed_in_person(service, "viewer", "Vi")
    await order(service, NOON)
    assert "<form method" not in section_html(await viewer.get("/today"), "todo")


async def test_sales_are_beside_those_of_last_week(service: Service, ada: Visitor) -> None:
    monday = NOON - DAY
    await sell(service, NOON - HOUR, 24_900)
    await sell(service, NOON - HOUR, 1_000, currency="EUR")
    await sell(service, monday, 10_000)
    await sell(service, monday - HOUR - DAY, 70_000)  # on Sunday
    await sell(service, NOON + HOUR - 7 * DAY, 5_000)  # later on Tuesday
    await sell(service, monday - 7 * DAY, 300)
    await sell(service, monday - 8 * DAY, 999_999)  # in the week before
    sold = section(await ada.get("/today"), "sold")
    assert "Today so far $249.00 1 pet +398% €10.00 1 pet" in sold
    assert "Last Tuesday: $50.00 (1 pet)" in sold
    assert "This week so far $349.00 2 pets +558% €10.00 1 pet" in sold
    assert "Same days last week: $53.00 (2 pets)" in sold


async def test_the_days_are_those_of_the_shop(database: Path, clock: ManualClock) -> None:
    clock.now = NOON + 13 * HOUR  # in Auckland it is Wednesday afternoon
    async with running_service(database, clock, time_zone="Pacific/Auckland") as service:
        ada = await signed_in_person(service, "administrator", "Ada")
        await sell(service, NOON - 2 * HOUR, 4_200)  # there, it was Tuesday
        page = await ada.get("/today")
        sold = section(page, "sold")
        assert "Last Wednesday: $0.00 (0 pets)" in sold
        assert "Today so far $0.00 0 pets" in sold
        assert "This week so far $42.00 1 pet" in sold
        assert "Times in Pacific/Auckland." in page.text


@pytest.mark.usefixtures("dogs")
async def test_what_others_did_last_is_listed_without_what_the_person_did(
    service: Service, ada: Visitor
) -> None:
    grace = await signed_in_person(service, "clerk", "Grace")
    await ada.submit("/pets", name="Bella", categoryId="1", status="available")
    service.clock.advance(60)
    await grace.submit("/pets/1", name="Bello")
    import_ = Change(service.clock(), by=Author(f"person/{grace.key_id}", "import"))
    new = [NewPet(name, 1, "available") for name in ("Rex", "Mia", "Yak")]
    await service.store.write(create_pets(import_, new))
    page = await ada.get("/today")
    assert section(page, "others").startswith(
        "Recent activity Activity Grace added Yak and 2 more changes"
    )
    assert "Grace renamed Bella to Bello" in section(page, "others")
    assert "Ada" not in section(page, "others")
    own = section(await grace.get("/today"), "others")
    assert "Ada added Bella" in own
    assert "Activity" not in own
