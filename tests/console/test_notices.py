"""What a page tells a person: what they have just done, and what to do if there is nothing."""

import re
import secrets
from base64 import urlsafe_b64encode
from hmac import digest
from zlib import compress

import httpx
import pytest

from support.cases import case
from support.page_forms import buttons_of
from support.service import Service
from support.visitor import COOKIE, Visitor, newcomer, signed_in, words

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
