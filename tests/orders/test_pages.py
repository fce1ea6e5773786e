"""The pages of orders: the list by what is next, one order, the file of them, and today."""

import csv
import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from petstore.categories.model import CategoryCreate
from petstore.clock import DAY, HOUR, Milliseconds, utc
from petstore.databases.contract import Row, Statement
from petstore.events.model import Author
from petstore.events.store import Change
from petstore.keys.model import Scope
from petstore.orders.model import OrderCreate, OrderPatch
from petstore.orders.store import place_order, update_order
from petstore.pets.model import NewPet
from support.changes import create_category, create_pet, create_pets
from support.manual_clock import ManualClock
from support.page_forms import buttons_of, conflict_of, form_of, form_to, press, succeed
from support.service import Service, running_service
from support.visitor import Visitor, signed_in, signed_in_person, words

pytestmark = pytest.mark.anyio

A_DAY = 24 * 60 * 60


@pytest.fixture
async def staff(service: Service) -> Visitor:
    """Somebody with every scope, in a shop with three available pets."""
    names = ("Bella", "Rex", "Mia")
    await service.store.write(create_category(CategoryCreate("Dogs")))
    await service.store.write(create_pets([NewPet(name, 1, "available") for name in names]))
    return await signed_in(service)


async def place(staff: Visitor, pet_id: int = 1, **fields: Any) -> httpx.Response:
    return await staff.submit(f"/pets/{pet_id}/reserve", **fields)


async def act(staff: Visitor, action: str, order_id: int = 1, **fields: Any) -> httpx.Response:
    """Press a button on the page of an order that nobody else changes."""
    path = f"/orders/{order_id}"
    form = form_to(await staff.get(path), f"{path}/{action}").fields
    return await staff.submit(f"{path}/{action}", **form | fields)


async def change(staff: Visitor, order_id: int = 1, **typed: str) -> httpx.Response:
    """Change an order on its page, and return the page that follows."""
    return await succeed(staff, await staff.get(f"/orders/{order_id}"), "Save", **typed)


def facts(page: httpx.Response) -> dict[str, str]:
    """Return what a page says of an order, by the names of the facts."""
    found = re.findall(r"<dt>(.*?)</dt><dd[^>]*>(.*?)</dd>", page.text, re.DOTALL)
    return {name: " ".join(re.sub("<[^>]*>", "", text).split()) for name, text in found}


def values(page: httpx.Response) -> dict[str, Any]:
    """Return what the form has that changes the order."""
    return form_of(page, "Save").fields


def listed(page: httpx.Response) -> list[int]:
    return [int(order_id) for order_id in re.findall(r'<tr data-resource="order/(\d+)"', page.text)]


def text_of(page: httpx.Response, beginning: str, end: str) -> str:
    """Return the text of an element that begins so."""
    text = page.text.partition(beginning)[2].partition(end)[0]
    return " ".join(re.sub("<[^>]*>", " ", text.partition(">")[2]).split())


def row(page: httpx.Response, order_id: int) -> str:
    return text_of(page, f'<tr data-resource="order/{order_id}"', "</tr>")


def tabs(page: httpx.Response) -> str:
    return text_of(page, 'id="tabs"', "</nav>")


async def test_the_list_has_a_tab_with_a_count_for_every_status(staff: Visitor) -> None:
    empty = await staff.get("/orders")
    assert tabs(empty) == "To approve 0 To hand over 0 Sold 0 Returned 0 Cancelled 0 All"
    assert "No orders here. Reserve or sell a pet on its page." in words(empty)
    for order_id, actions in enumerate(
        (("cancel",), ("approve", "deliver", "return"), ("approve", "deliver"), ("approve",)), 1
    ):
        await place(staff, {1: 1, 2: 1, 3: 1, 4: 2}[order_id], buyer="Jane", amount="9")
        for action in actions:
            await act(staff, action, order_id)
    await place(staff, 3, shipDate="2026-12-24T10:00")
    page = await staff.get("/orders")
    assert tabs(page) == "To approve 1 To hand over 1 Sold 1 Returned 1 Cancelled 1 All"
    for status, ids in {
        "placed": [5],
        "approved": [4],
        "delivered": [3],
        "returned": [2],
        "cancelled": [1],
        "all": [5, 4, 3, 2, 1],
    }.items():
        assert listed(await staff.get("/orders", status=status)) == ids
    assert row(page, 5) == "Mia no price #5 24 h left Approve order 5"
    held = row(await staff.get("/orders", status="approved"), 4)
    assert held.startswith("Rex for Jane $9.00 #4 Placed just now Hand over…")
    assert "pending" not in held
    everything = await staff.get("/orders", status="all")
    assert row(everything, 2) == "Bella for Jane $9.00 #2 returned Returned 1 Dec 2026, 12:00"


