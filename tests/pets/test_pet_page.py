"""The page of a pet: selling it, what it says of the sale, and the undo of the last change."""

import httpx
import pytest

from petstore.databases.contract import Statement
from support.manual_clock import ManualClock
from support.page_forms import buttons_of, form_of, press, succeed
from support.service import Service
from support.stores import do
from support.visitor import Visitor, signed_in_person, words

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("dogs")]


@pytest.fixture
async def grace(service: Service) -> Visitor:
    """A clerk, in a shop with an available pet."""
    grace = await signed_in_person(service, "clerk", "Grace")
    await grace.submit("/pets", name="Bella", categoryId="1", status="available")
    return grace


async def sell(visitor: Visitor, **typed: str) -> httpx.Response:
    return await succeed(visitor, await visitor.get("/pets/1"), "Sell Bella", **typed)


async def statuses(visitor: Visitor) -> tuple[str, str]:
    """Return the status of the pet and of its newest order, as their pages say them."""
    pages = [await visitor.get(path) for path in ("/pets/1", "/orders/1")]
    first, second = (page.text.partition('<span class="status ')[2] for page in pages)
    return first.partition('"')[0], second.partition('"')[0]


@pytest.mark.each_database
async def test_a_sale_asks_for_buyer_and_price_and_is_undone_by_a_return(
    service: Service, grace: Visitor, clock: ManualClock
) -> None:
    place = '<div id="sale" data-follow="pet order">'  # an open page learns of the sale
    assert place in (await grace.get("/pets/1")).text
    sold = await sell(grace, buyer="Ada", amount="249")
    assert "Sold Bella to Ada for $249.00 (order 1)." in words(sold)
    assert "Sold 1 Dec 2026, 12:00 To Ada for $249.00, by Grace: Order 1." in words(sold)
    assert '<a href="/console/orders/1">Order 1</a>' in sold.text
    assert "To <bdi>Ada</bdi>" in sold.text.partition(place)[2].partition("</div>")[0]
    assert await statuses(grace) == ("sold", "delivered")
    await service.store.write(do("DELETE FROM events"))
    assert "To Ada for $249.00: Order 1." in words(await grace.get("/pets/1"))
    clock.advance(600)
    undone = await succeed(grace, sold, "Undo")
    assert undone.url.path == "/console/pets/1"
    assert "Order 1 is returned, and $249.00 refunded. Bella is available again." in words(undone)
    assert await statuses(grace) == ("available", "returned")


@pytest.mark.each_database
async def test_a_pet_is_returned_on_its_page_and_not_by_a_single_tap_and_its_sale_not_told_again(
    grace: Visitor, clock: ManualClock
) -> None:
    sold = await sell(grace)  # neither buyer nor price is required
    assert "Sold Bella (order 1)." in words(sold)
    assert "No buyer recorded, by Grace: Order 1." in words(sold)
    assert "Make available" not in words(sold)
    page = await grace.get("/pets/1")
    form = page.text.partition("<summary>Return…</summary>")[2].partition("</details>")[0]
    assert "<button>Return <bdi>Bella</bdi></button>" in form
    assert "Refund" not in form  # there was no price
    returned = await succeed(grace, page, "Return Bella", returnReason="Allergic")
    assert returned.url.path == "/console/pets/1"
    assert "Order 1 is returned. Bella is available again." in words(returned)
    assert await statuses(grace) == ("available", "returned")
    await sell(grace, buyer="Ada")
    late = await press(grace, sold, "Undo")
    assert late.status_code == 412
    assert "Order 1 is returned already." in words(late)
    page = await grace.get("/pets/1")
    assert "by Grace: Order 2." in words(page)
    clock.advance(60)
    page = await succeed(grace, page, "Return Bella")
    assert "Ada" not in words(page).partition("History")[0]
    page = await succeed(grace, page, "Save", status="sold")
    assert "Bella is sold. This does not count as a sale." in words(page)
    assert "Sold 1 Dec 2026, 12:01 Marked as sold by Grace. Sales does not count it." in words(page)
    assert "Return" not in words(page).partition("History")[0]
    page = await succeed(grace, page, "Sell Bella")
    clock.advance(60)
    for status in ("available", "sold"):
        page = await succeed(grace, page, "Save", status=status)
    assert "Marked as sold by Grace. Sales does not count it." in words(page)


