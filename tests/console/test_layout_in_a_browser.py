"""Every page has one grid, no broken words and little weight, from 320 to 1,600 px."""

import gzip
import re
from collections.abc import Iterator
from typing import Any, Literal, TypeAlias

import pytest
from playwright.sync_api import Browser, Page, expect

from petstore.console.console import PAGES
from petstore.console.page import HOME
from support.browser import Clerk
from support.process import ServerProcess
from support.visitor import issue_for_console

WIDTHS = (320, 390, 1280, 1600)
PATHS = (
    *("/today", "/pets", "/pets/3", "/pets/new", "/orders", "/orders/1", "/sales"),
    *("/categories", "/categories/1", "/import"),
    *("/webhooks", "/webhooks/new", "/keys", "/keys/1", "/keys/new", "/people"),
    *("/people/new", "/activity", "/account", "/help", "/nothing", "/pets/999999999"),
    "/orders?status=approved",
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
BROKEN = """() => [...document.querySelectorAll('main, .bar')].flatMap(part => {
  const walker = document.createTreeWalker(part, NodeFilter.SHOW_TEXT), broken = [];
  for (let node; node = walker.nextNode();) {
    if (!node.parentElement.checkVisibility()) continue;
    const words = node.data.matchAll(/(?<!\\S)[\\p{L}\\p{N}]{2,24}(?![^\\s,.:;])/gu);
    for (const {0: word, index} of words) {
      const range = document.createRange();
      range.setStart(node, index);
      range.setEnd(node, index + word.length);
      const lines = [...range.getClientRects()].map(({bottom}) => Math.round(bottom));
      if (new Set(lines).size > 1) broken.push(word);
    }
  }
  return broken;
})"""
TOO_WIDE = """() => [
  document.documentElement.scrollWidth - innerWidth,
  ...[...document.querySelectorAll('.scroll')]
    .map(frame => innerWidth < 480 ? frame.scrollWidth - frame.clientWidth : 0),
  ...[...document.querySelectorAll('main :is(button, .button)')]
    .map(button => button.scrollWidth - button.clientWidth),
].filter(pixels => pixels > 0)"""
SEEN = f"""() => {{
  const page = {{edges: ({EDGES})(), heading: ({HEADING})()}};
  document.querySelectorAll('main details').forEach(each => each.open = true);
  return {{...page, broken: ({BROKEN})(), wide: ({TOO_WIDE})()}};
}}"""
Seen: TypeAlias = dict[tuple[str, int], dict[str, Any]]


def at_width(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})


@pytest.fixture(scope="module")
def clerk(shop: ServerProcess, browser: Browser) -> Iterator[Clerk]:
    """Somebody with every right, whose browser all tests go on with."""
    clerk = Clerk.at(shop, browser, issue_for_console(shop))
    yield clerk
    clerk.leave()


@pytest.fixture(scope="module")
def seen(clerk: Clerk) -> Seen:
    """What the scripts find on every page at every width: each page is opened once for all."""
    clerk.pet(name="Donaudampfschiff Pumpernickel")
    found = {}
    for path in PATHS:
        clerk.open(path)
        for width in WIDTHS:
            at_width(clerk.page, width)
            found[path, width] = clerk.page.evaluate(SEEN)
    return found


def test_every_page_has_one_grid_and_whole_words_and_scrolls_only_downwards(seen: Seen) -> None:
    for width in WIDTHS:
        places = {
            path: tuple(found["heading"]) for (path, at), found in seen.items() if at == width
        }
        assert len({*places.values()}) == 1, places
    for what in ("edges", "broken", "wide"):
        assert {at: found[what] for at, found in seen.items() if found[what]} == {}, what


def test_filters_are_behind_one_button_on_a_phone_and_chips_say_what_is_set(clerk: Clerk) -> None:
    page = clerk.page
    at_width(page, 320)
    clerk.open("/pets?name=&status=available&categoryId=1")
    expect(page.get_by_label("Name or number")).to_be_visible()
    status = page.get_by_role("search").get_by_label("Status")
    expect(status).to_be_hidden()
    chips = page.get_by_role("list", name="Filters that are set").get_by_role("link")
    expect(chips).to_have_text(
        ["Remove the filter Status: available", "Remove the filter Category: Dogs"]
    )
    page.get_by_text("Filters (2)").click()
    expect(status).to_be_visible()
    chips.first.click()
    expect(chips).to_have_text(["Remove the filter Category: Dogs"])
    expect(page.get_by_text("Filters (1)")).to_be_visible()
    expect(page.locator("main tbody tr .sold").first).to_be_visible()


# The contrast (WCAG 2) of each of the twelve colours with the panel that it stands on.
CONTRASTS = """() => {
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const luminance = colour => {
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const [red, green, blue] = [...canvas.getImageData(0, 0, 1, 1).data].map(
      part => part / 255 <= .04045 ? part / 255 / 12.92 : ((part / 255 + .055) / 1.055) ** 2.4);
    return .2126 * red + .7152 * green + .0722 * blue;
  };
  const ground = luminance(getComputedStyle(document.querySelector('.panel')).backgroundColor);
  const category = document.querySelector('.category');
  return [...Array(12).keys()].map(number => {
    category.className = `category hue-${number}`;
    const own = luminance(getComputedStyle(category, '::before').backgroundColor);
    return (Math.max(own, ground) + .05) / (Math.min(own, ground) + .05);
  });
}"""


def test_the_colours_of_categories_can_be_told_from_the_page(clerk: Clerk) -> None:
    clerk.open("/pets/3")
    schemes: tuple[Literal["dark", "light"], ...] = ("dark", "light")
    for scheme in schemes:
        clerk.page.emulate_media(color_scheme=scheme)
        contrasts = clerk.page.evaluate(CONTRASTS)
        assert len(contrasts) == 12
        assert min(contrasts) >= 3, scheme


def test_the_header_is_one_line_at_every_width(clerk: Clerk) -> None:
    clerk.open("/today")
    heights = {}
    for width in (*WIDTHS, 768, 1024, 1247, 1248, 1343):
        at_width(clerk.page, width)
        heights[width] = clerk.page.locator(".bar").evaluate("bar => bar.offsetHeight")
    assert {*heights.values()} == {52}, heights


def test_a_page_of_the_demo_weighs_at_most_10_kb(shop: ServerProcess, clerk: Clerk) -> None:
    paths = {page.path for page in PAGES if page.method == "GET" and not page.has_file}
    for path in (*sorted(paths), "/orders?status=delivered", "/pets?status=sold"):
        page = clerk.page.context.request.get(f"{shop.url}{HOME}{re.sub('{[^}]+}', '3', path)}")
        assert len(gzip.compress(page.body())) <= 10_000, path