async def test_late_orders_come_first_and_sold_ones_by_delivery(
    service: Service, staff: Visitor, clock: ManualClock
) -> None:
    for pet_id, day in ((1, 3), (2, 2), (3, 1)):
        await place(staff, pet_id, shipDate=f"2026-12-0{day}T18:00")
        await act(staff, "approve", pet_id)
    clock.advance(2 * A_DAY)
    staff = await signed_in(service)
    page = await staff.get("/orders", status="approved")
    assert listed(page) == [3, 2, 1]
    assert "2 days late" in row(page, 3)
    assert "1 day late" in row(page, 2)
    assert "Ships today" in row(page, 1)
    for seconds, order_id in enumerate((2, 3, 1)):
        clock.advance(seconds)
        await act(staff, "deliver", order_id)
    assert listed(await staff.get("/orders", status="delivered")) == [1, 3, 2]


@pytest.mark.parametrize(
    ("typed", "told", "found"),
    [
        ("1", "Or do you mean the orders of a pet? Bella, pet 1 Dogs pending", [1]),
        ("order 2", "", [2]),
        ("Order #1", "", [1]),
        ("#1", "Bella, pet 1", [1]),
        ("pet 2", "", [1]),
        ("3", "", []),
        ("rex", "", [1]),
        *(("0171", "", [2]), ("55", "", [2])),  # digits of a telephone number
        ("ada", "Or do you mean the orders of a pet? Adam, pet 4", [1]),
        ("bel", "Several pets are named so. Which one do you mean? Bella, pet 1 Dogs", []),
        *((typed, "Nothing found.", []) for typed in ("77", "order 9", "0172", "x" * 101)),
    ],
)
async def test_one_field_finds_orders_by_number_buyer_and_pet(
    service: Service, staff: Visitor, typed: str, told: str, found: list[int]
) -> None:
    pets = [NewPet("Adam", 1), NewPet("Bella B", 1), NewPet("Bellatrix", 1)]
    await service.store.write(create_pets(pets))
    await place(staff, 2, buyer="Ada")
    await place(staff, 1, buyer="Zoe 0171 55")
    page = await staff.get("/orders", find=typed)
    assert page.status_code == 200
    assert listed(page) == found
    assert told in words(page)
    assert f'name="find" type="search" value="{typed}"' in page.text


async def test_the_list_keeps_its_place_after_an_action(staff: Visitor) -> None:
    await place(staff, buyer="Ada")
    page = await staff.get("/orders", status="placed", find="ada")
    approved = await succeed(staff, page, "Approve order 1")
    assert (approved.url.path, approved.url.params["find"]) == ("/console/orders", "ada")
    response = await staff.post("/orders/1/deliver", back="//evil.example")
    assert response.headers["location"] == "/console/orders/1"


async def test_an_order_goes_from_placed_to_returned(staff: Visitor) -> None:
    assert (await staff.get("/orders/7")).status_code == 404
    placed = await place(staff, buyer="Tom", amount="85")
    assert "Bella for Tom, $85.00 placed 24 h left" in words(placed)
    approved = await succeed(staff, placed, "Approve order 1")
    assert "Approved order 1: \u2068Bella\u2069 stays reserved." in approved.text
    assert "Cancel it" in approved.text
    assert "Approve order" not in words(approved)
    again = await press(staff, placed, "Approve order 1")
    assert again.status_code == 412
    assert "Order 1 is approved already." in again.text
    delivered = await act(staff, "deliver")
    assert "Sold Bella to Tom for $85.00 (order 1)." in words(delivered)
    assert "Cancel order" not in delivered.text
    refused = await press(staff, delivered, "Return Bella", refund="85.01")
    assert refused.status_code == 400
    assert "Refund: expected at most the amount" in words(refused)
    assert 'value="85.01"' in refused.text
    odd = await press(staff, delivered, "Return Bella", refund="80.505")
    assert "Refund: is 80.505 $80,505.00 or $80.50?" in words(odd)
    back = {"refund": "80", "returnReason": "Allergic"}
    returned = await succeed(staff, delivered, "Return Bella", **back)
    assert "Order 1 is returned, and $80.00 refunded. Bella is available again." in words(returned)
    assert facts(returned).items() >= {"Refund": "$80.00", "Reason": "Allergic"}.items()
    assert "Order 1 is returned already." in words(await press(staff, delivered, "Return Bella"))


