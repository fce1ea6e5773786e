"""Every role can use the pages that look different to it, on a phone in the dark and at a desk.

``test_looks_in_a_browser.py`` looks at every page with every right.
"""

import re
from collections.abc import Callable, Iterator
from functools import cache
from uuid import uuid4

import httpx
import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from petstore.console.page import HOME
from petstore.keys.model import ROLES
from support.process import ServerProcess
from support.sight import assert_no_barrier
from support.staff import cookies_of_administrator, issue_for_console
from support.visitor import SAME_ORIGIN
from website.screenshots import addresses

PASSWORD = "correct horse"
OWNER = ("pets:read", "orders:read", "webhooks:write")
# Names, numbers, and the values of attributes: what may differ in two pages that look the same.
VALUES = re.compile(r'="[^"]*"|(?<=>)[^<]+')


@pytest.fixture(scope="module")
def stocked(small_shop: ServerProcess) -> Iterator[httpx.Client]:
    """The interface of a shop that has one of everything, beside a pet that is sold."""
    token = issue_for_console(small_shop)
    headers = {"Authorization": f"Bearer {token}"} | SAME_ORIGIN
    with httpx.Client(base_url=small_shop.url, headers=headers) as client:
        category = add(client, "/categories", name="Dogs")["id"]
        for is_sold in (True, False):
            pet = add(client, "/pets", name="Rex", categoryId=category, status="available")["id"]
            add(client, "/store/orders", petId=pet, buyer="Ada", amount=24_900, complete=is_sold)
        client.cookies.update(cookies_of_administrator(small_shop, token))
        yield client


def add(client: httpx.Client, path: str, **body: object) -> dict[str, object]:
    """Add something by the interface, and return it."""
    added: dict[str, object] = client.post(f"/v1{path}", json=body).raise_for_status().json()
    return added


def person(client: httpx.Client, role: str, context: BrowserContext) -> None:
    """Sign a new person in."""
    new = add(client, "/people", name=role, login=f"{uuid4()}", role=role)
    invitation = new["invitation"]["url"]  # type: ignore[index]
    signed = context.request.post(invitation, form={"password": PASSWORD}, headers=SAME_ORIGIN)
    assert signed.ok, signed.text()


def owner(shop: ServerProcess, context: BrowserContext) -> None:
    """Sign the owner of a key in, who has a webhook."""
    token = shop.issue("business", *(word for scope in OWNER for word in ("--scope", scope)))
    headers = {"Authorization": f"Bearer {token}"}
    hook = {"url": "https://shop.example/hooks", "types": ["order.placed"]}
    httpx.post(f"{shop.url}/v1/webhooks", headers=headers, json=hook).raise_for_status()
    context.request.post(f"{shop.url}{HOME}/sign-in", form={"key": token}, headers=SAME_ORIGIN)


def looks_of(read: Callable[[str], str], path: str) -> str:
    """Return what a page looks like: its content without names and values."""
    return VALUES.sub("", read(path).partition("<main")[2].partition("</main>")[0])


@pytest.fixture(scope="module")
def page(browser: Browser) -> Page:
    """The page on which all roles look around: a page of its own costs more than to look."""
    return browser.new_context(reduced_motion="reduce").new_page()


@pytest.fixture(scope="module")
def looked_at() -> set[str]:
    """What looked-at pages look like: roles that see the same have the same barriers."""
    return set()


@pytest.mark.parametrize("role", [*ROLES, "owner of a key"])
def test_a_page_that_looks_different_to_a_role_is_accessible(
    role: str,
    small_shop: ServerProcess,
    stocked: httpx.Client,
    page: Page,
    looked_at: set[str],
) -> None:
    context = page.context
    context.clear_cookies()
    if role in ROLES:
        person(stocked, role, context)
    else:
        owner(small_shop, context)

    @cache
    def read(path: str) -> str:
        return context.request.get(f"{small_shop.url}{path}").text()

    def read_with_every_right(path: str) -> str:
        return stocked.get(path, follow_redirects=True).text

    found = dict(addresses(read))
    assert ("pets-petId" if role in ROLES else "webhooks-webhookId") in found
    for path in found.values():
        looks = looks_of(read, path)
        is_new = looks not in looked_at and looks != looks_of(read_with_every_right, path)
        # The first page has the menu of the role, too.
        if is_new or path == HOME:
            looked_at.add(looks)
            page.goto(f"{small_shop.url}{path}")
            assert page.locator("h1").count() == 1
            assert_no_barrier(page)
