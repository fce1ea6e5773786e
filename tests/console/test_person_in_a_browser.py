"""A person and their browser: invited on a phone, the password set, and signed in the next day."""

from collections.abc import Iterator
from uuid import uuid4

import httpx
import pytest
from playwright.sync_api import Browser, BrowserContext, expect

from support.process import ServerProcess
from support.staff import issue_for_console

PASSWORD = "correct horse"


@pytest.fixture(scope="module")
def token(shop: ServerProcess) -> str:
    return issue_for_console(shop)


@pytest.fixture
def login() -> str:
    return f"{uuid4().hex[:8]}@shop.example"


@pytest.fixture
def invitation(shop: ServerProcess, token: str, login: str) -> str:
    """The link of a person who was just added."""
    response = httpx.post(
        f"{shop.url}/v1/people",
        headers={"Authorization": f"Bearer {token}"},
        json={"name": "Grace", "login": login, "role": "clerk"},
    )
    return str(response.raise_for_status().json()["invitation"]["url"])


@pytest.fixture(params=[True, False], ids=["script", "no script"])
def phone(browser: Browser, request: pytest.FixtureRequest) -> Iterator[BrowserContext]:
    """The browser of a phone, with or without JavaScript."""
    context = browser.new_context(
        viewport={"width": 320, "height": 568}, java_script_enabled=request.param
    )
    yield context
    context.close()


def test_a_person_is_invited_and_signed_in_the_next_day_without_typing(
    phone: BrowserContext, invitation: str, login: str, shop: ServerProcess
) -> None:
    page = phone.new_page()
    page.goto(invitation)
    expect(page.get_by_label("Your login")).to_have_value(login)
    page.get_by_label("New password").fill("short")
    page.get_by_label("Stay signed in on this device").check()
    page.get_by_role("button", name="Set the password").click()
    expect(page.get_by_role("alert")).to_contain_text("10 to 200 characters")
    page.get_by_label("New password").fill(PASSWORD)
    page.get_by_label("Stay signed in on this device").check()
    page.get_by_role("button", name="Set the password").click()
    expect(page.locator("h1")).to_have_text("Today")
    # The browser is closed, and keeps what outlives it.
    kept = [cookie for cookie in phone.cookies() if cookie["expires"] > 0]
    phone.clear_cookies()
    phone.add_cookies(kept)  # type: ignore[arg-type]
    page.goto(f"{shop.url}/console")
    expect(page.locator("h1")).to_have_text("Today")
    page.goto(invitation)
    expect(page.locator("h1")).to_have_text("This link has ended")
