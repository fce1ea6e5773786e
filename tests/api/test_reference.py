"""The reference page, in a real browser that may talk to this machine only."""

from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from petstore.api.operations import OPERATIONS
from support.browser import Visit, chromium
from support.process import ServerProcess

TRIES = {"listPets": "200", "createPet": "201", "getUsage": "200"}
TAGS = {operation.id: operation.tag for operation in OPERATIONS}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def visit(browser: Browser, server: ServerProcess) -> Iterator[Visit]:
    """A visit of the reference."""
    visit = Visit.to(f"{server.url}/docs", browser)
    yield visit
    visit.page.close()


def authorize(page: Page, token: str) -> None:
    """Enter a key, as a person does."""
    page.get_by_role("button", name="Authorize").click()
    dialog = page.locator(".modal-ux")
    dialog.get_by_role("textbox").fill(token)
    dialog.get_by_role("button", name="Apply credentials").click()
    dialog.get_by_role("button", name="Close", exact=True).click()


def execute(page: Page, operation: str) -> str:
    """Open an operation, send its prefilled request, and return the displayed status."""
    block = page.locator(f"#operations-{TAGS[operation]}-{operation}")
    block.locator(".opblock-summary-control").click()
    block.get_by_role("button", name="Execute").click()
    response = block.locator(".live-responses-table .response")
    expect(response).to_be_visible()
    return response.locator(".response-col_status").inner_text().strip()


def assert_at_home(visit: Visit, server: ServerProcess) -> None:
    """Check that the page had no error and sent no request to another host."""
    assert visit.errors == []
    asked = {urlsplit(address).netloc for address in visit.requested}
    assert asked == {urlsplit(server.url).netloc}


def test_the_page_shows_every_operation(visit: Visit, server: ServerProcess) -> None:
    for operation in OPERATIONS:
        block = visit.page.locator(f"#operations-{operation.tag}-{operation.id}")
        expect(block).to_contain_text(operation.summary)
    assert_at_home(visit, server)


def test_an_operation_tried_without_a_key_shows_401(visit: Visit) -> None:
    assert execute(visit.page, "listPets") == "401"


def test_operations_tried_with_a_key_show_their_responses(
    visit: Visit, server: ServerProcess, token: str
) -> None:
    authorize(visit.page, token)
    shown = {name: execute(visit.page, name) for name in TRIES}
    assert shown == TRIES
    assert_at_home(visit, server)


def test_the_address_that_explains_the_deprecation_unfolds_the_operation(
    browser: Browser, server: ServerProcess, token: str
) -> None:
    got = httpx.get(f"{server.url}/v1/pets/0", headers={"Authorization": f"Bearer {token}"})
    visit = Visit.to(got.links["deprecation"]["url"], browser)
    expect(visit.page.locator("#operations-Pets-getPet")).to_contain_text("5 December 2030")
    visit.page.close()
