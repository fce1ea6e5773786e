"""Sales of any range, by day and by category: over HTTP, on screen and as CSV."""

import re
from pathlib import Path

import httpx
import pytest

from petstore.categories.model import CategoryCreate
from petstore.clock import DAY, HOUR, Milliseconds
from petstore.events.store import Change
from petstore.orders.model import OrderCreate, OrderPatch
from petstore.orders.store import place_order, update_order
from petstore.pets.model import NewPet
from support.cases import case
from support.changes import create_category, create_pets
from support.error_body import assert_error
from support.manual_clock import ManualClock
from support.sending import sender
from support.service import Service, running_service
from support.visitor import Visitor, signed_in, words

pytestmark = pytest.mark.anyio

NOON = ManualClock().now
"""Noon of Tuesday, 1 December 2026, in UTC."""


@pytest.fixture
async def ada(service: Service) -> Visitor:
    """Somebody with every scope, in a shop with one category that has a name."""
    await service.store.write(create_category(CategoryCreate("=Dogs")))
    return await signed_in(service)


async def sell(
    service: Service, at: Milliseconds, amount: int, currency: str = "USD", category: int = 1
) -> None:
    (pet,) = await service.store.write(create_pets([NewPet("Bella", category, "available")]))
    new = OrderCreate(pet.id, amount=amount, complete=True)
    await service.store.write(place_order(Change(at, currency=currency), new))


def rows(page: httpx.Response, name: str) -> list[str]:
    """Return the rows of a table of the page."""
    table = page.text.partition(f'aria-label="{name}"')[2].partition("</table>")[0]
    found = re.findall(r"<tr[^>]*>(.*?)</tr>", table.partition("<tbody")[2], re.DOTALL)
    return [" ".join(re.sub("<[^>]*>", " ", row).split()) for row in found]


async def test_the_page_begins_with_the_last_seven_days(service: Service, ada: Visitor) -> None:
    await sell(service, NOON - DAY, 24_900)
    await sell(service, NOON - 6 * DAY, 100)
    await sell(service, NOON - 7 * DAY, 5_000)
    page = await ada.get("/sales")
    text = words(page)
    assert "25 Nov 2026 to 1 Dec 2026 $250.00 2 orders, $125.00 on average" in text
    assert "The 7 days before, 18 Nov 2026 to 24 Nov 2026: 1 order for $50.00." in text
    assert "Today so far. An order counts on the day of its delivery" in text
    assert rows(page, "Sales by day") == [
        "Wed 25 Nov 2026 1 $1.00",
        *(f"{day} Nov 2026 0 $0.00" for day in ("Thu 26", "Fri 27", "Sat 28", "Sun 29")),
        "Mon 30 Nov 2026 1 $249.00",
        "Tue 1 Dec 2026 (so far) 0 $0.00",
    ]
    assert "Amount by day: $250.00 in all; the most, $249.00, on 30 Nov" in page.text
    assert "Orders by day: 2 orders in all; the most, 1, on 25 Nov" in page.text
    assert "<title>1 Dec so far: $0.00</title>" in page.text


async def test_a_range_over_92_days_is_shown_by_month(service: Service, ada: Visitor) -> None:
    for at, amount, currency in (
        *((NOON, 100, "USD"), (NOON - DAY, 250, "USD"), (NOON - 2 * DAY, 50, "USD")),
        (NOON - 62 * DAY, 900, "EUR"),
    ):
        await sell(service, at, amount, currency)
    page = await ada.get("/sales", **{"from": "2026-08-31", "to": "2026-12-01"})
    assert rows(page, "Sales by month") == [
        "Aug 2026 0 $0.00",
        "Sep 2026 1 €9.00",
        *("Oct 2026 0 $0.00", "Nov 2026 2 $3.00", "Dec 2026 so far 1 $1.00"),
    ]
    assert "Amount by month: $4.00 in all; the most, $3.00, on Nov 2026" in page.text
    assert "<title>Sep 2026: $0.00</title>" in page.text
    assert "Download by month" in page.text
    short = await ada.get("/sales", **{"from": "2026-09-01"})
    assert "Sales by month" not in short.text
    assert "Download by month" not in short.text


