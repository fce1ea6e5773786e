"""The history on the pages of pets, orders and categories, and who caused a conflict."""

import re

import httpx
import pytest

from petstore.clock import DAY, HOUR, MINUTE, SECOND
from petstore.console.templates import ago_in_words
from support.service import Service
from support.visitor import Visitor, signed_in_again, signed_in_person, words

pytestmark = pytest.mark.anyio

BELLA = {"name": "Bella", "categoryId": "1", "status": "available"}


@pytest.fixture
async def grace(service: Service, dogs: None) -> Visitor:  # noqa: ARG001
    """A clerk, in a shop with dogs."""
    return await signed_in_person(service, "clerk", "Grace")


def history(page: httpx.Response) -> list[str]:
    """Return the lines of the history on a page, without their times."""
    panel = page.text.partition('id="history"')[2].partition("</section>")[0]
    items = re.findall(r"<li data-resource=\"[^\"]+\"><span>(.*?)</span> <span", panel)
    return [" ".join(re.sub("<[^>]*>", "", item).split()) for item in items]


async def changed(visitor: Visitor, path: str, **fields: str) -> None:
    response = await visitor.post(path, **fields)
    assert response.status_code == 303, response.text


@pytest.mark.each_database
async def test_the_page_of_a_pet_tells_who_changed_it_newest_first(grace: Visitor) -> None:
    await changed(grace, "/categories", name="Cats", description="")
    await changed(grace, "/pets", **BELLA)
    await changed(grace, "/pets/1", name="Bello", categoryId="2")
    await changed(grace, "/pets/1", status="sold")
    await changed(grace, "/pets/1", status="available")
    await changed(grace, "/pets/1", status="")
    await changed(grace, "/pets/1", status="pending")
    assert history(await grace.get("/pets/1")) == [
        "Grace set the status to pending",
        "Grace removed the status",
        "Grace made it available again",
        "Grace sold it",
        "Grace changed the name from Bella to Bello and changed the category from Dogs to Cats",
        "Grace added it",
    ]


@pytest.mark.each_database
async def test_the_page_of_an_order_tells_who_changed_it(service: Service, grace: Visitor) -> None:
    await changed(grace, "/pets", **BELLA)
    await changed(grace, "/pets/1/reserve")
    for date in ("2026-12-24T10:00", "2026-12-25T10:00", ""):
        await changed(grace, "/orders/1", was_shipDate="?", shipDate=date)
    for price in ("249", "199", ""):
        await changed(grace, "/orders/1", was_amount="?", amount=price)
    await changed(grace, "/orders/1", buyer="Ada")
    await changed(grace, "/orders/1/approve")
    await changed(grace, "/orders/1/deliver")
    page = await grace.get("/orders/1")
    assert history(page) == [
        "Grace delivered it",
        "Grace approved it",
        "Grace changed the buyer or the note of it",
        "Grace removed the price",
        "Grace changed the price from $249.00 to $199.00",
        "Grace set the price to $249.00",
        "Grace removed the ship date",
        "Grace changed the ship date from 24 Dec 2026, 10:00 to 25 Dec 2026, 10:00",
        "Grace set the ship date to 24 Dec 2026, 10:00",
        "Grace placed it for Bella",
    ]
    assert 'for <a href="/console/pets/1"><bdi>Bella</bdi></a>' in page.text
    await changed(grace, "/pets", **BELLA)
    await changed(grace, "/pets/2/reserve")
    service.clock.advance(DAY / SECOND)
    later = await signed_in_again(service, grace.key_id)
    assert history(await later.get("/orders/2"))[0] == (
        "The service cancelled it, because it was not approved in time"
    )


async def test_names_are_escaped_and_isolated(service: Service, grace: Visitor) -> None:
    await changed(grace, "/pets", **BELLA)
    for name, escaped in (
        ("<b>Bella</b>", "&lt;b&gt;Bella&lt;/b&gt;"),
        ("\u202eBella\u2066", "\u202eBella\u2066"),
        ("Be&lla", "Be&amp;lla"),
    ):
        visitor = await signed_in_person(service, name=name)
        await changed(visitor, "/pets/1", name=name)
        page = (await visitor.get("/pets/1")).text
        assert f"<bdi>{escaped}</bdi> changed the name from <bdi>" in page
        assert f"</bdi> to <bdi>{escaped}</bdi>" in page
        assert "<b>" not in page


async def test_a_line_tells_how_long_ago_and_when(service: Service, grace: Visitor) -> None:
    spans = {0: "just now", 59 * SECOND: "just now", MINUTE: "a minute ago"}
    spans |= {59 * MINUTE: "59 minutes ago", HOUR: "an hour ago", 23 * HOUR: "23 hours ago"}
    spans |= {DAY: "a day ago", 20 * DAY: "20 days ago"}
    assert {span: ago_in_words(span) for span in spans} == spans
    await changed(grace, "/pets", **BELLA)
    service.clock.advance(20 * 60)
    page = (await grace.get("/pets/1")).text
    assert '<time datetime="2026-12-01T12:00:00Z" data-ago>20 minutes ago</time>, ' in page
    assert '<time datetime="2026-12-01T12:00:00Z">1 Dec 2026, 12:00</time></span></li>' in page


async def test_the_page_of_something_deleted_tells_its_history(grace: Visitor) -> None:
    for path, fields, told in (
        ("/pets/1", BELLA, "Bella, pet 1, was deleted"),
        ("/categories/2", {"name": "Cats", "description": ""}, "Cats, category 2, was deleted"),
    ):
        await changed(grace, path[:-2], **fields)
        await changed(grace, f"{path}/delete")
        gone = await grace.get(path)
        assert gone.status_code == 404
        assert told in words(gone)
        assert history(gone) == ["Grace deleted it", "Grace added it"]
