"""What the pages weigh on the way to a browser."""

import gzip
import re
from collections.abc import Iterator

import httpx
import pytest

from petstore.console.console import PAGES
from petstore.console.page import HOME
from support.process import ServerProcess
from support.staff import cookies_of_administrator, issue_for_console

MAX_BYTES = 10_000
"""The most bytes of a page that is compressed; the style sheet and the script are kept."""

PATHS = sorted({page.path for page in PAGES if page.method == "GET" and not page.has_file})


@pytest.fixture(scope="module")
def client(shop: ServerProcess) -> Iterator[httpx.Client]:
    """A browser that is signed in with every right."""
    cookies = cookies_of_administrator(shop, issue_for_console(shop))
    with httpx.Client(base_url=shop.url, cookies=cookies, follow_redirects=True) as client:
        yield client


@pytest.mark.parametrize("path", PATHS)
def test_a_page_of_the_demo_weighs_at_most_10_kb(client: httpx.Client, path: str) -> None:
    page = client.get(f"{HOME}{re.sub(r'{[^}]+}', '3', path)}")
    assert len(gzip.compress(page.content)) <= MAX_BYTES


def test_the_longest_list_of_the_demo_weighs_at_most_10_kb(client: httpx.Client) -> None:
    for path in ("/orders?status=delivered", "/pets?status=sold"):
        page = client.get(f"{HOME}{path}")
        assert page.is_success
        assert len(gzip.compress(page.content)) <= MAX_BYTES, path


def test_style_sheet_and_script_are_sent_once(client: httpx.Client) -> None:
    page = client.get(f"{HOME}/help").text
    found = re.findall(r'(?:href|src)="([^"]*/assets/[^"]*)"', page)
    assert {path.rpartition(".")[2] for path in found} == {"css", "js", "svg"}
    for path in found:
        asset = client.get(path)
        assert "immutable" in asset.headers["cache-control"]
        assert len(gzip.compress(asset.content)) <= MAX_BYTES
