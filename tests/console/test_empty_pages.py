"""A page that has nothing to show says what to do next, to whom may do it."""

import re

import httpx
import pytest

from support.service import Service
from support.visitor import signed_in, words

pytestmark = pytest.mark.anyio


def empty(page: httpx.Response) -> str:
    """Return the markup of what a page has in place of rows."""
    return "".join(re.findall(r'class="empty">(.*?)</p>', page.text, re.DOTALL))


@pytest.mark.parametrize(
    ("path", "text", "links"),
    [
        ("/pets", "There are no pets yet.", ["/pets/new", "/import"]),
        ("/pets?name=Rex", "No pet matches.", ["/pets", "/pets/new"]),
        ("/orders", "No orders here. Reserve or sell a pet on its page.", []),
        ("/orders?from=2026-12-01", "No order matches.", ["/orders"]),
        ("/orders?find=Rex", "Nothing found.", ["/orders"]),
        ("/categories", "There are no categories here.", ["#name"]),
        ("/sales", "Nothing was sold on these days.", ["/orders?status=approved"]),
        ("/keys?name=Nobody", "No key matches.", ["/keys"]),
        ("/activity?kind=category", "Nothing found.", ["/activity"]),
        ("/today", "There are no pets yet.", ["/pets/new", "/import"]),
    ],
)
async def test_an_empty_page_says_what_to_do_next(
    service: Service, path: str, text: str, links: list[str]
) -> None:
    page = await (await signed_in(service)).get(path)
    shown = empty(page)
    assert text in shown, words(page)
    for link in links:
        assert f'href="{link if link.startswith("#") else f"/console{link}"}"' in shown


@pytest.mark.parametrize(
    ("path", "link"),
    [
        ("/pets", "/pets/new"),
        ("/categories", "#name"),
        ("/today", "/pets/new"),
    ],
)
async def test_an_empty_page_offers_nothing_that_a_person_may_not_do(
    service: Service, path: str, link: str
) -> None:
    reader = await signed_in(service, scopes=frozenset({"pets:read", "orders:read"}))
    page = await reader.get(path)
    assert empty(page)
    assert link not in empty(page)
