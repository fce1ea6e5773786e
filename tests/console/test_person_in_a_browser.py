"""A person and their browser: invited on a phone, the password set, and signed in the next day."""

from collections.abc import Iterator
from uuid import uuid4

import httpx
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from support.process import ServerProcess
from support.sight import assert_no_barrier
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


def sign_in(page: Page, login: str, password: str = PASSWORD) -> None:
    """Fill in the form with a login and a password, and send it."""
    page.get_by_label("Login").fill(login)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in", exact=True).click()


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


def test_a_person_signs_in_with_the_password_and_sees_the_own_devices(
    phone: BrowserContext, invitation: str, login: str, shop: ServerProcess
) -> None:
    page = phone.new_page()
    page.goto(invitation)
    page.get_by_label("New password").fill(PASSWORD)
    page.get_by_role("button", name="Set the password").click()
    page.goto(f"{shop.url}/console/account")
    page.get_by_role("button", name="Sign out here").click()
    sign_in(page, login, "wrong password")
    expect(page.get_by_role("alert")).to_contain_text("The login or the password is wrong.")
    expect(page.get_by_label("Login")).to_have_value(login)
    sign_in(page, login)
    expect(page.locator("h1")).to_have_text("Today")
    page.goto(f"{shop.url}/console/account")
    row = page.get_by_role("row", name="Chrome on Linux (this one)")
    expect(row.get_by_role("cell", name="When the browser closes")).to_be_visible()
    frame = page.get_by_role("region", name="Devices")
    assert frame.evaluate("element => element.scrollWidth - element.clientWidth") == 0


def test_the_account_and_the_invitation_are_accessible_and_show_what_is_typed(
    browser: Browser, invitation: str, shop: ServerProcess
) -> None:
    page = browser.new_page()
    page.goto(invitation)
    field, show = page.get_by_label("New password"), page.get_by_role("button", name="Show")
    expect(field).to_be_focused()
    expect(field).to_have_accessible_description("At least 10 characters, whatever you like.")
    field.fill(PASSWORD)
    show.click()
    expect(field).to_have_attribute("type", "text")
    assert_no_barrier(page)
    page.get_by_role("button", name="Hide").click()
    expect(field).to_have_attribute("type", "password")
    show.click()
    page.get_by_role("button", name="Set the password").click()
    expect(page.locator("h1")).to_have_text("Today")
    page.goto(f"{shop.url}/console/account")
    assert_no_barrier(page)
    page.get_by_label("Current password").fill("wrong password")
    page.get_by_label("New password").fill("battery staple")
    page.get_by_role("button", name="Change the password").click()
    current = page.get_by_label("Current password")
    expect(current).to_have_accessible_description("This is not your password")
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    assert_no_barrier(page)
    page.close()
