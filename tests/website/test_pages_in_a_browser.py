"""The site in a real browser that may talk to this machine only."""

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect

from petstore.api.operations import OPERATIONS
from support.browser import Visit, chromium
from support.process import ServerProcess

PHONE: ViewportSize = {"width": 390, "height": 844}
LARGEST = 500_000
"""The most bytes that a first visit may bring."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def visit(browser: Browser, server: ServerProcess) -> Iterator[Visit]:
    """A visit of one operation, which several tests go on with."""
    visit = Visit.to(f"{server.url}/docs/operations/listPets", browser)
    yield visit
    visit.page.close()


def test_a_page_asks_no_other_host_and_breaks_no_rule_of_its_policy(
    visit: Visit, server: ServerProcess
) -> None:
    expect(visit.page.locator("h1")).to_contain_text("List animals")
    visit.page.wait_for_load_state("networkidle")
    assert visit.errors == []
    assert {urlsplit(address).netloc for address in visit.requested} == {
        urlsplit(server.url).netloc
    }


def test_a_first_visit_brings_little(browser: Browser, server: ServerProcess) -> None:
    sizes = []
    page = browser.new_page()
    page.on("requestfinished", lambda request: sizes.append(request.sizes()["responseBodySize"]))
    page.goto(f"{server.url}/docs/", wait_until="networkidle")
    page.close()
    assert 0 < sum(sizes) < LARGEST


def test_a_session_is_copied_without_its_prompts_and_output(
    browser: Browser, server: ServerProcess
) -> None:
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(f"{server.url}/docs/retries")
    page.get_by_role("button", name="Copy to clipboard").first.click()
    page.wait_for_function("navigator.clipboard.readText()")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert [line.partition(" -")[0] for line in copied.splitlines()] == ["curl", "   "] * 2
    assert "$API/store/orders" in copied
    context.close()


def test_the_search_finds_an_operation_by_its_name(visit: Visit) -> None:
    page = visit.page
    page.keyboard.press("Control+k")
    page.get_by_role("combobox").fill("placeOrder")
    page.locator("a", has_text="needs a key with the scope orders:write").click()
    page.wait_for_url("**/docs/operations/placeOrder*")
    page.go_back()
    assert visit.errors == []


def test_the_sidebar_lists_every_operation(visit: Visit) -> None:
    links = visit.page.locator(".md-sidebar--primary a").evaluate_all(
        "links => links.map(link => link.href.split('/docs/')[1])"
    )
    assert {f"operations/{operation.id}" for operation in OPERATIONS} <= set(links)


def scheme(page: Page) -> str | None:
    return page.locator("body").get_attribute("data-md-color-scheme")


def test_dark_mode_follows_the_system_and_can_be_switched(visit: Visit) -> None:
    page = visit.page
    page.emulate_media(color_scheme="dark")
    page.reload()
    expect(page.locator("body")).to_have_attribute("data-md-color-scheme", "slate")
    page.locator("label[title='Switch to light mode']").click()
    expect(page.locator("body")).to_have_attribute("data-md-color-scheme", "default")
    page.reload()
    assert scheme(page) == "default"


def test_the_keyboard_reaches_the_content_first_and_shows_where_it_is(visit: Visit) -> None:
    page = visit.page
    page.reload()
    page.keyboard.press("Tab")
    focused = page.locator(":focus")
    expect(focused).to_have_text(re.compile("Skip to content"))
    page.keyboard.press("Tab")
    style = "element => getComputedStyle(element).outlineStyle"
    assert page.locator(":focus").evaluate(style) != "none"


@pytest.mark.parametrize(
    "path", ["", "operations/createWebhook", "errors", "settings", "architecture", "limits"]
)
def test_no_page_is_wider_than_a_phone(browser: Browser, server: ServerProcess, path: str) -> None:
    page = browser.new_page(viewport=PHONE)
    page.goto(f"{server.url}/docs/{path}")
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    page.close()


def test_a_link_to_an_error_code_scrolls_to_it(browser: Browser, server: ServerProcess) -> None:
    page = browser.new_page()
    page.goto(f"{server.url}/docs/errors#service_unavailable")
    expect(page.locator("#service_unavailable")).to_be_in_viewport()
    page.close()
