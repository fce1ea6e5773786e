"""The page of a pet: selling it, what it says of the sale, and the undo of the last change."""

import asyncio
import re

import httpx
import pytest

from petstore.clock import DAY
from petstore.databases.contract import Statement, Unit
from petstore.databases.schema import prune_all
from petstore.events.model import Author, NewEvent
from petstore.events.store import Change
from support.history import published_by
from support.manual_clock import ManualClock
from support.page_forms import buttons_of, form_of, press, succeed
from support.retention import DAYS_KEPT
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


async def test_who_sells_a_pet_that_changed_meanwhile_learns_what_happened(
    service: Service, grace: Visitor
) -> None:
    ada = await signed_in_person(service, "clerk", "Ada")
    page = await ada.get("/pets/1")
    await sell(grace)
    late = await press(ada, page, "Sell Bella")
    assert late.status_code == 409
    assert "Grace has just sold Bella." in words(late)
    assert "/return" not in late.text
    assert 'name="undo"' not in late.text
    await grace.submit("/pets", name="Rex", categoryId="1", status="")
    page = await grace.get("/pets/2")
    await succeed(grace, page, "Save", status="pending")
    refused = await press(grace, page, "Sell Rex")  # who is not made available for it
    assert refused.status_code == 409
    assert form_of(refused, "Save").fields["status"] == "pending"


# The undo that stays beside the last change in the history.

BELLA = {"name": "Bella", "categoryId": "1", "status": "available"}
UNDO, AVAILABLE = "Undo", "Make it available again"
AGAIN = "Add it again, with a new number"
OFFERS = {UNDO, AVAILABLE, AGAIN}


async def pet(visitor: Visitor, number: int = 1) -> httpx.Response:
    return await visitor.get(f"/pets/{number}")


async def offered(visitor: Visitor, number: int = 1) -> set[str]:
    """Return what the page of a pet offers to undo, once its notice is gone."""
    return OFFERS & {*buttons_of(await pet(visitor, number))}


def name_of(page: httpx.Response) -> str:
    return page.text.partition("<h1><bdi>")[2].partition("</bdi>")[0]


async def stored(service: Service, number: int) -> tuple[object, ...]:
    """Return what the store has of a pet."""
    sql = "SELECT name, category_id, status FROM pets WHERE id = ?1"
    return (await service.store.read(Statement(sql, (number,))))[0]


@pytest.mark.each_database
async def test_the_last_change_is_undone_from_the_history_by_who_may_change_pets(
    service: Service, grace: Visitor
) -> None:
    colleague = await signed_in_person(service, "clerk", "Ada")
    viewer = await signed_in_person(service, "viewer", "Vi")
    await grace.submit("/categories", name="Cats")
    await grace.submit("/pets/1", name="Bello", categoryId="2")
    page = await pet(colleague)
    line = page.text.partition('id="history"')[2].partition("</li>")[0]
    assert "<button" in line
    assert await offered(viewer) == set()
    assert (await press(viewer, page, UNDO)).status_code == 403
    undone = await succeed(colleague, page, UNDO)
    assert "Bella is as it was before." in words(undone)
    assert await stored(service, 1) == ("Bella", 1, "available")
    await succeed(grace, await pet(grace), UNDO)  # the undo itself
    assert name_of(await pet(grace)) == "Bello"


async def earlier(grace: Visitor) -> httpx.Response:
    """Return the second page of the history of a pet."""
    page = await grace.get("/pets/1")
    (cursor,) = re.findall(r'\?cursor=([\w-]+)#history">Earlier', page.text)
    return await grace.get("/pets/1", cursor=cursor)


async def test_only_the_last_change_has_one_undo_beside_its_notice(grace: Visitor) -> None:
    assert await offered(grace) == set()  # that she was added: there is a button to delete her
    assert "Delete Bella" in buttons_of(await pet(grace))
    for number in range(25):
        changed = await grace.submit("/pets/1", name=f"Bella {number}")
    assert buttons_of(changed).count(UNDO) == 1
    page = await pet(grace)
    assert buttons_of(page).count(UNDO) == 1
    assert UNDO not in buttons_of(await earlier(grace))
    done = await asyncio.gather(*(press(grace, page, UNDO) for _ in range(2)))
    assert sorted(each.status_code for each in done) == [303, 412]
    assert name_of(await pet(grace)) == "Bella 23"
    await grace.submit("/pets/1/delete")
    assert buttons_of(await pet(grace)) == [AGAIN]
    assert buttons_of(await earlier(grace)) == []


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
        await grace.submit("/pets/1", status=status, was_status="-")
    assert await offered(grace) == {offer}
    await succeed(grace, await pet(grace), offer)


@pytest.mark.each_database
async def test_what_an_order_did_is_not_undone_here(service: Service, grace: Visitor) -> None:
    await grace.submit("/pets/1/reserve", once="b")
    await published_by(service)
    assert await offered(grace) == set()
    await grace.submit("/pets/1", name="Bello")
    assert await offered(grace) == {UNDO}
    await succeed(grace, await pet(grace), UNDO)
    assert name_of(await pet(grace)) == "Bella"
    await grace.submit("/orders/1/cancel", seen="placed")
    await published_by(service)
    assert await offered(grace) == set()
    await grace.submit("/pets/1/sell", once="c", amount="", buyer="")
    await published_by(service)
    assert await offered(grace) == set()


async def test_a_change_of_a_newer_version_and_one_no_longer_kept_have_no_undo(
    service: Service, grace: Visitor
) -> None:
    change = Change(service.clock(), Author("person/2"))

    def recorded(event: NewEvent) -> Unit[None]:
        yield change.record(event)

    for data in ({"weight": 4}, BELLA | {"categoryId": 1}):
        event = NewEvent("pet.updated", "pet/1", {"id": 1, **data}, {"weight": 3})
        await service.store.write(recorded(event))
        assert await offered(grace) == set()
    await grace.submit("/pets/1", name="Bello")
    await grace.submit("/pets", **BELLA, once="b")
    later = service.clock() + 1000 * DAY
    await prune_all(service.store, lambda: later, DAYS_KEPT)
    assert await offered(grace) == set()


@pytest.mark.each_database
async def test_a_deleted_pet_is_added_again_once(service: Service, grace: Visitor) -> None:
    deleted = await grace.submit("/pets/1/delete")
    assert "Bella is deleted." in words(deleted)
    viewer = await signed_in_person(service, "viewer", "Vi")
    assert buttons_of(await pet(viewer)) == []
    gone = await pet(grace)
    assert gone.status_code == 404
    for page in (deleted, gone, gone):  # the notice has it, too
        added = await succeed(grace, page, AGAIN)
        assert "Added Bella (#2)." in words(added)
    assert await stored(service, 2) == ("Bella", 1, "available")
    assert (await pet(grace, 3)).status_code == 404
