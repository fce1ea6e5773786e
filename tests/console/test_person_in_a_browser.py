"""A person and their browser: invited on a phone, the password set, and signed in the next day."""

import pytest
from playwright.sync_api import Browser, expect

from support.process import ServerProcess
from support.sight import assert_no_barrier
from support.staff import invitation, issue_for_console

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
    current = page.get_by_label("Current password")
    current.fill("wrong password")
    page.get_by_label("New password").fill("battery staple")
    page.get_by_role("button", name="Change the password").click()
    expect(current).to_have_accessible_description("This is not your password")
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    assert_no_barrier(page)
    page.close()