async def test_whatever_button_is_pressed_the_details_in_the_form_are_saved_or_kept(
    staff: Visitor,
) -> None:
    page = await place(staff)
    typed = {"buyer": "Ada", "amount": "1,249.50", "note": "Calls\nfirst"}
    for button, wrong, told in (
        ("Save", {"shipDate": "on Monday"}, "expected a date and time"),
        ("Approve order 1", {"amount": "a lot"}, "Price in USD: enter a price such as 249.00"),
        ("Hand over Bella", {"amount": "249.505"}, "Price in USD: is 249.505"),
    ):
        refused = await press(staff, page, button, **typed | wrong)
        assert refused.status_code == 400
        assert told in words(refused)
        assert values(refused).items() >= (typed | wrong).items()
        page = await succeed(staff, page, button, **typed)
        assert values(page).items() >= (typed | {"amount": "1249.50"}).items()
        typed["note"] += "!"


async def test_a_delivered_order_is_corrected_at_any_time(
    service: Service, staff: Visitor, clock: ManualClock
) -> None:
    await staff.submit("/pets/1/sell", buyer="Ada", amount="650")
    clock.advance(400 * A_DAY)
    staff = await signed_in(service)
    page = await change(staff, amount="65", buyer="Grace")
    assert values(page).items() >= {"amount": "65.00", "buyer": "Grace"}.items()
    assert "changed the price from $650.00 to $65.00" in words(page)
    assert values(await act(staff, "return"))["refund"] == "65.00"
    page = await change(staff, refund="60", returnReason="Allergic")
    assert facts(page).items() >= {"Refund": "$60.00", "Reason": "Allergic"}.items()


async def test_cancelling_an_order_is_undone_by_a_new_order(staff: Visitor) -> None:
    sale: dict[str, Any] = {
        "buyer": "Ada",
        "amount": "249",
        "note": "Calls\nfirst",
        "shipDate": "2026-12-24T10:00",
    }
    await place(staff, **sale)
    cancelled = await act(staff, "cancel", cancelReason="Moves <away>")
    assert facts(cancelled)["Reason"] == "Moves &lt;away&gt;"
    again = await succeed(staff, cancelled, "Reserve again")
    assert again.url.path == "/console/orders/2"
    assert values(again).items() >= (sale | {"amount": "249.00"}).items()
    twice = await succeed(staff, cancelled, "Reserve again")
    assert twice.url.path == "/console/orders/2"
    cancelled = await act(staff, "cancel", 2)
    await place(staff)
    refused = await press(staff, cancelled, "Reserve again")
    assert refused.status_code == 409
    assert "has just reserved Bella. See Order 3." in words(refused)


async def test_a_ship_date_is_typed_in_the_time_zone_of_the_shop(
    database: Path, clock: ManualClock
) -> None:
    async with running_service(database, clock, time_zone="Europe/Berlin") as service:
        await service.store.write(create_pets([NewPet("Bella", 1, "available")]))
        staff = await signed_in(service)
        page = await place(staff, shipDate="2026-12-24T10:00:30")
        assert 'type="datetime-local" value="2026-12-24T10:00" max=' in page.text
        order = await service.request("GET", "/v1/store/orders/1", staff.token)
        assert order.json()["shipDate"] == "2026-12-24T10:00:30+01:00"
        assert facts(page)["Ship date"] == "24 Dec 2026, 10:00"
        assert "Times in Europe/Berlin." in page.text
        saved = await succeed(staff, await change(staff, buyer="Ada"), "Undo")
        assert facts(saved)["Ship date"] == "24 Dec 2026, 10:00"
        changed = await change(staff, shipDate="2026-07-01T08:30")
        assert 'datetime="2026-07-01T06:30:00Z"' in changed.text
        assert form_of(changed, "Undo").fields["shipDate"] == "2026-12-24T10:00:30+01:00"
        undone = await succeed(staff, changed, "Undo")
        assert 'value="2026-12-24T10:00"' in undone.text
        assert "Order 1 is as it was before." in undone.text
        assert values(await change(staff, shipDate=""))["shipDate"] == ""


