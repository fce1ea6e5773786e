"""The first page of the staff: what waits, what was sold, what is in stock, what others did."""

import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from petstore.categories.model import CategoryCreate
from petstore.clock import DAY, HOUR, MINUTE, Milliseconds, utc
from petstore.events.model import Author
from petstore.events.store import Change
from petstore.orders.model import OrderCreate, OrderPatch
from petstore.orders.store import place_order, update_order
from petstore.pets.model import NewPet
from petstore.pets.store import create_pets
from support.changes import create_category
from support.manual_clock import ManualClock
from support.service import Service, running_service
from support.visitor import Visitor, signed_in_person, words

pytestmark = pytest.mark.anyio

NOON = ManualClock().now
"""Noon of Tuesday, 1 December 2026, in UTC."""


@pytest.fixture
async def ada(service: Service) -> Visitor:
    """An administrator."""
    return await signed_in_person(service, "administrator", "Ada")


async def add_pets(service: Service, *names: str, by: str = "key/9", **others: Any) -> list[int]:
    """Add available pets in one request, and return their ids."""
    new = [NewPet(name, others.get("category", 1), "available") for name in names]
    author = Author(by, others.get("request"))
    pets = await service.store.write(create_pets(Change(service.clock(), by=author), new))
    return [pet.id for pet in pets]


async def order(service: Service, at: Milliseconds, minutes: int = 0, **fields: Any) -> int:
    """Order a new pet at a moment, and return the number of the order."""
    pet_id = fields.pop("pet_id", None) or (await add_pets(service, "Bella"))[0]
    currency = fields.pop("currency", "USD")
    unit = place_order(
        Change(at, reservation_minutes=minutes, currency=currency), OrderCreate(pet_id, **fields)
    )
    return (await service.store.write(unit)).id


async def sell(service: Service, at: Milliseconds, amount: int, **fields: Any) -> None:
    await order(service, at, amount=amount, complete=True, **fields)


async def approve(service: Service, order_id: int) -> None:
    patch = OrderPatch(status="approved")
    await service.store.write(update_order(Change(service.clock()), order_id, patch))


def section(page: httpx.Response, name: str) -> str:
    """Return the text of a section of a page, without the invisible isolates."""
    found = re.search(rf'<section class="panel" id="{name}".*?</section>', page.text, re.DOTALL)
    assert found is not None, page.text
    text = re.sub(r"<[^>]*>|[\u2068\u2069]", "", found[0]).replace("\N{NARROW NO-BREAK SPACE}", " ")
    return " ".join(text.split())


async def test_an_empty_store_says_so(ada: Visitor) -> None:
    text = words(await ada.get("/today"))
    for said in (
        *("No orders wait for approval.", "No orders wait for delivery."),
        "No pets have a status.",
        "Nobody else has changed anything lately.",
        "Tuesday last week, the whole day: nothing.",
        "Last week until the end of Tuesday: nothing. The whole week: nothing.",
    ):
        assert said in text


async def test_the_orders_that_wait_longest_come_first(service: Service, ada: Visitor) -> None:
    await order(service, NOON - 3 * DAY, 74 * 60, buyer="Jörg", amount=24_900)
    for number in range(11):
        await order(service, NOON - 2 * HOUR + number)
    for order_id in (await order(service, NOON - DAY), await order(service, NOON - 5 * MINUTE)):
        await approve(service, order_id)
    page = await ada.get("/today")
    placed = section(page, "placed")
    assert placed.startswith(
        "Wait for approval Order 1: Bella for Jörg, $249.00 placed 3 days ago, 2 h left"
    )
    assert placed.count("Bella") == 10
    assert placed.endswith("All placed orders")
    assert section(page, "approved") == (
        "Wait for delivery Order 13: Bella placed a day ago Order 14: Bella placed 5 minutes ago"
    )


async def test_late_orders_come_first_and_the_others_have_their_ship_date(
    service: Service, ada: Visitor
) -> None:
    for ship_date in (NOON + HOUR, NOON - 2 * DAY):
        await approve(service, await order(service, NOON - DAY, ship_date=utc(ship_date)))
    assert section(await ada.get("/today"), "approved") == (
        "Wait for delivery"
        " Order 2: Bella placed a day ago, 2 days late"
        " Order 1: Bella placed a day ago, ships 1 Dec 2026, 13:00"
    )


