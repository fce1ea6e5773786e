"""The pages of orders: the board, one order, and a new one."""

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from petstore.console.templates import duration
from petstore.keys.model import Scope
from petstore.pets.model import NewPet
from support.changes import create_pets
from support.manual_clock import ManualClock
from support.page_forms import conflict_of, form_of, press, succeed
from support.service import Service, running_service
from support.visitor import Visitor, signed_in, words

pytestmark = pytest.mark.anyio

DAY = 24 * 60 * 60
READER: frozenset[Scope] = frozenset({"orders:read"})
HIDDEN = re.compile(r'<input type="hidden" name="(version|seen|until)" value="([^"]*)">')


@pytest.fixture
async def staff(service: Service) -> Visitor:
    """Somebody with every scope, in a shop with three available pets."""
    names = ("Bella", "Rex", "Mia")
    await service.store.write(create_pets([NewPet(name, 1, "available") for name in names]))
    return await signed_in(service)


async def place(staff: Visitor, pet_id: int = 1, **fields: Any) -> httpx.Response:
    return await staff.submit("/orders", petId=pet_id, **fields)


def seen(page: httpx.Response) -> dict[str, str]:
    """Return the hidden fields of the first form that changes an order."""
    return {name: value.replace("&#34;", '"') for name, value in HIDDEN.findall(page.text)[:3]}


async def act(staff: Visitor, action: str, order_id: int = 1, **fields: Any) -> httpx.Response:
    """Press a button on the page of an order that nobody else changes."""
    page = await staff.get(f"/orders/{order_id}")
    return await staff.submit(f"/orders/{order_id}/{action}", **seen(page), **fields)


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


def lanes(page: httpx.Response) -> dict[str, list[int]]:
    """Return the ids of the orders in each lane, or in the table of those that were found."""
    board = page.text.partition('id="board"')[2].partition("</main>")[0]
    found = re.findall(r"<h2.*?(?=<h2|\Z)", board, re.DOTALL)
    return {
        re.sub("<[^>]*>", "", re.findall(r"<h2[^>]*>(.*)</h2>", lane)[0]): [
            int(order_id) for order_id in re.findall(r'data-resource="order/(\d+)"', lane)
        ]
        for lane in found
    }


# The board


async def test_the_board_has_a_lane_for_every_status(staff: Visitor) -> None:
    page = await staff.get("/orders")
    assert lanes(page) == {
        f"{status} 0 orders": [] for status in ("Placed", "Approved", "Delivered", "Cancelled")
    }
    assert "No orders wait for approval." in page.text
    page = await staff.get("/orders", status="placed", petId="7")
    assert "No order matches." in page.text
    assert lanes(page) == {"Placed orders of pet 7": []}
    for pet_id, actions in ((1, ("cancel",)), (1, ("approve", "deliver")), (2, ("approve",))):
        await place(staff, pet_id)
        for action in actions:
            newest = {1: 1 if actions == ("cancel",) else 2, 2: 3}[pet_id]
            await act(staff, action, newest)
    await place(staff, 3, shipDate="2026-12-24T10:00")
    page = await staff.get("/orders")
    assert lanes(page) == {
        "Placed 1 order": [4],
        "Approved 1 order": [3],
        "Delivered 1 order": [2],
        "Cancelled 1 order": [1],
    }
    assert "<bdi>Mia</bdi>" in page.text
    assert "24 Dec 2026, 10:00 UTC" in page.text
    assert "24 h left" in page.text
    assert "Approve order 4" in page.text
    assert "Deliver order 3: <bdi>Rex</bdi>" in page.text


async def test_open_orders_are_shown_oldest_first_and_closed_orders_newest_first(
    service: Service, staff: Visitor
) -> None:
    await service.store.write(create_pets([NewPet("Yak", 1, "available")] * 60))
    for pet_id in range(1, 64):
        body: dict[str, Any] = {"petId": pet_id}
        await service.request("POST", "/v1/store/orders", staff.token, json=body)
    for order_id in range(1, 12):
        await service.request("DELETE", f"/v1/store/orders/{order_id}", staff.token)
    board = await staff.get("/orders")
    assert lanes(board)["Placed 52 orders"] == list(range(12, 32))
    assert lanes(board)["Cancelled 11 orders"] == list(range(11, 1, -1))
    assert "All placed orders" in board.text
    assert "All cancelled orders" in board.text
    page = await staff.get("/orders", status="placed")
    assert lanes(page) == {"Placed orders": list(range(12, 62))}
    assert "52 orders" in words(page)
    (link,) = re.findall(r'href="([^"]*)" rel="next"', page.text)
    last = await staff.client.get(link.replace("&amp;", "&"))
    assert lanes(last) == {"Placed orders": [62, 63]}
    assert "52 orders" in words(last)
    assert lanes(await staff.get("/orders", status="cancelled")) == {
        "Cancelled orders": list(range(11, 0, -1))
    }