async def test_who_may_not_change_an_order_and_paper_have_its_values(
    service: Service, staff: Visitor, clock: ManualClock
) -> None:
    sale: dict[str, Any] = {"buyer": "Ada", "amount": "1,249.50", "note": "Calls\r\nfirst"}
    await place(staff, **sale, shipDate="2026-12-24T10:00")
    clock.advance(60)
    await act(staff, "approve")
    clock.advance(60)
    await act(staff, "deliver")
    reader = await signed_in(service, scopes=frozenset[Scope]({"orders:read"}))
    page = await reader.get("/orders/1")
    assert "Bella for Ada, $1,249.50 delivered Ship date24 Dec 2026, 10:00" in words(page)
    shown = facts(page)
    assert (shown["Ship date"], shown["Note"]) == ("24 Dec 2026, 10:00", "Calls first")
    for minute, name in enumerate(("Placed", "Approved", "Delivered")):
        assert shown[name] == f"1 Dec 2026, 12:0{minute}"
    assert "Save" not in words(page)


@pytest.mark.parametrize(
    "moment", ["0001-01-01T00:00:00+10:00", "9999-12-31T23:59:59.999999-10:00"]
)
async def test_times_at_the_limits_of_the_calendar_are_shown(staff: Visitor, moment: str) -> None:
    placed = await place(staff, shipDate=moment)
    assert f'value="{moment.partition(".")[0][:16]}' in placed.text
    assert (await staff.get("/orders")).status_code == 200


@pytest.mark.parametrize(
    ("theirs", "mine", "said"),
    [
        ("approve", "Cancel order 1: Bella", "test approved"),
        ("cancel", "Approve order 1", "test cancelled"),
    ],
)
async def test_a_conflict_shows_the_change_of_someone_else(
    service: Service, staff: Visitor, theirs: str, mine: str, said: str
) -> None:
    page = await place(staff)
    await act(await signed_in(service), theirs)
    refused = await press(staff, page, mine)
    assert refused.status_code == 412
    assert f"{said} order 1 just now, while this page was open." in words(refused)
    is_open = theirs == "approve"
    assert ("If it is still right, make it again." in refused.text) is is_open
    if is_open:
        cancelled = await succeed(staff, refused, mine)
        assert "Order 1 is cancelled." in cancelled.text
    else:
        refused = await press(staff, page, "Save", note="Calls first")
        assert refused.status_code == 412
        assert f"{said} order 1 just now, while this page was open." in words(refused)
        assert "Calls first" in words(await succeed(staff, refused, "Save mine anyway"))


async def test_details_changed_by_someone_else_are_reported_and_kept(
    service: Service, staff: Visitor
) -> None:
    page = await place(staff, shipDate="2026-12-24T10:00", buyer="Ada")
    await change(await signed_in(service), shipDate="2026-12-25T08:30", buyer="Grace")
    refused = await press(staff, page, "Approve order 1", amount="9")
    assert refused.status_code == 412
    assert "test changed order 1 just now, while this page was open." in words(refused)
    assert values(refused).items() >= {"buyer": "Grace", "amount": "9"}.items()
    refused = await press(staff, page, "Save", shipDate="2026-12-26T09:00")
    assert refused.status_code == 412
    assert "Another user changed this order while you were looking at it." in words(refused)
    assert conflict_of(refused, "Ship date") == [
        *("2026-12-24T10:00", "2026-12-25T08:30", "2026-12-26T09:00")
    ]
    assert conflict_of(refused, "Buyer") == ["Ada", "Grace", "the same as now"]
    saved = await succeed(staff, refused, "Save mine anyway")
    assert values(saved).items() >= {"shipDate": "2026-12-26T09:00", "buyer": "Grace"}.items()


