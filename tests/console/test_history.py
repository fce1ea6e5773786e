"""What a page tells: what was just done and before, by whom, and what to do if there is nothing."""

import re
import secrets
from base64 import urlsafe_b64encode
from hmac import digest
from zlib import compress

import httpx
import pytest

from petstore.clock import DAY, HOUR, MINUTE, SECOND
from petstore.console.forms import isolated
from petstore.console.templates import ago_in_words
from support.cases import case
from support.page_forms import buttons_of
from support.service import Service
from support.visitor import (
    COOKIE,
    Visitor,
    newcomer,
    signed_in,
    signed_in_again,
    signed_in_person,
    words,
)

pytestmark = pytest.mark.anyio

NAME = "petstore_notice"
BELLA = {"name": "Bella", "categoryId": "1", "status": "available"}


def signed(record: bytes, secret: bytes) -> str:
    key = digest(secret, b"petstore console notice", "sha256")
    packed = compress(record)
    return urlsafe_b64encode(digest(key, packed, "sha256") + packed).decode("ascii")


@pytest.mark.usefixtures("dogs")
async def test_a_notice_shows_once_in_its_own_session_on_a_page_that_a_person_opens(
    service: Service, staff: Visitor
) -> None:
    hostile = "\N{RIGHT-TO-LEFT OVERRIDE}gnp.evil"
    done = await staff.post("/pets", **BELLA | {"name": hostile})
    target = done.headers["location"]
    assert "gnp" not in target
    other = await signed_in(service)
    other.client.cookies.set(NAME, staff.client.cookies[NAME])
    refresh = {"Console-Refresh": "1"}
    for visitor, headers, shown in (
        *((other, {}, False), (staff, refresh, False), (staff, {}, True), (staff, {}, False)),
    ):
        page = await visitor.client.get(target, headers=headers)
        assert (f"<p>Added \u2068{hostile}\u2069 (#1).</p>" in page.text) == shown
    page = await staff.get("/pets/1")
    assert f"<title>\u2068{hostile}\u2069 \N{EN DASH} Petstore</title>" in page.text
    sold = await staff.submit("/pets/1/sell")
    assert f"<p>Sold \u2068{hostile}\u2069 (order 1).</p>" in sold.text


async def test_a_notice_that_anybody_made_up_is_ignored(service: Service, staff: Visitor) -> None:
    stranger = newcomer(service)  # has no secret to sign it with
    stranger.client.cookies.set(NAME, signed(b'{"text":"Pay here"}', b""))
    for path in ("/sign-in", "/nothing"):
        assert "Pay here" not in (await stranger.get(path)).text
    secret = staff.client.cookies[COOKIE].encode("ascii")
    texts = (b"abc", b'{"text":5}', b'{"text":"\xff"}', b'{"text":"%b"}' % (b"x" * 3_000_000))
    made_up = [signed(text, secret) for text in texts]
    for value in (*made_up, signed(b'{"text":"Pay here"}', b"another"), "x", "AAAA"):
        staff.client.cookies.set(NAME, value)
        page = await staff.get("/pets")
        assert page.status_code == 200
        assert 'class="notice"' not in page.text
        staff.client.cookies.delete(NAME)


async def test_a_notice_that_is_too_long_for_a_header_has_no_undo(staff: Visitor) -> None:
    await staff.submit("/categories", name="Dogs")
    for length, buttons in ((10, ["Undo"]), (1000, [])):
        text = "".join(chr(0x4E00 + secrets.randbelow(20_000)) for _ in range(length))
        changed = await staff.post("/categories/1", name="Dogs", description=text)
        assert len(changed.headers["set-cookie"]) < 3500
        page = await staff.client.get(changed.headers["location"])
        assert "Dogs is changed." in words(page)
        assert [button for button in buttons_of(page) if button == "Undo"] == buttons


def empty(page: httpx.Response) -> str:
    """Return the markup of what a page has in place of rows."""
    return "".join(re.findall(r'class="empty">(.*?)</p>', page.text, re.DOTALL))


async def test_an_empty_page_says_what_to_do_next_to_whom_may_do_it(service: Service) -> None:
    admin = await signed_in(service)
    reader = await signed_in(service, scopes=frozenset({"pets:read", "orders:read"}))
    for path, text, *links in (
        ("/pets", "There are no pets yet.", "/console/pets/new", "/console/import"),
        ("/pets?name=Rex", "No pet matches.", "/console/pets", "/console/pets/new"),
        ("/orders", "No orders here. Reserve or sell a pet on its page."),
        ("/orders?from=2026-12-01", "No order matches.", "/console/orders"),
        ("/orders?find=Rex", "Nothing found.", "/console/orders"),
        ("/categories", "There are no categories here.", "#name"),
        ("/sales", "Nothing was sold on these days.", "/console/orders?status=approved"),
        ("/keys?name=Nobody", "No key matches.", "/console/keys"),
        ("/activity?kind=category", "Nothing found.", "/console/activity"),
        ("/today", "There are no pets yet.", "/console/pets/new", "/console/import"),
    ):
        with case(path):
            shown = empty(await admin.get(path))
            assert text in shown
            for link in links:
                assert f'href="{link}"' in shown
    for path, link in (("/pets", "/pets/new"), ("/categories", "#name"), ("/today", "/pets/new")):
        shown = empty(await reader.get(path))
        assert shown
        assert link not in shown