async def test_what_was_typed_for_an_order_stays(grace: Visitor) -> None:
    page = await grace.get("/pets/1")
    typed = {"buyer": "Ada", "amount": "1,249.50", "shipDate": "2026-12-24T10:00", "note": "Calls"}
    for button in ("Reserve", "Sell Bella"):
        refused = await press(grace, page, button, **typed | {"amount": "a lot"})
        assert refused.status_code == 400
        assert "Price in USD: enter a price such as 249.00" in words(refused)
        assert form_of(refused, button).fields.items() >= (typed | {"amount": "a lot"}).items()
        assert form_of(refused, "Save").fields["name"] == "Bella"
    for _ in range(2):
        reserved = await succeed(grace, page, "Reserve", **typed)
        assert reserved.url.path == "/console/orders/1"
    kept = form_of(reserved, "Save").fields
    assert kept.items() >= (typed | {"amount": "1249.50"}).items()


@pytest.mark.parametrize(
    ("status", "button"),
    [
        *((status, "Sell Rex") for status in ("available", "pending", "sold", "")),
        *((status, "Reserve") for status in ("available", "pending", "")),
    ],
)
async def test_two_clicks_sell_or_reserve_a_pet_without_an_order_once_whatever_its_status(
    grace: Visitor, status: str, button: str
) -> None:
    await grace.submit("/pets", name="Rex", categoryId="1", status=status)
    page = await grace.get("/pets/2")
    for _ in range(2):
        done = await succeed(grace, page, button, buyer="Ada")
        assert "order 1)." in words(done)
    await succeed(grace, done, "Undo")
    assert '<span class="status available"' in (await grace.get("/pets/2")).text


async def test_a_pet_that_changed_meanwhile_is_not_made_available_for_a_sale(
    grace: Visitor,
) -> None:
    await grace.submit("/pets", name="Rex", categoryId="1", status="")
    page = await grace.get("/pets/2")
    await succeed(grace, page, "Save", status="pending")
    refused = await press(grace, page, "Sell Rex")  # who is not made available for it
    assert refused.status_code == 409
    assert form_of(refused, "Save").fields["status"] == "pending"


# Undo

BELLA = {"name": "Bella", "categoryId": "1", "status": "available"}
UNDO, AVAILABLE = "Undo", "Make it available again"
AGAIN = "Add it again, with a new number"


async def test_a_history_has_the_newest_hundred_changes(grace: Visitor) -> None:
    for number in range(101):
        await grace.post("/pets/1", name=f"Bella {number}")
    told = words(await grace.get("/pets/1"))
    assert "name from Bella 0 to Bella 1" in told
    assert "name from Bella to Bella 0" not in told
    assert "These are the newest 100 changes." in told


@pytest.mark.parametrize(
    ("moves", "offer"),
    [
        *((("sold",), UNDO), (("pending",), UNDO), (("sold", "available"), UNDO)),
        *((("pending", "sold"), AVAILABLE), ((" ",), UNDO), ((" ", "sold"), AVAILABLE)),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else "",
)
async def test_a_status_that_may_not_follow_makes_the_pet_available(
    grace: Visitor, moves: tuple[str, ...], offer: str
) -> None:
    for status in moves:
        page = await succeed(grace, await grace.get("/pets/1"), "Save", status=status)
    await succeed(grace, page, offer)


@pytest.mark.each_database
async def test_a_deleted_pet_is_added_again_once(service: Service, grace: Visitor) -> None:
    deleted = await grace.submit("/pets/1/delete")
    assert "Bella is deleted." in words(deleted)
    viewer = await signed_in_person(service, "viewer", "Vi")
    assert buttons_of(await viewer.get("/pets/1")) == []
    gone = await grace.get("/pets/1")
    assert gone.status_code == 404
    for page in (deleted, gone, gone):  # the notice has it, too
        assert "Added Bella (#2)." in words(await succeed(grace, page, AGAIN))
    pets = await service.store.read(Statement("SELECT id, name, category_id, status FROM pets"))
    assert pets == [(2, "Bella", 1, "available")]