async def test_categories_are_listed_the_largest_first(service: Service, ada: Visitor) -> None:
    for amount, currency, category in (
        *((100, "USD", 2), (899, "USD", 1), (1, "USD", 3)),
        *((0, "EUR", 1), (0, "EUR", 1), (0, "EUR", 2)),
    ):
        await sell(service, NOON, amount, currency, category)
    page = await ada.get("/sales")
    assert rows(page, "Sales by category USD") == [
        "=Dogs 1 $8.99 $0.00 90%",
        "category 2 1 $1.00 $0.00 10%",
        "category 3 1 $0.01 $0.00 0%",
    ]
    assert rows(page, "Sales by category EUR") == [
        "=Dogs 2 €0.00 €0.00 67%",
        "category 2 1 €0.00 €0.00 33%",
    ]
    assert "$10.00 3 orders, $3.33 on average €0.00 3 orders" in words(page)


async def test_the_days_are_those_of_the_shop(database: Path, clock: ManualClock) -> None:
    zone = "Pacific/Kiritimati"  # where it is Wednesday
    async with running_service(database, clock, time_zone=zone) as service:
        await sell(service, NOON - 2 * HOUR, 700)
        page = await (await signed_in(service)).get("/sales")
        assert "Times in Pacific/Kiritimati." in page.text
        assert "Wed 2 Dec 2026 (so far) 1 $7.00" in rows(page, "Sales by day")


async def test_a_return_is_a_minus_on_its_own_day(service: Service, ada: Visitor) -> None:
    await sell(service, NOON - DAY, 10_000)
    await sell(service, NOON, 5_000)
    patch = OrderPatch(status="returned", refund=8_000)
    await service.store.write(update_order(Change(NOON), 1, patch))
    page = await ada.get("/sales")
    text = words(page)
    assert "$70.00 2 orders, $75.00 on average" in text
    assert "$150.00 sold, $80.00 refunded for 1 return." in text
    assert rows(page, "Sales by day")[-2:] == [
        "Mon 30 Nov 2026 1 $100.00",
        "Tue 1 Dec 2026 (so far) 1 $50.00 $80.00",
    ]
    assert rows(page, "Sales by category ") == ["=Dogs 2 $150.00 $80.00 $0.00 100%"]
    only = {"from": "2026-12-01", "to": "2026-12-01"}
    assert "-$30.00 1 order" in words(await ada.get("/sales", **only))
    assert "Today so far -$30.00 1 pet, 1 returned" in words(await ada.get("/today"))
    assert 'href="/console/orders?from=2026-11-30&to=2026-11-30"' in page.text


async def test_ranges_are_a_click_away_and_what_is_wrong_with_one_is_told_at_its_field(
    ada: Visitor,
) -> None:
    page = await ada.get("/sales")
    nav = page.text.partition('aria-label="Ranges"')[2].partition("</nav>")[0]
    assert re.findall(r"from=([0-9-]+)&to=([0-9-]+)[^>]*>([^<]*)<", nav) == [
        ("2026-12-01", "2026-12-01", "Today"),
        ("2026-11-30", "2026-11-30", "Yesterday"),
        ("2026-11-30", "2026-12-01", "This week"),
        ("2026-11-23", "2026-11-29", "Last week"),
        ("2026-11-25", "2026-12-01", "Last 7 days"),
        ("2026-11-02", "2026-12-01", "Last 30 days"),
        ("2026-12-01", "2026-12-01", "This month"),
        ("2026-11-01", "2026-11-30", "Last month"),
        ("2026-01-01", "2026-12-01", "This year"),
    ]
    assert 'aria-current="page">Last 7 days' in nav
    for typed, field, problem in (
        ({"from": "2026-12-02", "to": "2026-12-01"}, "from", "Expected a date up to"),
        ({"from": "2025-01-01", "to": "2026-12-01"}, "from", "at most 366 days in all"),
        ({"from": "soon"}, "from", "Expected a date such as"),
        ({"to": "9999-12-31"}, "to", "Expected a date from"),
    ):
        for path in ("/sales", "/sales/sales.csv"):
            with case(path, typed):
                page = await ada.get(path, **typed)
                assert page.status_code == 400
                told = page.text.partition(f'id="{field}-problem">')[2].partition("</p>")[0]
                assert problem in told
                assert f'value="{typed[field]}"' in page.text
                assert "By category" not in page.text