# The history on the pages of pets, orders and categories


@pytest.fixture
async def grace(service: Service, dogs: None) -> Visitor:  # noqa: ARG001
    """A clerk, in a shop with dogs."""
    return await signed_in_person(service, "clerk", "Grace")


def history(page: httpx.Response) -> list[str]:
    """Return the lines of the history on a page, without their times."""
    panel = page.text.partition('id="history"')[2].partition("</section>")[0]
    items = re.findall(r"<li data-resource=\"[^\"]+\"><span>(.*?)</span> <span", panel)
    return [" ".join(re.sub("<[^>]*>", "", item).split()) for item in items]


@pytest.mark.each_database
async def test_the_page_of_a_pet_tells_who_changed_it_newest_first(grace: Visitor) -> None:
    await grace.submit("/categories", name="Cats", description="")
    await grace.submit("/pets", **BELLA)
    await grace.submit("/pets/1", name="Bello", categoryId="2")
    await grace.submit("/pets/1", status="sold")
    await grace.submit("/pets/1", status="available")
    await grace.submit("/pets/1", status="")
    await grace.submit("/pets/1", status="pending")
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
    await grace.submit("/pets", **BELLA)
    await grace.submit("/pets/1/reserve")
    for date in ("2026-12-24T10:00", "2026-12-25T10:00", ""):
        await grace.submit("/orders/1", was_shipDate="?", shipDate=date)
    for price in ("249", "199", ""):
        await grace.submit("/orders/1", was_amount="?", amount=price)
    await grace.submit("/orders/1", buyer="Ada")
    await grace.submit("/orders/1/approve")
    await grace.submit("/orders/1/deliver")
    await grace.submit("/orders/1", was_amount="?", amount="9")
    await grace.submit("/orders/1/return")
    await grace.submit("/orders/1", was_refund="?", refund="7")
    page = await grace.get("/orders/1")
    assert history(page) == [
        "Grace changed the refund from $9.00 to $7.00",
        "Grace returned it",
        "Grace set the price to $9.00",
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
    await grace.submit("/pets", **BELLA)
    await grace.submit("/pets/2/reserve")
    service.clock.advance(DAY / SECOND)
    later = await signed_in_again(service, grace.key_id)
    assert history(await later.get("/orders/2"))[0] == (
        "The service cancelled it, because it was not approved in time"
    )


def test_direction_characters_in_a_name_cannot_leave_its_isolate() -> None:
    for name, shown in (
        ("Bella", "Bella"),
        ("\N{RIGHT-TO-LEFT OVERRIDE}gnp.evil", "\N{RIGHT-TO-LEFT OVERRIDE}gnp.evil"),
        ("a\N{POP DIRECTIONAL ISOLATE}b", "ab"),
        ("a\N{RIGHT-TO-LEFT ISOLATE}\N{LEFT-TO-RIGHT ISOLATE}\N{FIRST STRONG ISOLATE}c", "ac"),
        ("a\n\r\x1c\x1d\x1e\x85\N{PARAGRAPH SEPARATOR}b", "a       b"),
    ):
        assert isolated(name) == f"\u2068{shown}\u2069"


async def test_names_are_escaped_and_isolated(service: Service, grace: Visitor) -> None:
    await grace.submit("/pets", **BELLA)
    for name, escaped in (
        ("<b>Bella</b>", "&lt;b&gt;Bella&lt;/b&gt;"),
        ("\u202eBella\u2066", "\u202eBella\u2066"),
        ("Be&lla", "Be&amp;lla"),
    ):
        visitor = await signed_in_person(service, name=name)
        await visitor.submit("/pets/1", name=name)
        page = (await visitor.get("/pets/1")).text
        assert f"<bdi>{escaped}</bdi> changed the name from <bdi>" in page
        assert f"</bdi> to <bdi>{escaped}</bdi>" in page
        assert "<b>" not in page


async def test_a_line_tells_how_long_ago_and_when(service: Service, grace: Visitor) -> None:
    spans = {0: "just now", 59 * SECOND: "just now", MINUTE: "a minute ago"}
    spans |= {59 * MINUTE: "59 minutes ago", HOUR: "an hour ago", 23 * HOUR: "23 hours ago"}
    spans |= {DAY: "a day ago", 20 * DAY: "20 days ago"}
    assert {span: ago_in_words(span) for span in spans} == spans
    await grace.submit("/pets", **BELLA)
    service.clock.advance(20 * 60)
    page = (await grace.get("/pets/1")).text
    assert '<time datetime="2026-12-01T12:00:00Z" data-ago>20 minutes ago</time>, ' in page
    assert '<time datetime="2026-12-01T12:00:00Z">1 Dec 2026, 12:00</time></span></li>' in page


async def test_the_page_of_something_deleted_tells_its_history(grace: Visitor) -> None:
    for path, fields, told in (
        ("/pets/1", BELLA, "Bella, pet 1, was deleted"),
        ("/categories/2", {"name": "Cats", "description": ""}, "Cats, category 2, was deleted"),
    ):
        await grace.submit(path[:-2], **fields)
        await grace.submit(f"{path}/delete")
        gone = await grace.get(path)
        assert gone.status_code == 404
        assert told in words(gone)
        assert history(gone) == ["Grace deleted it", "Grace added it"]
