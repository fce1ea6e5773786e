"""Every page has one grid, one height of headings, and no broken words, from 320 to 1,600 px."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from support.clerk import Clerk, issue_for_console
from support.process import ServerProcess

WIDTHS = (320, 390, 1280, 1600)
PATHS = (
    *("/today", "/pets", "/pets/3", "/pets/new", "/orders", "/orders/1", "/orders/new", "/sales"),
    *("/inventory", "/categories", "/categories/1", "/import", "/export", "/orders/export"),
    *("/usage", "/webhooks", "/webhooks/new", "/keys", "/keys/1", "/keys/new", "/people"),
    *("/people/new", "/activity", "/session", "/help", "/nothing", "/pets/999999999"),
)
EDGES = """() => {
  const inner = element => {
    const {left, right} = element.getBoundingClientRect(), style = getComputedStyle(element);
    return [left + parseFloat(style.paddingLeft), right - parseFloat(style.paddingRight)];
  };
  const [left, right] = inner(document.querySelector('main'));
  const controls = [...document.querySelectorAll('.bar :is(a, button)')]
    .filter(control => control.checkVisibility());
  const found = [
    ...[...document.querySelectorAll('.bar, .foot')].flatMap(inner),
    document.querySelector('.brand').getBoundingClientRect().left,
    document.querySelector('h1').getBoundingClientRect().left,
    Math.max(...controls.map(control => control.getBoundingClientRect().right)),
  ];
  return found.filter(edge => Math.abs(edge - left) > 1 && Math.abs(edge - right) > 1);
}"""
HEADING = """() => {
  const {top, height} = document.querySelector('h1').getBoundingClientRect();
  return [Math.round(top), Math.round(height)];
}"""
ROW = """() => {
  const heading = document.querySelector('h1');
  const row = heading.closest('.head') ?? heading;
  return Math.round(row.nextElementSibling.getBoundingClientRect().top);
}"""


def at_width(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})


@pytest.fixture(scope="module")
def clerk(shop: ServerProcess, browser: Browser) -> Iterator[Clerk]:
    """Somebody with every right, whose browser all tests go on with."""
    clerk = Clerk.at(shop, browser, issue_for_console(shop))
    yield clerk
    clerk.leave()


def seen_at_every_width(clerk: Clerk, script: str) -> Iterator[tuple[str, int, Any]]:
    """Yield what a script finds on every page at every width."""
    for path in PATHS:
        clerk.open(path)
        for width in WIDTHS:
            at_width(clerk.page, width)
            yield path, width, clerk.page.evaluate(script)


def test_header_content_and_footer_have_the_same_edges(clerk: Clerk) -> None:
    found = seen_at_every_width(clerk, EDGES)
    assert [(path, width, edges) for path, width, edges in found if edges] == []


def test_headings_have_one_height_and_place(clerk: Clerk) -> None:
    found = [*seen_at_every_width(clerk, HEADING)]
    for width in WIDTHS:
        places = {path: tuple(place) for path, at, place in found if at == width}
        assert len(set(places.values())) == 1, places


def test_a_heading_takes_as_much_with_buttons_as_without(clerk: Clerk) -> None:
    at_width(clerk.page, 1280)
    tops = {}
    for path in ("/pets", "/today", "/keys", "/pets/3", "/nothing"):
        clerk.open(path)
        tops[path] = clerk.page.evaluate(ROW)
    assert len(set(tops.values())) == 1, tops


def test_who_is_not_signed_in_sees_the_same_grid(shop: ServerProcess, browser: Browser) -> None:
    page = browser.new_page()
    page.goto(f"{shop.url}/console/sign-in")
    for width in WIDTHS:
        at_width(page, width)
        assert page.evaluate(EDGES) == [], width
    expect(page.get_by_role("link", name="Docs")).to_have_attribute("href", f"{shop.url}/docs/")
    page.close()