async def test_of_several_pets_named_so_a_person_chooses_one(
    service: Service, staff: Visitor
) -> None:
    await service.store.write(create_pets([NewPet("bella", 1, "sold"), NewPet("Bella B", 1)]))
    await place(staff)
    page = await staff.get("/orders", petId="1")
    assert lanes(page) == {"All orders of Bella": [1]}
    page = await staff.get("/orders", petId="Bella", status="placed")
    assert "Which one do you mean? Bella, pet 1 pending bella, pet 4 sold" in words(page)
    assert 'href="/console/orders?find=&amp;status=placed&amp;petId=1&amp;buyer="' in page.text
    assert lanes(page) == {}
    for nobody in ("Nobody", "x" * 101):
        missing = await staff.get("/orders", petId=nobody)
        assert "No pet has this number, or a name with a word that begins so." in missing.text


async def test_the_orders_of_a_buyer_are_found(staff: Visitor) -> None:
    await place(staff, buyer="Zoë Lem", amount="249")
    await place(staff, 2, buyer="Ada Lovelace")
    await place(staff, 3, buyer="Adam")
    page = await staff.get("/orders", buyer="ada")
    assert lanes(page) == {"All orders for ada…": [2, 3]}
    assert "2 orders" in words(page)
    page = await staff.get("/orders", buyer="zoe")
    assert "<bdi>Zoë Lem</bdi>" in page.text
    assert "249.00 USD" in words(page)
    page = await staff.get("/orders", buyer="ada", petId="re")
    assert lanes(page) == {"All orders of Rex for ada…": [2]}


async def test_a_search_for_buyers_on_several_pages_has_no_total(
    service: Service, staff: Visitor
) -> None:
    await service.store.write(create_pets([NewPet("Yak", 1, "available")] * 60))
    for pet_id in range(4, 55):
        body = {"petId": pet_id, "buyer": "Ada", "complete": True}
        await service.request("POST", "/v1/store/orders", staff.token, json=body)
    page = await staff.get("/orders", buyer="Ada")
    assert "orders Order" not in words(page)
    assert "50 orders" not in words(page)
    (link,) = re.findall(r'href="([^"]*)" rel="next"', page.text)
    last = await staff.client.get(link.replace("&amp;", "&"))
    assert lanes(last) == {"All orders for Ada…": [51]}
    beyond = await staff.get("/orders", buyer="Ada", cursor=link.partition("cursor=")[2])
    assert "No more orders." not in beyond.text


@pytest.mark.parametrize("typed", ["1", "001", "order 1", "Order #1"])
async def test_the_first_field_finds_an_order_by_its_number(staff: Visitor, typed: str) -> None:
    await place(staff, 2)
    page = await staff.get("/orders", find=typed, status="cancelled")
    assert lanes(page) == {"Order 1": [1]}
    is_pet = "Or do you mean the orders of pet 1, Bella?" in words(page)
    assert is_pet == typed.isdecimal()
    assert ('href="/console/orders?petId=1"' in page.text) == typed.isdecimal()


@pytest.mark.parametrize(
    ("typed", "told", "found"),
    [
        ("2", "There is no order 2.", {"All orders of Rex": [1]}),
        ("pet 2", "", {"All orders of Rex": [1]}),
        ("rex", "", {"All orders of Rex": [1]}),
        ("bel", "Which one do you mean? Bella, pet 1", {}),
        ("ada", "mean the orders of pet 4, Adam?", {"All orders for ada…": [1]}),
        ("77", "There is no order 77.", {}),
        ("order 2", "There is no order 2.", {}),
        ("9" * 20, "There is no order 9", {}),
        ("Nobody", "Nothing is found. Type the number of an order", {}),
        ("x" * 101, "Nothing is found. Type the number of an order", {}),
    ],
)
async def test_without_such_an_order_the_first_field_finds_buyers_and_pets(
    service: Service, staff: Visitor, typed: str, told: str, found: dict[str, list[int]]
) -> None:
    pets = [NewPet("Adam", 1), NewPet("Bella B", 1), NewPet("Bellatrix", 1)]
    await service.store.write(create_pets(pets))
    await place(staff, 2, buyer="Ada")
    page = await staff.get("/orders", find=typed)
    assert page.status_code == 200
    assert lanes(page) == found
    assert told in words(page)
    assert f'name="find" type="search" value="{typed}"' in page.text