async def test_a_reservation_that_lapsed_while_the_page_was_open_is_reported(
    service: Service, staff: Visitor, clock: ManualClock
) -> None:
    await place(staff)
    clock.advance(A_DAY - 25 * 60)
    staff = await signed_in(service)
    page = await staff.get("/orders", status="placed")
    assert "25 min left" in page.text
    clock.advance(26 * 60)
    refused = await press(staff, page, "Approve order 1")
    assert refused.status_code == 412
    told = "The service cancelled order 1 just now, while this page was open."
    assert told in words(refused)
    assert '<span class="status cancelled">' in refused.text


async def test_the_orders_of_a_deleted_pet_are_kept(staff: Visitor) -> None:
    await staff.submit("/pets/1/sell")
    await staff.submit("/pets/1/delete", version="")
    returned = await act(staff, "return")
    assert "Order 1 is returned." in words(returned)
    assert "available" not in words(returned).partition("History")[0]
    assert listed(await staff.get("/orders", find="pet 1", status="all")) == [1]


async def test_an_amount_keeps_its_currency_after_the_shop_changed_its_own(
    database: Path, clock: ManualClock
) -> None:
    async with running_service(database, clock, currency="JPY") as service:
        names = [NewPet(name, 1, "available") for name in ("Bella", "Rex")]
        await service.store.write(create_pets(names))
        staff = await signed_in(service)
        for number in (1, 2):
            await staff.submit(f"/pets/{number}/reserve", amount="24900")
    async with running_service(database, clock, currency="USD") as service:
        staff = await signed_in(service)
        cancelled = await succeed(staff, await staff.get("/orders/2"), "Cancel order 2: Rex")
        await succeed(staff, cancelled, "Reserve again")
        assert "no price" in row(await staff.get("/orders"), 3)
        page = await succeed(
            staff, await staff.get("/orders/1"), "Approve order 1", amount="25,000"
        )
        assert form_of(page, "Save").fields["amount"] == "25000"
        await succeed(staff, page, "Hand over Bella")
        page = await succeed(staff, await staff.get("/orders/1"), "Return Bella", refund="¥ 5,000")
        assert "Order 1 is returned, and ¥5,000 refunded." in words(page)


# The file of orders that the list exports


FILE = "/orders/export.csv"
AT_NOON = "2026-12-01 12:00:00"


@pytest.fixture
async def shop(staff: Visitor) -> Visitor:
    await staff.submit("/pets/2", name="=Rex")
    await staff.submit("/pets/1/sell", buyer="@Ada", amount="249.5")
    await place(staff, 2, note="Calls\r\nfirst", shipDate="2026-12-24T10:00")
    return staff


def saved(response: httpx.Response) -> list[dict[str, str]]:
    """Return the rows of a downloaded file, without cells that are empty."""
    assert response.headers["content-type"] == "text/csv; charset=utf-8"
    rows = csv.DictReader(io.StringIO(response.content.decode("utf-8-sig"), newline=""))
    return [{name: cell for name, cell in row.items() if cell} for row in rows]


async def test_the_file_has_the_newest_first_and_is_safe_in_a_spreadsheet(shop: Visitor) -> None:
    page = await shop.get("/orders", find="ada")
    assert 'href="/console/orders/export.csv?status=all&amp;find=ada"' in page.text
    await shop.submit("/orders/1/return", refund="200", returnReason="Sad")
    file = await shop.get(FILE, status="all")
    reserved, returned = saved(file)
    assert " ".join(reserved.values()) == (
        f"2 placed 2 '=Rex Dogs {AT_NOON} 2026-12-24 10:00:00 Calls\nfirst"
    )
    assert " ".join(returned.values()) == (
        f"1 returned 1 Bella Dogs '@Ada 249.50 USD 200.00 test {AT_NOON} {AT_NOON} {AT_NOON} Sad"
    )
    disposition = 'attachment; filename="orders-2026-12-01.csv"'
    assert file.headers["content-disposition"] == disposition