async def test_tables_are_downloaded_as_csv(service: Service, ada: Visitor) -> None:
    await sell(service, NOON - DAY, 24_900)
    await sell(service, NOON, 1_050, "EUR", 2)
    days, columns = {"from": "2026-11-30", "to": "2026-12-01"}, "orders,amount,returns,refunded"
    for by, *lines in (
        (
            *("day", f"day,{columns},currency", "2026-11-30,1,249.00,0,0.00,USD"),
            *("2026-12-01,0,0.00,0,0.00,USD", "2026-12-01,1,10.50,0,0.00,EUR"),
        ),
        (
            *("month", f"month,{columns},currency", "2026-11,1,249.00,0,0.00,USD"),
            "2026-12,1,10.50,0,0.00,EUR",
        ),
        (
            *("category", f"categoryId,category,{columns},currency"),
            *("1,'=Dogs,1,249.00,0,0.00,USD", "2,category 2,1,10.50,0,0.00,EUR"),
        ),
    ):
        sent = await ada.get("/sales/sales.csv", **days, by=by)
        assert sent.headers["content-type"] == "text/csv; charset=utf-8"
        assert sent.headers["content-disposition"] == (
            f'attachment; filename="sales-by-{by}-2026-11-30-to-2026-12-01.csv"'
        )
        assert sent.text.removeprefix("\ufeff").splitlines() == lines
    sent = await ada.get("/sales/sales.csv", **days, by="category", separator="semicolon")
    assert "1;'=Dogs;1;249,00;0;0,00;USD" in sent.text


async def test_sales_are_of_seven_days_or_those_that_are_wanted(service: Service) -> None:
    await service.store.write(create_pets([NewPet("Bella", 7, "available")]))
    send = await sender(service)
    body = {"petId": 1, "complete": True, "amount": 500}  # at noon (UTC) of 2026-12-01
    assert (await send("POST", "/store/orders", json=body)).status_code == 201
    counted = {"orders": 1, "amount": 500, "returns": 0, "refunded": 0, "currency": "USD"}
    found = (await send("GET", "/store/sales")).json()
    rows = found.pop("rows")
    assert found == {"from": "2026-11-25", "to": "2026-12-01", "timeZone": "UTC", "by": "day"}
    assert len(rows) == 7
    assert rows[-1] == counted | {"day": "2026-12-01"}
    found = (await send("GET", "/store/sales?by=category")).json()
    assert found["rows"] == [counted | {"categoryId": 7}]
    days, zone = "from=2026-12-02&to=2026-12-02", "Pacific/Kiritimati"
    found = (await send("GET", f"/store/sales?{days}&timeZone={zone}")).json()
    assert (found["timeZone"], found["rows"]) == (zone, [counted | {"day": "2026-12-02"}])
    for query in (
        *("from=yesterday", "from=2026-02-30", "to=2026-12-24T10:00:00Z", "by=week", "by="),
        *("from=2026-12-02", "from=2025-01-01", "timeZone=Berlin", f"timeZone={'x' * 65}"),
    ):
        with case(query):
            response = await send("GET", f"/store/sales?{query}")
            message = assert_error(response, 400, "invalid_parameter")
            assert message.startswith(f"{query.partition('=')[0]}: expected ")