@pytest.mark.parametrize(
    ("field", "expected"), [("status", "expected one of"), ("cursor", "expected the")]
)
async def test_an_invalid_filter_is_reported(staff: Visitor, field: str, expected: str) -> None:
    query = {"status": "placed", field: "x"}
    page = await staff.get("/orders", **query)
    assert page.status_code == 400
    assert expected in page.text


# Changes


async def test_an_order_goes_from_placed_to_delivered(staff: Visitor) -> None:
    assert (await staff.get("/orders/7")).status_code == 404
    placed = await place(staff)
    assert "Order 1 is placed. Bella is reserved." in words(placed)
    assert "Cancel it" in placed.text
    fields = seen(placed)
    approved = await staff.submit("/orders/1/approve", **fields)
    assert "Order 1 for \u2068Bella\u2069 is approved. It has no time limit now." in approved.text
    assert "Approve order" not in words(approved)
    again = await staff.post("/orders/1/approve", **fields)
    assert again.status_code == 412
    assert "Order 1 is approved already." in again.text
    delivered = await act(staff, "deliver")
    assert "Order 1 is delivered. Bella is sold." in words(delivered)
    assert "Cancel order" not in delivered.text


@pytest.mark.parametrize(
    ("back", "path"),
    [
        ("board", "/console/orders"),
        ("placed", "/console/orders?status=placed"),
        ("//evil.example", "/console/orders/1"),
    ],
)
async def test_a_change_returns_to_the_page_where_it_was_made(
    staff: Visitor, back: str, path: str
) -> None:
    await place(staff)
    fields = seen(await staff.get("/orders"))
    response = await staff.post("/orders/1/approve", back=back, **fields)
    assert response.status_code == 303
    assert response.headers["location"] == path


def undo_of(page: httpx.Response) -> dict[str, str]:
    """Return the fields of the form that undoes the change that a page tells of."""
    (form,) = re.findall(r'<div class="notice".*?</form>', page.text, re.DOTALL)
    found = re.findall(r'name="(\w+)" value="([^"]*)"', form)
    return {name: value.replace("&#34;", '"') for name, value in found}


async def test_cancelling_an_order_is_undone_by_a_new_order(staff: Visitor) -> None:
    sale: dict[str, Any] = {"buyer": "Ada", "amount": "249", "note": "Calls\nfirst"}
    await place(staff, shipDate="2026-12-24T10:00:00+01:00", **sale)
    fields = undo_of(await act(staff, "cancel"))
    assert fields["shipDate"] == "2026-12-24T10:00:00+01:00"
    assert fields["amount"] == "249.00"
    again = await staff.submit("/orders", **fields)
    assert "Order 2 is placed. Bella is reserved." in words(again)
    assert values(again).items() >= {"buyer": "Ada", "amount": "249.00"}.items()
    assert values(again)["note"] == "Calls\nfirst"
    twice = await staff.submit("/orders", **fields)
    assert "Order 2" in twice.text
    assert lanes(await staff.get("/orders"))["Placed 1 order"] == [2]


async def test_a_pet_that_someone_else_reserved_first_is_reported(staff: Visitor) -> None:
    await place(staff)
    fields = undo_of(await act(staff, "cancel"))
    await place(staff)
    refused = await staff.post("/orders", **fields)
    assert refused.status_code == 409
    assert "Bella is pending now. Only an available pet can be reserved." in words(refused)


