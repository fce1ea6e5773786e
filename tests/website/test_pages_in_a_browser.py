"""The site in a real browser that may talk to this machine only."""

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect

from petstore import __version__
from petstore.interface.operations import OPERATIONS
from support.browser import AXE, VIOLATIONS, Visit, chromium
from support.process import ServerProcess
from support.waiting import within

PHONE: ViewportSize = {"width": 390, "height": 844}
LARGEST = 500_000
"""The most bytes that a first visit may bring."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def visit(browser: Browser, server: ServerProcess) -> Visit:
    """A visit that tests go on with, from one operation: a page of its own costs more than all."""
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    return Visit.to(f"{server.url}/docs/operations/listPets", context)


@pytest.fixture
def page(visit: Visit, server: ServerProcess) -> Page:
    visit.page.goto(f"{server.url}/docs/operations/listPets")
    return visit.page


def test_a_page_requests_no_other_host_and_obeys_its_policy(
    visit: Visit, server: ServerProcess
) -> None:
    expect(visit.page.locator("h1")).to_contain_text("List and filter pets")
    visit.page.wait_for_load_state("networkidle")
    assert visit.errors == []
    assert {urlsplit(address).netloc for address in visit.requested} == {
        urlsplit(server.url).netloc
    }


def test_a_first_visit_downloads_little(browser: Browser, server: ServerProcess) -> None:
    sizes = []
    page = browser.new_page()
    page.on("requestfinished", lambda request: sizes.append(request.sizes()["responseBodySize"]))
    page.goto(f"{server.url}/docs/", wait_until="networkidle")
    page.close()
    assert 0 < sum(sizes) < LARGEST


def test_a_console_block_is_copied_without_prompts_and_output(
    page: Page, server: ServerProcess
) -> None:
    page.goto(f"{server.url}/docs/retries")
    page.get_by_role("button", name="Copy to clipboard").first.click()
    page.wait_for_function("navigator.clipboard.readText()")
    copied = page.evaluate("navigator.clipboard.readText()")
    commands = [line.partition(" -")[0].partition("=")[0] for line in copied.splitlines()]
    assert commands == ["API", "AUTH", *["curl", "   "] * 2]
    assert "$API/store/orders" in copied


@pytest.mark.parametrize("path", ["listPets", "nothing"])
def test_the_search_finds_an_operation_by_its_name_even_where_no_page_is(
    page: Page, server: ServerProcess, path: str
) -> None:
    response = page.goto(f"{server.url}/docs/operations/{path}", wait_until="networkidle")
    assert response
    assert response.status == (404 if path == "nothing" else 200)
    page.keyboard.press("Control+k")
    page.get_by_role("combobox").fill("placeOrder")
    page.locator("a", has_text="needs a key with the scope orders:write").click()
    page.wait_for_url("**/docs/operations/placeOrder*")


QUESTIONS = {
    "how do I get an API key": "authentication",
    "test mode": "authentication",
    "filter by status": "pets operations/listPets",
    "environment variables": "settings",
    "python client": "client-library",
    "load balancer": "errors deploying",
    "rotate a key": "operations/rotateKey keys",
    "prompt injection": "agents",
    "FAQ": "faq",
    "upload image": "faq",
    "GDPR": "faq orders",
    "refund": "orders faq",
    "inventory": "orders operations/getInventory",
    "traces": "monitoring",
    "webhook signature": "webhooks",
    "idempotency": "retries",
    "pagination": "pagination",
    "rate limit": "limits",
    "429": "faq limits errors",
    "error codes": "errors",
    "warehouse": "sync",
    "Postman": "generated-clients",
    "import csv": "importing console",
    "backup": "moving",
    "Helm": "deploying",
}
"""What users look for, with the pages that may come first."""
FIRST = """box => {
    const hit = box.getRootNode().querySelector('a[href*="?h="]');
    const url = hit && new URL(hit.href);
    return url && [url.searchParams.get("h"), url.pathname.replace("/docs/", "")];
}"""


def test_the_search_leads_to_the_right_page_first(page: Page) -> None:
    page.wait_for_load_state("networkidle")
    page.keyboard.press("Control+k")
    box = page.get_by_role("combobox")
    for question, answers in QUESTIONS.items():
        box.fill(question)
        wanted = [[question, answer] for answer in answers.split()]

        def is_first(wanted: list[list[str]] = wanted) -> bool:
            return box.evaluate(FIRST) in wanted

        assert within(10, is_first), (question, box.evaluate(FIRST))


@pytest.mark.parametrize("path", ["", "quickstart", "errors", "operations/placeOrder"])
def test_a_page_has_no_barrier(page: Page, server: ServerProcess, path: str) -> None:
    page.goto(f"{server.url}/docs/{path}")
    page.evaluate(AXE)
    options = {"rules": {"landmark-unique": {"enabled": False}}}  # the theme names two lists alike
    assert page.evaluate(VIOLATIONS, options) == []
    assert page.locator("pre a").count() == 0  # the keyboard stops at no line of code


def test_the_sidebar_lists_every_operation_and_the_footer_the_version_and_changelog(
    page: Page,
) -> None:
    links = page.locator(".md-sidebar--primary a").evaluate_all(
        "links => links.map(link => link.href.split('/docs/')[1])"
    )
    assert {f"operations/{operation.id}" for operation in OPERATIONS} <= set(links)
    footer = page.locator("footer")
    expect(footer).to_contain_text(f"Petstore {__version__}")
    footer.get_by_role("link", name="Changelog").click()
    expect(page.locator("h1")).to_contain_text("Changelog")


def test_the_first_keyboard_focus_is_visible_and_skips_to_the_content(page: Page) -> None:
    page.keyboard.press("Tab")
    focused = page.locator(":focus")
    expect(focused).to_have_text(re.compile("Skip to content"))
    page.keyboard.press("Tab")
    style = "element => getComputedStyle(element).outlineStyle"
    assert page.locator(":focus").evaluate(style) != "none"


def test_every_page_fits_the_width_of_a_phone(page: Page, server: ServerProcess) -> None:
    page.set_viewport_size(PHONE)
    for path in ("", "operations/createWebhook", "errors", "settings", "architecture", "limits"):
        page.goto(f"{server.url}/docs/{path}")
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], path
    page.set_viewport_size({"width": 1280, "height": 720})


def test_an_address_without_a_page_leads_to_the_start(page: Page, server: ServerProcess) -> None:
    page.goto(f"{server.url}/docs/operations/nothing")
    page.get_by_role("link", name="Start of the docs").click()
    page.wait_for_url(f"{server.url}/docs/")