async def test_what_was_sold_is_beside_the_same_days_of_last_week(
    service: Service, ada: Visitor
) -> None:
    monday = NOON - DAY
    await sell(service, NOON - HOUR, 24_900)
    await sell(service, NOON - HOUR, 1_000, currency="EUR")
    await sell(service, monday, 10_000)
    await sell(service, monday - HOUR - DAY, 70_000)  # on Sunday
    await sell(service, NOON + HOUR - 7 * DAY, 5_000)  # later on Tuesday
    await sell(service, monday - 7 * DAY, 300)
    await sell(service, monday - 8 * DAY, 999_999)  # in the week before
    sold = section(await ada.get("/today"), "sold")
    assert "Today so far $249.00 1 pet €10.00 1 pet" in sold
    assert "Tuesday last week, the whole day: 1 pet for $50.00." in sold
    assert "This week so far $349.00 2 pets €10.00 1 pet" in sold
    assert "Last week until the end of Tuesday: 2 pets for $53.00." in sold
    assert "The whole week: 3 pets for $753.00." in sold


async def test_the_days_are_those_of_the_shop(database: Path, clock: ManualClock) -> None:
    clock.now = NOON + 13 * HOUR  # in Auckland it is Wednesday afternoon
    async with running_service(database, clock, time_zone="Pacific/Auckland") as service:
        ada = await signed_in_person(service, "administrator", "Ada")
        await sell(service, NOON - 2 * HOUR, 4_200)  # there, it was Tuesday
        page = await ada.get("/today")
        sold = section(page, "sold")
        assert "Wednesday last week, the whole day: nothing." in sold
        assert "Today so far $0.00 0 pets" in sold
        assert "This week so far $42.00 1 pet" in sold
        assert "Times in Pacific/Auckland." in page.text


async def test_the_stock_has_a_bar_for_each_of_the_largest_categories(
    service: Service, ada: Visitor
) -> None:
    await service.store.write(create_category(CategoryCreate("Dogs")))
    await add_pets(service, "Rex", "Bello")
    await order(service, NOON, pet_id=1)
    for category in range(2, 12):
        await add_pets(service, "Mia", category=category)
    stock = section(await ada.get("/today"), "stock")
    assert stock.startswith(
        "Stock by category Inventory available pending sold Dogs 1 available, 1 pending, 0 sold"
    )
    assert stock.count("1 available") == 10
    assert stock.endswith("All 11 categories")


@pytest.mark.usefixtures("dogs")
async def test_what_others_did_last_is_listed_without_what_the_person_did(
    service: Service, ada: Visitor
) -> None:
    grace = await signed_in_person(service, "clerk", "Grace")
    await ada.submit("/pets", name="Bella", categoryId="1", status="available")
    service.clock.advance(60)
    await grace.submit("/pets/1", name="Bello")
    await add_pets(service, "Rex", "Mia", "Yak", by=f"person/{grace.key_id}", request="import")
    page = await ada.get("/today")
    assert section(page, "others").startswith(
        "What others did last Activity Grace added Yak and 2 more changes"
    )
    assert "Grace renamed Bella to Bello" in section(page, "others")
    assert "Ada" not in section(page, "others")
    own = section(await grace.get("/today"), "others")
    assert "Ada added Bella" in own
    assert "Activity" not in own


async def test_a_large_import_by_somebody_else_counts_as_far_as_it_was_read(
    service: Service, ada: Visitor
) -> None:
    for _ in range(21):
        await add_pets(service, *["Yak"] * 100, request="import")
    assert "and at least 499 more changes" in section(await ada.get("/today"), "others")


async def test_the_page_follows_changes(ada: Visitor) -> None:
    page = await ada.get("/today")
    followed = re.findall(r'id="(\w+)" data-follow="([^"]*)"', page.text)
    assert dict(followed) == {
        "sold": "order",
        "placed": "order pet",
        "approved": "order pet",
        "stock": "pet",
        "others": "pet order category",
    }