async def test_a_ship_date_can_be_changed_undone_and_removed(
    service: Service, staff: Visitor
) -> None:
    page = await place(staff, shipDate="2026-12-24T10:00:30.5+01:00")
    assert "Ship date, in UTC</label>" in page.text  # without the script
    assert 'type="datetime-local" value="2026-12-24T09:00" max=' in page.text
    saved = await succeed(staff, await change(staff, buyer="Ada"), "Undo")
    assert values(saved)["shipDate"] == "2026-12-24T09:00"
    reader = await signed_in(service, scopes=READER)
    assert 'datetime="2026-12-24T09:00:30Z' in (await reader.get("/orders/1")).text
    changed = await change(staff, shipDate="2026-12-25T08:30")
    assert "Order 1 is changed." in changed.text
    assert 'value="2026-12-25T08:30"' in changed.text
    assert undo_of(changed)["shipDate"] == "2026-12-24T10:00:30.500000+01:00"
    undone = await succeed(staff, changed, "Undo")
    assert 'value="2026-12-24T09:00"' in undone.text
    assert "Order 1 is as it was before." in undone.text
    removed = await change(staff, shipDate="")
    assert values(removed)["shipDate"] == ""
    again = await change(staff, shipDate="2026-12-25T08:30:15")
    assert '<time datetime="2026-12-25T08:30:15Z">' in again.text
    assert undo_of(again)["shipDate"] == ""
    assert "Order 1 is changed." not in (await change(staff)).text


async def test_buyer_price_and_note_are_changed_undone_and_removed(staff: Visitor) -> None:
    await place(staff)
    page = await change(staff, buyer="Ada", amount="1,249.50", note="Calls\r\nfirst")
    sold = {"buyer": "Ada", "amount": "1249.50", "note": "Calls\nfirst"}
    assert values(page).items() >= sold.items()
    undone = await succeed(staff, page, "Undo")
    assert values(undone).items() >= {"buyer": "", "amount": "", "note": ""}.items()
    redone = await succeed(staff, undone, "Redo")
    assert values(redone).items() >= sold.items()
    removed = await change(staff, amount="", note="")
    assert values(removed).items() >= {"buyer": "Ada", "amount": "", "note": ""}.items()


async def test_who_may_not_change_an_order_is_told_its_values(
    service: Service, staff: Visitor
) -> None:
    await place(staff, buyer="Ada", amount="1,249.50", note="Calls\r\nfirst")
    reader = await signed_in(service, scopes=READER)
    page = await reader.get("/orders/1")
    assert facts(page).items() >= {"Buyer": "Ada", "Price": "1 249.50 USD"}.items()
    assert "<bdi>Calls\nfirst</bdi>" in page.text
    assert "Save" not in words(page)


async def test_a_closed_order_keeps_all_but_its_note(staff: Visitor) -> None:
    await place(staff, buyer="Ada", amount="249")
    page = await staff.get("/orders/1")  # an open one tells nothing twice
    assert not facts(page).keys() & {"Buyer", "Price", "Ship date", "Note"}
    assert 'id="details" data-follow="order"' in page.text
    page = await act(staff, "cancel", cancelReason="Changed her mind")
    assert facts(page).items() >= {"Buyer": "Ada", "Price": "249.00 USD"}.items()
    assert values(page).keys() >= {"note"}
    assert "buyer" not in values(page)
    noted = await change(staff, note="Called twice")
    assert "Called twice" in words(noted)
    refused = await staff.post("/orders/1", was_note="", note="x" * 1001)
    assert refused.status_code == 400
    assert "Note: expected 1 to 1000 characters" in words(refused)


async def test_an_order_shows_all_its_times_and_why_it_was_cancelled(
    staff: Visitor, clock: ManualClock
) -> None:
    await place(staff)
    clock.advance(60)
    await act(staff, "approve")
    clock.advance(60)
    page = await act(staff, "cancel", cancelReason="Moves <away>")
    assert facts(page)["Placed"] == "1 Dec 2026, 12:00 UTC"
    assert facts(page)["Approved"] == "1 Dec 2026, 12:01 UTC"
    assert facts(page)["Cancelled"] == "1 Dec 2026, 12:02 UTC"
    assert facts(page)["Reason"] == "Moves &lt;away&gt;"
    await place(staff)
    await act(staff, "approve", 2)
    delivered = await act(staff, "deliver", 2)
    assert facts(delivered)["Delivered"] == "1 Dec 2026, 12:02 UTC"


@pytest.mark.parametrize(
    "moment", ["0001-01-01T00:00:00+10:00", "9999-12-31T23:59:59.999999-10:00"]
)
async def test_times_at_the_limits_of_the_calendar_are_shown(staff: Visitor, moment: str) -> None:
    placed = await place(staff, shipDate=moment)
    assert f'value="{moment}"' in placed.text
    assert (await staff.get("/orders")).status_code == 200


# Refusals