async def test_a_file_has_what_a_person_chose(shop: Visitor) -> None:
    text = (await shop.get(FILE, separator="semicolon", status="all")).text
    assert "id;status;petId" in text
    assert ";249,50;USD;" in text
    for query, ids in (
        ({}, ["2"]),
        ({"status": "placed"}, ["2"]),
        ({"status": "delivered"}, ["1"]),
        ({"find": "@ada"}, ["1"]),
        ({"find": "2"}, ["2"]),
        ({"find": "pet 1"}, ["1"]),
        ({"from": "2026-12-01", "to": "2026-12-01"}, ["1"]),
        ({"from": "2026-12-02"}, []),
        ({"status": "cancelled"}, []),
        ({"find": "nobody"}, []),
    ):
        assert [row["id"] for row in saved(await shop.get(FILE, **query))] == ids
    refused = await shop.get(FILE, to="lost")
    assert refused.status_code == 400
    assert "Sold to: expected a date" in words(refused)


async def test_a_page_of_orders_asks_once_who_sold_them(
    shop: Visitor, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[str]()
    await shop.submit("/pets/3/sell")
    read = service.store.read

    async def counted(statement: Statement) -> Sequence[Row]:
        asked.append(statement.name)
        return await read(statement)

    monkeypatch.setattr(service.store, "read", counted)
    rows = saved(await shop.get(FILE, status="delivered"))
    assert [row["soldBy"] for row in rows] == ["test", "test"]
    assert asked.count("select_deliverers") == 1
    assert "select_events" not in asked


# The first page of the staff: what to do, what was sold, what others did


NOON = ManualClock().now
"""Noon of Tuesday, 1 December 2026, in UTC."""


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


def section(page: httpx.Response, name: str) -> str:
    return text_of(page, f'<section class="panel" id="{name}"', "</section>")


async def test_late_orders_come_first_then_due_ones(service: Service, ada: Visitor) -> None:
    due = {"late": NOON - 4 * DAY, "a day late": NOON - DAY, "today": NOON + HOUR}
    for name, ship_date in reversed(due.items()):
        await approve(service, await order(service, NOON, ship_date=utc(ship_date), buyer=name))
    await approve(service, await order(service, NOON - 5 * DAY, buyer="old"))
    await order(service, NOON - 3 * DAY, 74 * 60, buyer="Jörg", amount=24_900)
    await order(service, NOON - DAY)
    todo = section(await ada.get("/today"), "todo")
    assert todo.startswith("To do To approve: 2 To hand over: 4")
    assert re.findall(r"Bella(?: for ([^O]+))? Order \d (.*?) (?:Appr|Hand)", todo) == [
        ("late", "4 days late"),
        ("a day late", "1 day late"),
        ("today", "Ships today"),
        ("Jörg $249.00", "2 h left"),
        ("old", "Placed 5 days ago"),
        ("", "Placed a day ago"),
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
    assert buttons_of(await viewer.get("/today")) == []


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
    assert "Last Tuesday: $50.00 ( 1 pet)" in sold
    assert "This week so far $349.00 2 pets +558% €10.00 1 pet" in sold
    assert "Same days last week: $53.00 ( 2 pets)" in sold


@pytest.mark.usefixtures("dogs")
async def test_what_others_did_last_is_listed_without_what_the_person_did(
    service: Service, ada: Visitor
) -> None:
    grace = await signed_in_person(service, "clerk", "Grace")
    await ada.submit("/pets", name="Bella", categoryId="1", status="available")
    service.clock.advance(60)
    await grace.submit("/pets/1", name="Bello")
    by = Author(f"person/{grace.key_id}", "import")
    new = [NewPet(name, 1, "available") for name in ("Rex", "Mia", "Yak")]
    await service.store.write(create_pets(new, service.clock(), by=by))
    page = await ada.get("/today")
    assert section(page, "others").startswith(
        "Recent activity Activity Grace added Yak and 2 more changes"
    )
    assert "Grace renamed Bella to Bello" in section(page, "others")
    assert "Ada" not in section(page, "others")
    own = section(await grace.get("/today"), "others")
    assert "Ada added Bella" in own
    assert "Activity" not in own
