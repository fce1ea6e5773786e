"""Every role can use every page: on a phone and a desk, light and dark, with the keyboard alone."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any
from uuid import uuid4

import httpx
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from petstore.console.console import PAGES
from petstore.console.forms import isolated
from petstore.console.page import HOME
from petstore.keys.model import ROLES
from support.browser import AXE, DESK, PHONE, VIOLATIONS, Visit, sign_in
from support.process import ServerProcess
from support.visitor import SAME_ORIGIN, invitation, issue_for_console
from support.webhooks import add_failed_deliveries
from website.screenshots import addresses

NAMES = (
    "<img src=x onerror=ran=1><script>ran=1</script>",
    "\N{RIGHT-TO-LEFT OVERRIDE}gnp.evil\N{LEFT-TO-RIGHT ISOLATE}",
    "\N{DOG FACE}" * 255,
    "W" * 255,
    "{{7*7}}${7*7}<%= 7*7 %>",
    "javascript:ran=1//'\"></title><script>ran=1</script>",
    "e" + "\N{COMBINING CYRILLIC MILLIONS SIGN}" * 200,
    "a" + "\N{COMBINING ACUTE ACCENT}" * 20 + "W\N{WORD JOINER}" * 80,  # no line can break it
)
ROWS = f"name,categoryId\n{NAMES[0]},1\n{NAMES[2]},no\n".encode()
PATHS = [page.path for page in PAGES if page.method == "GET"]

EVERY_RULE = {"rules": {"target-size": {"enabled": True}}}
COLOURS = {"runOnly": ["color-contrast", "link-in-text-block"]}
# Links within a text may be as small as the text (WCAG 2.5.8).
TOO_SMALL = """() => [...document.querySelectorAll('a, button, input, select, textarea, summary')]
  .filter(control => control.checkVisibility() && getComputedStyle(control).display != 'inline')
  .filter(control => {
    const {width, height} = control.getBoundingClientRect();
    return width < 24 || height < 24;
  }).map(control => control.outerHTML.slice(0, 80))"""
TOO_WIDE = """() => document.documentElement.scrollWidth <= innerWidth ? []
  : [...document.querySelectorAll('body *')]
    .filter(element => element.getBoundingClientRect().right > innerWidth + 1)
    .filter(element => !element.parentElement.closest('.scroll'))
    .map(element => element.outerHTML.slice(0, 80))"""
OPEN_ALL = "document.querySelectorAll('details').forEach(details => details.open = true)"
MOVING = """() => [...document.querySelectorAll('*')].filter(element => {
  const style = getComputedStyle(element);
  return style.animationName != 'none' || parseFloat(style.transitionDuration) > 0;
}).map(element => element.outerHTML.slice(0, 80))"""
PRESSABLE = """() => [...document.querySelectorAll(
    'button, input, select, textarea, summary, form, nav, .button'
  )].filter(control => control.checkVisibility()).map(control => control.outerHTML.slice(0, 80))"""
# The controls that the keyboard does not reach in the order of the document, or that do not show
# that they have the focus. A script may set the focus as Tab does, once a key was pressed.
UNREACHED = """() => {
  const bar = document.querySelector('.bar');
  return [...document.querySelectorAll(
    'a[href], button, input, select, textarea, summary, [tabindex="0"]'
  )].filter(control => control.type != 'hidden' && !control.disabled && control.checkVisibility()
    && (control.type != 'radio' || control.checked)
  ).filter(control => {
    control.focus();
    if (document.activeElement != control || control.tabIndex != 0) return true;
    const style = getComputedStyle(control);
    const isHidden = !bar.contains(control) && !control.matches('.skip')
      && control.getBoundingClientRect().bottom <= bar.getBoundingClientRect().bottom;
    return style.outlineStyle == 'none' || parseFloat(style.outlineWidth) < 2 || isHidden;
  }).map(control => control.outerHTML.slice(0, 80));
}"""


def on_a_phone(page: Page) -> None:
    page.set_viewport_size(PHONE)
    page.emulate_media(color_scheme="dark")


def assert_no_barrier(page: Page) -> None:
    on_a_phone(page)
    page.evaluate(AXE)
    assert page.evaluate(TOO_WIDE) == []
    assert page.evaluate(TOO_SMALL) == []
    assert page.evaluate(VIOLATIONS, EVERY_RULE) == []
    page.set_viewport_size(DESK)
    page.emulate_media(color_scheme="light")
    assert page.evaluate(TOO_WIDE) == []
    assert page.evaluate(TOO_SMALL) == []
    assert page.evaluate(VIOLATIONS, COLOURS) == []


@dataclass
class Shop:
    """A shop whose pets have hostile names, and a page of somebody who has every right."""

    server: ServerProcess
    token: str
    ids: dict[str, Any]
    queries: dict[str, str]
    visit: Visit
    visit_of_owner: Visit

    @property
    def url(self) -> str:
        return self.server.url

    def address(self, path: str) -> str:
        """Return the address of a page, whose parameter is filled in."""
        filled = re.sub(r"\{(\w+)\}", lambda parameter: str(self.ids.get(parameter[1], 1)), path)
        return f"{self.url}{HOME}{filled}{self.queries.get(path, '')}"


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture(scope="module")
def visited(small_shop: ServerProcess, browser: Browser) -> Iterator[Shop]:
    """The shop, with a pet of each name, orders, a webhook and an import."""
    token = issue_for_console(small_shop)
    with httpx.Client(base_url=f"{small_shop.url}/v1", headers=bearer(token)) as client:

        def add(path: str, **body: Any) -> int:
            return int(client.post(path, json=body).raise_for_status().json()["id"])

        category = add("/categories", name=f"Hostile {uuid4()}")
        for name in NAMES:
            pet = add("/pets", name=name, categoryId=category, status="available")
            if name == NAMES[0]:
                add("/store/orders", petId=pet, buyer=name, amount=24_900, complete=True)
        new = {"name": NAMES[0], "login": f"{uuid4()}", "role": "clerk"}
        invited = client.post("/people", json=new).raise_for_status().json()
        ids = {
            "petId": pet,
            "categoryId": category,
            "orderId": add("/store/orders", petId=pet, buyer=NAMES[0]),
            "keyId": client.get("/keys").raise_for_status().json()[-1]["id"],
            "secret": invited["invitation"]["url"].rpartition("/")[2],
            "personId": invited["id"],
            "webhookId": add("/webhooks", url="https://shop.example/hooks", types=["pet.created"]),
        }
    add_failed_deliveries(small_shop.database, ids["webhookId"], NAMES[0] + NAMES[3])
    context = browser.new_context(viewport=PHONE, reduced_motion="reduce")
    sign_in(context, small_shop, token)
    started = context.request.post(
        f"{small_shop.url}{HOME}/import",
        multipart={"file": {"name": "a.csv", "mimeType": "text/csv", "buffer": ROWS}},
        headers=SAME_ORIGIN,
    )
    ids["importId"] = started.url.rpartition("/")[2]
    queries = {"/pets/selection": f"?pet={pet}.x", "/changes": "?kinds=pet"}
    of_owner = browser.new_context(viewport=PHONE, reduced_motion="reduce")
    url = f"{small_shop.url}{HOME}/sign-in"
    of_owner.request.post(url, form={"key": token}, headers=SAME_ORIGIN)
    visits = (Visit.to(f"{small_shop.url}{HOME}/help", each) for each in (context, of_owner))
    yield Shop(small_shop, token, ids, queries, *visits)
    context.close()
    of_owner.close()


@pytest.fixture
def visit(visited: Shop) -> Visit:
    """The page, on a phone in the dark, with nothing requested and no errors yet."""
    visit = visited.visit
    on_a_phone(visit.page)
    visit.requested.clear()
    visit.errors.clear()
    return visit


def is_page(address: str, context: BrowserContext) -> bool:
    """Return whether an address has a page: no file, and no way to another page."""
    response = context.request.get(address, max_redirects=0)
    assert response.status < 400, response.text()
    return response.headers.get("content-type", "").startswith("text/html")


@pytest.mark.parametrize("path", PATHS)
def test_a_page_fits_the_screen_obeys_its_policy_and_is_accessible(
    path: str, visited: Shop, visit: Visit
) -> None:
    if path.startswith("/usage"):
        visit = visited.visit_of_owner
        on_a_phone(visit.page)
    address, page = visited.address(path), visit.page
    if not is_page(address, page.context):
        return
    page.goto(address)
    page.evaluate(OPEN_ALL)
    assert page.evaluate(MOVING) == []
    assert page.locator("h1").count() == 1
    assert_no_barrier(page)
    page.keyboard.press("Tab")
    assert page.evaluate(UNREACHED) == []
    assert page.evaluate("window.ran") is None
    assert visit.errors == []
    assert all(requested.startswith(visited.url) for requested in visit.requested)


def test_a_printed_page_says_what_it_shows_and_when_and_has_nothing_to_press(
    visited: Shop, visit: Visit
) -> None:
    page, printed = visit.page, visit.page.locator("#printed")
    for path in ("/today", "/sales", "/orders/{orderId}", "/keys", "/pets/{petId}"):
        page.emulate_media(media="screen")
        page.goto(visited.address(path))
        expect(printed).to_be_hidden()
        page.emulate_media(media="print", color_scheme="dark")
        expect(printed).to_have_text(re.compile(r".+ Petstore, shown .*20\d\d.*"))
        assert page.evaluate(PRESSABLE) == [], path
        assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "light"
        expect(page.locator("h1")).to_be_visible()
    # A pet is a label, and a list says which pets it shows.
    expect(page.locator("#is")).to_have_text(re.compile(r"Pet \d+ \w+ \w+"))
    assert page.evaluate("document.documentElement.scrollHeight") < 1000
    page.goto(visited.address("/pets?status=sold"))
    expect(page.locator("#found .printed")).to_contain_text("Status: sold.")
    expect(page.locator("main .pick").first).to_be_hidden()
    page.emulate_media(media="screen")


def test_a_hostile_name_is_shown_as_text(visited: Shop, visit: Visit) -> None:
    page = visit.page
    page.goto(visited.address("/pets/new"))
    hostile = page.locator("#categoryId option", has_text="Hostile").get_attribute("value")
    for name in NAMES:
        page.get_by_label("Name").fill(name)
        page.get_by_label("Category").select_option(hostile)
        page.get_by_role("button", name="Add").click()
        expect(page.locator(".notice")).to_contain_text(f"Added {isolated(name)}")
        assert page.evaluate(TOO_WIDE) == []
    page.goto(visited.address("/pets"))
    shown = [*reversed(NAMES)]  # the newest come first
    links = page.locator("tbody a").all()[: len(NAMES)]
    addresses = [f"{visited.url}{link.get_attribute('href')}" for link in links]
    for name, link in zip(shown, links, strict=True):
        expect(link).to_have_text(name)
    for name, address in zip(shown, addresses, strict=True):
        page.goto(address)
        expect(page.locator("h1")).to_have_text(name)
        assert page.title() == f"{isolated(name)} \N{EN DASH} Petstore"
        assert page.evaluate("window.ran") is None, name
    assert visit.errors == []


def test_the_phone_menu_opens_with_the_keyboard_and_selected_pets_are_accessible(
    visited: Shop, visit: Visit
) -> None:
    page = visit.page
    page.goto(visited.address("/pets"))
    links = page.get_by_role("navigation", name="Pages", exact=True)
    expect(links).to_be_hidden()
    for key in ("Tab", "Tab", "Tab", "Enter"):
        page.keyboard.press(key)
    expect(links).to_be_visible()
    page.evaluate(AXE)
    assert page.evaluate(VIOLATIONS, EVERY_RULE) == []
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Today")).to_be_focused()
    page.keyboard.press("Escape")
    expect(links).to_be_hidden()
    for box in page.locator("input[name=pet]").all():
        box.check()
    expect(page.locator("#selection")).to_be_in_viewport()
    assert_no_barrier(page)


def test_a_refused_form_focuses_the_error_with_a_link_to_it(visited: Shop, visit: Visit) -> None:
    page = visit.page
    page.goto(visited.address("/pets/new"))
    page.get_by_label("Name").fill("Rex")
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_role("alert")).to_be_focused()
    assert page.title().startswith("Error: ")
    assert_no_barrier(page)
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    field = page.get_by_label("Category")
    expect(field).to_be_focused()
    expect(field).to_have_accessible_description("Choose a category")


def test_the_sign_in_and_the_not_found_page_are_accessible(browser: Browser, visited: Shop) -> None:
    page = browser.new_page()
    page.goto(visited.address("/pets"))
    login, key = page.get_by_label("Login"), page.get_by_label("API key")
    expect(login).to_be_focused()
    login.fill("nobody")
    page.get_by_label("Password").fill("wrong password")
    page.keyboard.press("Enter")
    expect(login).to_have_accessible_description(re.compile("is wrong"))
    assert page.title().startswith("Error: ")
    page.get_by_text("Use an API key").click()
    assert_no_barrier(page)
    key.fill("ps_live_wrong")
    page.keyboard.press("Enter")
    expect(key).to_have_accessible_description(re.compile("key"))
    expect(key).to_be_focused()
    assert page.title().startswith("Error: ")
    assert_no_barrier(page)
    page.goto(visited.address("/nothing"))
    expect(page.locator("h1")).to_have_text("Page not found")
    assert_no_barrier(page)
    page.close()


# The pages that look different to a role

OWNER = ("pets:read", "orders:read", "webhooks:write")
# Names, numbers, and the values of attributes: what may differ in two pages that look the same.
VALUES = re.compile(r'="[^"]*"|(?<=>)[^<]+')


def sign_role_in(role: str, visited: Shop, context: BrowserContext) -> None:
    """Sign in a new person with a role, or the owner of a key, who has a webhook."""
    if role in ROLES:
        new = {"name": role, "login": f"{uuid4()}", "role": role}
        added = httpx.post(f"{visited.url}/v1/people", headers=bearer(visited.token), json=new)
        link = added.raise_for_status().json()["invitation"]["url"]
        form: dict[str, str | float | bool] = {"password": "correct horse"}
    else:
        scopes = [word for scope in OWNER for word in ("--scope", scope)]
        token = visited.server.issue("business", *scopes)
        hook = {"url": "https://shop.example/hooks", "types": ["order.placed"]}
        added = httpx.post(f"{visited.url}/v1/webhooks", headers=bearer(token), json=hook)
        added.raise_for_status()
        link, form = f"{visited.url}{HOME}/sign-in", {"key": token}
    signed = context.request.post(link, form=form, headers=SAME_ORIGIN)
    assert signed.ok, signed.text()


@pytest.fixture(scope="module")
def looked_at() -> set[str]:
    """What looked-at pages look like: roles that see the same have the same barriers."""
    return set()


@pytest.mark.parametrize("role", [*ROLES, "owner of a key"])
def test_a_page_that_looks_different_to_a_role_is_accessible(
    role: str, visited: Shop, browser: Browser, looked_at: set[str]
) -> None:
    context = browser.new_context(reduced_motion="reduce")
    sign_role_in(role, visited, context)

    @cache
    def read(path: str, reader: BrowserContext = context) -> str:
        return reader.request.get(f"{visited.url}{path}").text()

    def looks_of(path: str, reader: BrowserContext) -> str:
        """Return what a page looks like: its content without names and values."""
        return VALUES.sub("", read(path, reader).partition("<main")[2].partition("</main>")[0])

    found, page = dict(addresses(read)), context.new_page()
    assert ("pets-petId" if role in ROLES else "webhooks-webhookId") in found
    for path in found.values():
        looks = looks_of(path, context)
        is_new = looks not in looked_at and looks != looks_of(path, visited.visit.page.context)
        # The first page has the menu of the role, too.
        if is_new or path == HOME:
            looked_at.add(looks)
            page.goto(f"{visited.url}{path}")
            assert page.locator("h1").count() == 1
            assert_no_barrier(page)
    context.close()


PASSWORD = "correct horse"


@pytest.fixture
def link(shop: ServerProcess) -> str:
    """The link of a person who was just added."""
    return invitation(shop, issue_for_console(shop))


@pytest.mark.parametrize("has_script", [True, False])
def test_a_person_is_invited_and_signs_in_on_a_phone(
    browser: Browser, link: str, shop: ServerProcess, *, has_script: bool
) -> None:
    phone = browser.new_context(
        viewport={"width": 320, "height": 568}, java_script_enabled=has_script
    )
    page = phone.new_page()
    page.goto(link)
    login = page.get_by_label("Your login").input_value()
    for password in ("short", PASSWORD):
        page.get_by_label("New password").fill(password)
        page.get_by_label("Stay signed in on this device").check()
        page.get_by_role("button", name="Set the password").click()
        if password == "short":
            expect(page.get_by_role("alert")).to_contain_text("10 to 200 characters")
    expect(page.locator("h1")).to_have_text("Today")
    # The browser is closed, and keeps what outlives it.
    kept = [cookie for cookie in phone.cookies() if cookie["expires"] > 0]
    phone.clear_cookies()
    phone.add_cookies(kept)  # type: ignore[arg-type]
    page.goto(f"{shop.url}/console")
    expect(page.locator("h1")).to_have_text("Today")
    page.goto(link)
    expect(page.locator("h1")).to_have_text("This link has ended")
    page.goto(f"{shop.url}/console/account")
    page.get_by_role("button", name="Sign out here").click()
    for password in ("wrong password", PASSWORD):
        expect(page.get_by_label("Password")).to_be_empty()
        page.get_by_label("Login").fill(login)
        page.get_by_label("Password").fill(password)
        page.get_by_role("button", name="Sign in", exact=True).click()
        if password != PASSWORD:
            expect(page.get_by_role("alert")).to_contain_text("The login or the password is wrong.")
            expect(page.get_by_label("Login")).to_have_value(login)
    expect(page.locator("h1")).to_have_text("Today")
    page.goto(f"{shop.url}/console/account")
    row = page.get_by_role("row", name="Chrome on Linux (this one)")
    expect(row.get_by_role("cell", name="When the browser closes")).to_be_visible()
    frame = page.get_by_role("region", name="Devices")
    assert frame.evaluate("element => element.scrollWidth - element.clientWidth") == 0
    phone.close()


def test_the_account_and_the_invitation_are_accessible_and_show_what_is_typed(
    browser: Browser, link: str, shop: ServerProcess
) -> None:
    page = browser.new_page()
    page.goto(link)
    field, show = page.get_by_label("New password"), page.get_by_role("button", name="Show")
    expect(field).to_be_focused()
    expect(field).to_have_accessible_description("At least 10 characters, whatever you like.")
    field.fill("correct horse")
    show.click()
    expect(field).to_have_attribute("type", "text")
    assert_no_barrier(page)
    page.get_by_role("button", name="Hide").click()
    expect(field).to_have_attribute("type", "password")
    show.click()
    page.get_by_role("button", name="Set the password").click()
    expect(page.locator("h1")).to_have_text("Today")
    page.goto(f"{shop.url}/console/account")
    current = page.get_by_label("Current password")
    current.fill("wrong password")
    page.get_by_label("New password").fill("battery staple")
    page.get_by_role("button", name="Change the password").click()
    expect(current).to_have_accessible_description("This is not your password")
    page.evaluate(OPEN_ALL)
    assert_no_barrier(page)
    page.close()