async def test_a_refused_date_keeps_the_input(staff: Visitor) -> None:
    await place(staff)
    page = await staff.get("/orders/1")
    refused = await press(staff, page, "Save", shipDate="on Monday")
    assert refused.status_code == 400
    assert 'value="on Monday"' in refused.text
    assert "expected a date and time" in refused.text
    refused = await press(staff, page, "Save", amount="a lot", buyer="Ada")
    assert refused.status_code == 400
    assert "Price in USD: expected a price such as 249.00, at most 10" in words(refused)
    assert 'value="a lot"' in refused.text
    assert 'value="Ada"' in refused.text


async def test_an_order_is_refused_with_all_that_is_wrong(staff: Visitor) -> None:
    refused = await staff.post("/orders", petId="Nobody", amount="much", buyer="x" * 201)
    assert refused.status_code == 400
    text = words(refused)
    assert "Fix 3 fields" in text
    for said in ("Pet: no available", "Buyer: expected 1 to 200", "Price in USD: expected"):
        assert said in text
    for field in ("petId-hint petId", "buyer", "amount"):
        assert f'aria-describedby="{field}-problem"' in refused.text


@pytest.mark.parametrize(
    ("typed", "status", "told"),
    [
        ({"petId": "9"}, 400, "There is no pet 9."),
        ({"petId": "Nobody"}, 400, "no available pet has this number or a name that begins so"),
        ({"petId": "9" * 5000}, 400, "no available pet has this number"),
        ({"petId": "9" * 19}, 400, "no available pet has this number"),
        ({"petId": ""}, 400, "expected the number of a pet"),
        ({"petId": "1", "amount": "-1"}, 400, "expected a price such as 249.00"),
        ({"petId": "1", "shipDate": "2026-02-30T10:00"}, 400, "expected a date and time"),
        ({"petId": "4"}, 409, "Kim is without a status now."),
    ],
)
async def test_a_refused_order_keeps_the_input(
    service: Service, staff: Visitor, typed: dict[str, str], status: int, told: str
) -> None:
    await service.store.write(create_pets([NewPet("Kim", 1)]))
    refused = await staff.post("/orders", **typed)
    assert refused.status_code == status
    assert told in words(refused)
    for value in typed.values():
        assert f'value="{value}"' in refused.text


# A new order


async def test_the_page_of_a_new_order_names_the_pet(staff: Visitor) -> None:
    page = await staff.get("/orders/new", petId="1")
    assert "<bdi>Bella</bdi>" in page.text
    assert "within 24 h," in page.text
    await place(staff)
    warned = await staff.get("/orders/new", petId="1")
    assert "Only an available pet can be reserved." in warned.text


async def test_a_new_order_takes_the_name_of_a_pet(service: Service, staff: Visitor) -> None:
    page = await staff.get("/orders/new")
    placed = await succeed(staff, page, "Place the order", petId="rex", buyer="Ada")
    assert "Order 1 is placed. Rex is reserved." in words(placed)
    gone = await press(staff, page, "Place the order", petId="rex")
    assert "no available pet has this number or a name that begins so" in words(gone)
    await service.store.write(create_pets([NewPet("Bella B", 1, "available")]))
    one = await succeed(staff, page, "Place the order", petId="bella b")
    assert "Bella B is reserved." in words(one)


async def test_of_several_available_pets_named_so_a_person_chooses_one(
    service: Service, staff: Visitor
) -> None:
    await service.store.write(create_pets([NewPet("Bella", 1, "available")]))
    page = await staff.get("/orders/new")
    asked = await press(staff, page, "Place the order", petId="Bella", buyer="Ada")
    assert asked.status_code == 400
    assert "several available pets are named so; choose one of them" in words(asked)
    assert "Which one? Bella, pet 1 Bella, pet 4" in words(asked)
    assert 'value="Ada"' in asked.text
    placed = await succeed(staff, asked, "Place the order", chosen="4")
    assert '<a href="/console/pets/4">' in placed.text


# Two people at once


@pytest.mark.parametrize(
    ("theirs", "mine", "said"),
    [("approve", "cancel", "test approved"), ("cancel", "approve", "test cancelled")],
)
async def test_a_conflict_shows_the_change_of_someone_else(
    service: Service, staff: Visitor, theirs: str, mine: str, said: str
) -> None:
    page = await place(staff)
    await act(await signed_in(service), theirs)
    refused = await staff.post(f"/orders/1/{mine}", **seen(page))
    assert refused.status_code == 412
    assert f"{said} order 1 just now, while this page was open." in words(refused)
    is_open = theirs == "approve"
    assert ("If it is still right, make it again." in refused.text) is is_open
    assert ("Order this pet again" in refused.text) is not is_open
    if is_open:
        cancelled = await staff.submit("/orders/1/cancel", **seen(refused))
        assert "Order 1 is cancelled." in cancelled.text
    else:
        refused = await press(staff, page, "Save", note="Calls first")
        assert refused.status_code == 412
        assert f"{said} order 1 just now, while this page was open." in words(refused)
        saved = await succeed(staff, refused, "Save mine anyway")
        assert "Calls first" in words(saved)


