"""Selling a pet over the counter in the console, and what its page says of the sale."""

import httpx
import pytest

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
    """Return the status of the pet and that of its newest order, as their pages say them."""
    pages = [await visitor.get(path) for path in ("/pets/1", "/orders/1")]
    first, second = (page.text.partition('<span class="status ')[2] for page in pages)
    return first.partition('"')[0], second.partition('"')[0]


@pytest.mark.each_database
async def test_a_sale_asks_for_buyer_and_price(service: Service, grace: Visitor) -> None:
    place = '<div id="sale" data-follow="pet order">'  # an open page learns of the sale
    assert place in (await grace.get("/pets/1")).text
    sold = await sell(grace, buyer="Ada", amount="249")
    assert "Bella is sold to Ada for 249.00 USD: order 1." in words(sold)
    assert "Sold 1 Dec 2026, 12:00 To Ada for 249.00 USD, by Grace: Order 1." in words(sold)
    assert '<a href="/console/orders/1">Order 1</a>' in sold.text
    assert "To <bdi>Ada</bdi>" in sold.text.partition(place)[2].partition("</div>")[0]
    assert await statuses(grace) == ("sold", "delivered")
    await service.store.write(do("DELETE FROM events"))
    assert "To Ada for 249.00 USD: Order 1." in words(await grace.get("/pets/1"))


@pytest.mark.each_database
async def test_a_sale_is_undone_within_a_minute(grace: Visitor, clock: ManualClock) -> None:
    sold = await sell(grace, buyer="Ada")
    clock.advance(59)
    undone = await succeed(grace, sold, "Undo")
    assert undone.url.path == "/console/pets/1"
    assert "The sale of Bella is undone: order 1 is cancelled. Bella is available again." in words(
        undone
    )
    assert await statuses(grace) == ("available", "cancelled")


async def test_a_sale_is_also_undone_on_the_pages_of_pet_and_order(grace: Visitor) -> None:
    sold = await sell(grace)  # neither buyer nor price is required
    assert "Bella is sold: order 1." in words(sold)
    assert "To somebody unknown, by Grace: Order 1." in words(sold)
    undone = await succeed(grace, await grace.get("/pets/1"), "Undo the sale")
    assert undone.url.path == "/console/pets/1"
    await sell(grace)
    undone = await succeed(grace, await grace.get("/orders/2"), "Undo the sale of Bella")
    assert "The sale of Bella is undone: order 2 is cancelled." in words(undone)


async def test_after_a_minute_a_sale_is_taken_back(grace: Visitor, clock: ManualClock) -> None:
    sold = await sell(grace)
    clock.advance(60)
    late = await press(grace, sold, "Undo")
    assert late.status_code == 409
    assert "A sale can be undone for one minute." in words(late)
    page = await grace.get("/pets/1")
    assert "Undo the sale" not in buttons_of(page)
    assert "Undo the sale" not in words(await grace.get("/orders/1"))
    assert "Order 1 stays delivered, and in the numbers of the sales." in words(page)
    await succeed(grace, page, "Take back Bella")
    assert await statuses(grace) == ("available", "delivered")


async def test_an_undo_leaves_a_pet_that_was_sold_again(grace: Visitor) -> None:
    sold = await sell(grace)
    await succeed(grace, await grace.get("/pets/1"), "Take back Bella")
    await sell(grace)
    undone = await succeed(grace, sold, "Undo")
    assert "The sale of Bella is undone: order 1 is cancelled." in words(undone)
    assert "Bella is available again" not in words(undone)
    assert "by Grace: Order 2." in words(await grace.get("/pets/1"))


async def test_two_clicks_sell_once(grace: Visitor) -> None:
    page = await grace.get("/pets/1")
    for _ in range(2):
        sold = await succeed(grace, page, "Sell Bella", buyer="Ada")
        assert "order 1." in words(sold)


async def test_a_price_that_is_none_is_refused_and_what_was_typed_stays(grace: Visitor) -> None:
    page = await grace.get("/pets/1")
    refused = await press(grace, page, "Sell Bella", buyer="Ada", amount="a lot")
    assert refused.status_code == 400
    assert "Price in USD: expected a price such as 249.00" in words(refused)
    sent = form_of(refused, "Sell Bella").fields
    assert (sent["buyer"], sent["amount"]) == ("Ada", "a lot")
    assert form_of(refused, "Save").fields["name"] == "Bella"


async def test_who_sells_second_learns_who_was_faster(service: Service, grace: Visitor) -> None:
    ada = await signed_in_person(service, "clerk", "Ada")
    page = await ada.get("/pets/1")
    await sell(grace)
    late = await press(ada, page, "Sell Bella")
    assert late.status_code == 409
    assert "Grace has just sold Bella." in words(late)


@pytest.mark.each_database
async def test_a_sale_that_was_taken_back_is_not_told_again(
    grace: Visitor, clock: ManualClock
) -> None:
    await sell(grace, buyer="Ada")
    clock.advance(60)
    page = await succeed(grace, await grace.get("/pets/1"), "Take back Bella")
    assert "Ada" not in words(page).partition("History")[0]
    page = await succeed(grace, page, "Save", status="sold")
    assert "Sold 1 Dec 2026, 12:01 Without an order, by Grace." in words(page)
    assert "stays delivered" not in words(page)


async def test_a_pet_that_was_sold_when_it_was_added_tells_nothing_of_it(
    grace: Visitor,
) -> None:
    await grace.submit("/pets", name="Rex", categoryId="1", status="sold")
    assert 'id="sold"' not in (await grace.get("/pets/2")).text
