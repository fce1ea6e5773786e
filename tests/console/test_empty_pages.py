"""A page that has nothing to show says what to do next, to whom may do it."""

import re

import httpx
import pytest

from support.cases import case
from support.service import Service
from support.visitor import signed_in

pytestmark = pytest.mark.anyio


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