@pytest.mark.parametrize(
    ("theirs", "told"),
    [
        ("2026-12-25T08:30", "test set the ship date of order 1 to 2026-12-25 08:30 UTC just now"),
        ("", "test removed the ship date of order 1 just now, while this page was open."),
    ],
)
async def test_a_ship_date_changed_by_someone_else_is_reported(
    service: Service, staff: Visitor, theirs: str, told: str
) -> None:
    await place(staff, shipDate="2026-12-24T10:00")
    fields, other = seen(await staff.get("/orders/1")), await signed_in(service)
    await change(other, shipDate=theirs)
    refused = await staff.post("/orders/1/approve", **fields)
    assert refused.status_code == 412
    assert told in words(refused)


async def test_a_conflict_of_two_changes_shows_both(service: Service, staff: Visitor) -> None:
    await place(staff, shipDate="2026-12-24T10:00", buyer="Ada")
    page, other = await staff.get("/orders/1"), await signed_in(service)
    await change(other, shipDate="2026-12-25T08:30", buyer="Grace")
    refused = await press(staff, page, "Save", shipDate="2026-12-26T09:00")
    assert refused.status_code == 412
    assert "Somebody else changed this order while you were looking at it." in words(refused)
    assert conflict_of(refused, "Ship date") == [
        *("2026-12-24T10:00", "2026-12-25T08:30", "2026-12-26T09:00")
    ]
    assert conflict_of(refused, "Buyer") == ["Ada", "Grace", "the same as now"]
    saved = await succeed(staff, refused, "Save mine anyway")
    assert 'value="2026-12-26T09:00"' in saved.text
    assert values(saved)["buyer"] == "Grace"


# Time


async def test_a_reservation_that_lapsed_while_the_page_was_open_is_reported(
    service: Service, staff: Visitor, clock: ManualClock
) -> None:
    await place(staff)
    clock.advance(DAY - 25 * 60)
    staff = await signed_in(service)
    board = await staff.get("/orders", status="placed")
    assert "25 min left" in board.text
    clock.advance(26 * 60)
    refused = await staff.post("/orders/1/approve", **seen(board))
    assert refused.status_code == 412
    told = "The time to approve order 1 ended 1 min ago. The order is cancelled."
    assert told in words(refused)
    assert '<span class="status cancelled">' in refused.text


@pytest.mark.parametrize("until", ["", "soon", "2026-12-01T00:00:00"])
async def test_an_unexpected_form_shows_the_state_of_the_order(staff: Visitor, until: str) -> None:
    await place(staff)
    await act(staff, "cancel")
    refused = await staff.post("/orders/1/approve", seen="placed", until=until)
    assert refused.status_code == 409
    assert "test cancelled order 1 just now, while this page was open." in words(refused)


async def test_a_reservation_without_an_end_shows_no_remaining_time(
    database: Path, clock: ManualClock
) -> None:
    async with running_service(database, clock, reservation_minutes=0) as service:
        await service.store.write(create_pets([NewPet("Bella", 1, "available")]))
        staff = await signed_in(service)
        assert "lapses" not in (await staff.get("/orders/new")).text
        assert "data-until" not in (await place(staff)).text


@pytest.mark.parametrize(
    ("minutes", "words"),
    [
        *((-0.1, "0 s"), (0.99, "59 s"), (1.99, "1 min"), (23 * 60 + 59, "23 h 59 min")),
        *((24 * 60, "24 h"), (47 * 60 + 59, "47 h 59 min"), (48 * 60, "2 days")),
    ],
)
def test_a_duration_is_shown_in_short_form(minutes: float, words: str) -> None:
    assert duration(timedelta(minutes=minutes)) == words


# Rights


async def test_the_orders_of_a_deleted_pet_are_kept(staff: Visitor) -> None:
    await place(staff)
    await act(staff, "cancel")
    await staff.submit("/pets/1/delete", version="")
    page = await staff.get("/orders/1")
    assert "pet 1" in page.text
    assert "Order this pet again" not in page.text
