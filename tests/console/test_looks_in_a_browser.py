"""Everybody can use every page: on a phone and a desk, light and dark, with the keyboard alone."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Browser, BrowserContext, Page, expect

from petstore.console.page import HOME
from petstore.console.pages import PAGES
from petstore.console.templates import isolated
from petstore.domain.api_keys import SCOPES
from support.browser import Visit
from support.process import ServerProcess
from support.visitor import SAME_ORIGIN

# 320 px is also what 1280 px are with 400 % zoom (WCAG 1.4.10).
PHONE: dict[str, Any] = {"viewport": {"width": 320, "height": 568}, "color_scheme": "dark"}
DESK: dict[str, Any] = {"viewport": {"width": 1280, "height": 800}, "color_scheme": "light"}

NAMES = (
    "<img src=x onerror=ran=1><script>ran=1</script>",
    "\N{RIGHT-TO-LEFT OVERRIDE}gnp.evil\N{LEFT-TO-RIGHT ISOLATE}",
    "\N{DOG FACE}" * 255,
    "W" * 255,
    "{{7*7}}${7*7}<%= 7*7 %>",
    "javascript:ran=1//'\"></title><script>ran=1</script>",
    "e" + "\N{COMBINING CYRILLIC MILLIONS SIGN}" * 200,
)
ROWS = f"name,categoryId\n{NAMES[0]},1\n{NAMES[2]},no\n".encode()
PATHS = [page.path for page in PAGES if page.method == "GET"]

AXE = {
    "resultTypes": ["violations"],
    "rules": {"target-size": {"enabled": True}},
}
AXE_OF_COLOURS = {
    "resultTypes": ["violations"],
    "runOnly": ["color-contrast", "target-size", "link-in-text-block"],
    "rules": {"target-size": {"enabled": True}},
}
OPEN_ALL = "document.querySelectorAll('details').forEach(details => details.open = true)"
# Links within a text may be as small as the text (WCAG 2.5.8).
TOO_SMALL = """() => [...document.querySelectorAll('a, button, input, select, textarea, summary')]
  .filter(control => control.checkVisibility() && getComputedStyle(control).display != 'inline')
  .filter(control => {
    const {width, height} = control.getBoundingClientRect();
    return width < 24 || height < 24;
  }).map(control => control.outerHTML.slice(0, 80))"""
MOVING = """() => [...document.querySelectorAll('*')].filter(element => {
  const style = getComputedStyle(element);
  return style.animationName != 'none' || parseFloat(style.transitionDuration) > 0;
}).map(element => element.outerHTML.slice(0, 80))"""
TOO_WIDE = """() => document.documentElement.scrollWidth <= innerWidth ? []
  : [...document.querySelectorAll('body *')]
    .filter(element => element.getBoundingClientRect().right > innerWidth + 1)
    .filter(element => !element.parentElement.closest('.scroll'))
    .map(element => element.outerHTML.slice(0, 80))"""
# Whether the sentence goes on from left to right after a name: the "s" of "is" is behind the "i".
RUNS_ON = """() => {
  const text = document.querySelector('.notice p').firstChild;
  const start = text.data.lastIndexOf('is in the store');
  const [i, s] = [start, start + 1].map(index => {
    const range = document.createRange();
    range.setStart(text, index);
    range.setEnd(text, index + 1);
    return range.getBoundingClientRect().left;
  });
  return i < s;
}"""
# The controls in the order of the document, and a record of those that the focus meets.
WATCH_FOCUS = """() => {
  const controls = 'a[href], button, input, select, textarea, summary, [tabindex="0"]';
  window.controls = [...document.querySelectorAll(controls)].filter(
    control => control.type != 'hidden' && !control.disabled && control.checkVisibility()
    && (control.type != 'radio' || control.checked));
  window.met = [];
  window.unseen = [];
  const bar = document.querySelector('.bar');
  document.addEventListener('focusin', ({target}) => {
    if (window.met.includes(target)) return;
    window.met.push(target);
    const style = getComputedStyle(target);
    const isHidden = !bar.contains(target) && !target.matches('.skip')
      && target.getBoundingClientRect().bottom <= bar.getBoundingClientRect().bottom;
    if (style.outlineStyle == 'none' || parseFloat(style.outlineWidth) < 2 || isHidden)
      window.unseen.push(target.outerHTML.slice(0, 80));
  });
  window.controls[0].focus();
  return window.controls.length + 9 * window.controls.filter(c => /date|time/.test(c.type)).length;
}"""
MISSED = """() => window.controls.filter((control, i) => control != window.met[i])
  .map(control => control.outerHTML.slice(0, 80))"""


@dataclass
class Shop:
    """A shop whose animals have hostile names, and somebody who is signed in with every right."""

    url: str
    token: str
    ids: dict[str, Any]
    queries: dict[str, str]
    phone: BrowserContext
    desk: BrowserContext

    def address(self, path: str) -> str:
        """Return the address of a page, whose parameter is filled in."""
        filled = re.sub(r"\{(\w+)\}", lambda parameter: str(self.ids.get(parameter[1], 1)), path)
        return f"{self.url}{HOME}{filled}{self.queries.get(path, '')}"


@pytest.fixture(scope="module")
def visited(shop: ServerProcess, browser: Browser) -> Iterator[Shop]:
    """The shop, with an animal of each name, an order of each second one, and a browser."""
    scopes = (word for scope in SCOPES for word in ("--scope", scope))
    token = shop.issue("enterprise", *scopes)
    headers = {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=f"{shop.url}/v1", headers=headers) as client:
        category = (
            client.post("/categories", json={"name": f"Hostile {uuid4()}"})
            .raise_for_status()
            .json()
        )
        for name in NAMES:
            body = {"name": name, "categoryId": category["id"], "status": "available"}
            pet = client.post("/pets", json=body).raise_for_status().json()
        order = client.post("/store/orders", json={"petId": pet["id"]}).raise_for_status().json()
        key = client.get("/keys").raise_for_status().json()[-1]
        body = {"url": "https://shop.example/hooks", "types": ["pet.created"]}
        webhook = client.post("/webhooks", json=body).raise_for_status().json()
    contexts = [browser.new_context(reduced_motion="reduce", **look) for look in (PHONE, DESK)]
    for context in contexts:
        response = context.request.post(
            f"{shop.url}{HOME}/sign-in", form={"key": token}, headers=SAME_ORIGIN
        )
        assert response.ok, response.text()
    started = contexts[0].request.post(
        f"{shop.url}{HOME}/import",
        multipart={"file": {"name": "a.csv", "mimeType": "text/csv", "buffer": ROWS}},
        headers=SAME_ORIGIN,
    )
    ids = {
        "petId": pet["id"],
        "categoryId": category["id"],
        "orderId": order["id"],
        "keyId": key["id"],
        "webhookId": webhook["id"],
        "importId": started.url.rpartition("/")[2],
    }
    # Few rows are as telling as many, and looked at faster; the script follows what it names.
    queries = {"/pets": f"?categoryId={category['id']}", "/changes": "?kinds=pet"}
    yield Shop(shop.url, token, ids, queries, *contexts)
    for context in contexts:
        context.close()


@pytest.fixture(params=["phone", "desk"])
def look(request: pytest.FixtureRequest, visited: Shop) -> BrowserContext:
    context: BrowserContext = getattr(visited, request.param)
    return context


def violations(page: Page, options: dict[str, Any]) -> list[str]:
    """Return what axe finds, one line for each element."""
    found = Axe().run(page, options=options).response["violations"]
    return [f"{rule['id']}: {node['html'][:200]}" for rule in found for node in rule["nodes"]]


def is_page(address: str, context: BrowserContext) -> bool:
    """Return whether an address has a page: no file, and no way to another page."""
    response = context.request.get(address, max_redirects=0)
    assert response.status < 400, response.text()
    return response.headers.get("content-type", "").startswith("text/html")


@pytest.mark.parametrize("path", PATHS)
def test_a_page_on_a_phone_fits_obeys_its_policy_and_has_no_barrier(
    path: str, visited: Shop
) -> None:
    if not is_page(visited.address(path), visited.phone):
        return
    visit = Visit.to(visited.address(path), visited.phone)
    visit.page.evaluate(OPEN_ALL)
    assert visit.page.evaluate(TOO_WIDE) == []
    assert visit.page.evaluate(TOO_SMALL) == []
    assert visit.page.evaluate(MOVING) == []
    assert visit.page.locator("h1").count() == 1
    assert violations(visit.page, AXE) == []
    assert visit.page.evaluate("window.ran") is None
    assert visit.errors == []
    assert all(address.startswith(visited.url) for address in visit.requested)
    visit.page.close()


@pytest.mark.parametrize("path", PATHS)
def test_the_keyboard_reaches_each_control_of_a_page_in_order_and_shows_where_it_is(
    path: str, visited: Shop
) -> None:
    if not is_page(visited.address(path), visited.desk):
        return
    visit = Visit.to(visited.address(path), visited.desk)
    page = visit.page
    page.evaluate(OPEN_ALL)
    assert page.evaluate(TOO_WIDE) == []
    assert violations(page, AXE_OF_COLOURS) == []
    for _ in range(page.evaluate(WATCH_FOCUS) - 1):
        page.keyboard.press("Tab")
    assert page.evaluate(MISSED) == []
    assert page.evaluate("window.unseen") == []
    assert visit.errors == []
    page.close()


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_a_hostile_name_is_shown_as_it_is(name: str, visited: Shop) -> None:
    visit = Visit.to(f"{visited.url}{HOME}/pets/new", visited.phone)
    page = visit.page
    page.get_by_label("Name").fill(name)
    page.get_by_label("Category").fill("1")
    page.get_by_role("button", name="Add").click()
    expect(page.locator(".notice")).to_contain_text(f"{isolated(name)} is in the store")
    assert page.evaluate(RUNS_ON)
    assert page.evaluate(TOO_WIDE) == []
    page.goto(f"{visited.url}{HOME}/pets?{urlencode({'name': name[:20]})}")
    found = page.locator("tbody a").first
    expect(found).to_have_text(name)
    found.click()
    expect(page.locator("h1")).to_have_text(name)
    assert page.title() == f"{isolated(name)} \N{EN DASH} Petstore"
    assert page.evaluate("window.ran") is None
    assert visit.errors == []
    page.close()


def test_the_menu_of_a_phone_opens_and_closes_by_the_keyboard(visited: Shop) -> None:
    page = visited.phone.new_page()
    page.goto(visited.address("/pets"))
    links = page.get_by_role("navigation", name="Pages", exact=True)
    expect(links).to_be_hidden()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(links).to_be_visible()
    assert violations(page, AXE) == []
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Animals")).to_be_focused()
    page.keyboard.press("Escape")
    expect(links).to_be_hidden()
    page.close()


def test_a_refused_form_has_the_focus_on_its_problem_which_leads_to_the_field(
    visited: Shop, look: BrowserContext
) -> None:
    page = look.new_page()
    page.goto(visited.address("/pets/new"))
    page.get_by_label("Name").fill("Rex")
    page.get_by_label("Category").fill("no such category")
    page.get_by_role("button", name="Add").click()
    box = page.get_by_role("alert")
    expect(box).to_be_focused()
    assert page.title().startswith("Error: ")
    assert violations(page, AXE) == []
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Category")).to_be_focused()
    described = page.get_by_label("Category").get_attribute("aria-describedby") or ""
    assert "categoryId-problem" in described.split()
    page.close()


@pytest.mark.parametrize("screen", [PHONE, DESK], ids=["phone", "desk"])
def test_the_page_to_sign_in_has_no_barrier_for_a_person_without_a_session(
    screen: dict[str, Any], browser: Browser, visited: Shop
) -> None:
    context = browser.new_context(**screen)
    page = context.new_page()
    page.goto(visited.address("/pets"))
    expect(page.get_by_label("API key")).to_be_focused()
    page.get_by_label("API key").fill("ps_live_wrong")
    page.keyboard.press("Enter")
    expect(page.get_by_label("API key")).to_have_accessible_description(re.compile("key"))
    assert page.title().startswith("Error: ")
    assert violations(page, AXE) == []
    context.close()


def test_a_page_that_is_not_there_has_no_barrier(visited: Shop, look: BrowserContext) -> None:
    page = look.new_page()
    response = page.goto(visited.address("/nothing"))
    assert response
    assert response.status == 404
    assert violations(page, AXE) == []
    page.close()


def test_the_form_of_a_key_shows_limits_only_for_the_plan_that_has_them(visited: Shop) -> None:
    page = visited.phone.new_page()
    page.goto(visited.address("/keys/new"))
    limit = page.get_by_label("Own limit: requests a minute")
    expect(limit).to_be_hidden()
    page.get_by_label("Plan").select_option("enterprise")
    expect(limit).to_be_visible()
    page.close()
