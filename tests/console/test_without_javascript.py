"""The main tasks of a clerk whose browser has no JavaScript, by real clicks, from sign-in on."""

from collections.abc import Iterator
from uuid import uuid4

import pytest
from playwright.sync_api import Browser, FilePayload, Page, expect

from support.process import ServerProcess
from support.visitor import invitation, issue_for_console


@pytest.fixture(scope="module")
def page(shop: ServerProcess, browser: Browser) -> Iterator[Page]:
    """Somebody who has just set a password, and now goes through their day."""
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(invitation(shop, issue_for_console(shop)))
    page.get_by_label("New password").fill("correct horse")
    page.get_by_role("button", name="Set the password").click()
    expect(page.locator("h1")).to_have_text("Today")
    yield page
    context.close()


@pytest.fixture
def name() -> str:
    return f"Otto {uuid4().hex[:8]}"


def open_page(page: Page, name: str) -> None:
    """Go to a page by the navigation."""
    navigation = page.get_by_role("navigation", name="Pages", exact=True)
    navigation.get_by_role("link", name=name, exact=True).click()


def add(page: Page, name: str) -> None:
    """Add an available pet, from the list of pets."""
    open_page(page, "Pets")
    page.get_by_role("link", name="Add a pet").first.click()
    form = page.locator("main form[method=post]").first
    form.locator("[name=name]").fill(name)
    form.locator("[name=categoryId]").select_option(index=1)
    form.locator("[name=status]").select_option("available")
    form.locator("button").first.click()
    expect(page.locator(".notice")).to_contain_text(name)


def find(page: Page, name: str) -> None:
    """Find a pet by its name, and open its page."""
    open_page(page, "Pets")
    search = page.locator("[role=search]")
    search.locator("[name=name]").fill(name)
    search.get_by_role("button", name="Find").click()
    page.get_by_role("link", name=name).click()
    expect(page.locator("h1")).to_contain_text(name)


def test_a_pet_is_added_found_changed_sold_and_reserved(page: Page, name: str) -> None:
    add(page, name)
    find(page, name)
    form = page.locator("main form[method=post]:has([name=name]:visible)").first
    form.locator("[name=name]").fill(f"{name} the Great")
    form.get_by_role("button", name="Save").click()
    expect(page.locator("h1")).to_have_text(f"{name} the Great")
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("h1")).to_have_text(name)
    page.get_by_label("Buyer").fill("Ada")
    page.get_by_label("Price in USD").fill("249")
    page.get_by_role("button", name=f"Sell {name}").click()
    expect(page.locator("#sale")).to_contain_text("To Ada for $249.00, by")
    page.get_by_role("button", name="Undo", exact=True).click()
    expect(page.locator("#state")).to_contain_text("available")
    page.get_by_label("Buyer").fill("Tom")
    page.get_by_label("Price in USD").fill("1,249.50")
    page.get_by_role("button", name="Reserve").click()
    expect(page.locator("#order")).to_contain_text(f"{name} for Tom, $1,249.50 placed")
    page.get_by_label("Buyer").fill("Tim")
    page.get_by_role("button", name="Approve order").click()
    expect(page.locator("#order")).to_contain_text(f"{name} for Tim, $1,249.50 approved")


def test_a_file_is_previewed_imported_and_the_import_undone(page: Page, name: str) -> None:
    open_page(page, "Pets")
    page.get_by_role("link", name="Import", exact=True).click()
    rows = f"Tier;Category;Status\n{name};1;Available\n;1;Sold\n{name} II;{name}s;\n"
    file = FilePayload(name="pets.csv", mimeType="text/csv", buffer=rows.encode())
    page.get_by_label("File").set_input_files(file)
    page.get_by_role("button", name="Preview").click()
    page.get_by_label("New categories").select_option("Add this category")
    page.get_by_role("button", name="Update the preview").click()
    page.get_by_role("button", name="Add 2 pets").click()
    expect(page.locator("main")).to_contain_text("2 pets added, 1 row skipped.")
    imported = page.url
    find(page, f"{name} II")
    page.goto(imported)
    page.get_by_text("Undo this import…").click()
    page.get_by_role("button", name="Undo the import").click()
    expect(page.locator("main")).to_contain_text("2 pets deleted.")


def test_several_pets_are_changed_and_deleted_and_both_undone(page: Page, name: str) -> None:
    add(page, name)
    open_page(page, "Pets")
    expect(page.get_by_label("Select all on this page")).to_be_hidden()
    page.locator("tr", has_text=name).get_by_role("checkbox").check()
    page.locator("#selection [name=status]").select_option("sold")
    page.get_by_role("button", name="Change", exact=True).click()
    expect(page.locator(".notice")).to_contain_text("1 pet is sold.")
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".notice")).to_contain_text("1 pet is as before.")
    page.locator("tr", has_text=name).get_by_role("checkbox").check()
    page.get_by_role("button", name="Delete…").click()
    page.get_by_role("button", name="Delete 1 pet").click()
    expect(page.locator(".notice")).to_contain_text("1 pet is deleted.")
    page.get_by_role("button", name="Add them again, with new numbers").click()
    find(page, name)


def test_a_link_from_elsewhere_keeps_the_person_signed_in(shop: ServerProcess, page: Page) -> None:
    wanted = f"{shop.url}/console/account"
    link = f'<a href="{wanted}">Your account</a>'
    mail = "http://mail.example/"
    page.route(mail, lambda route: route.fulfill(content_type="text/html", body=link))
    page.goto(mail)
    page.get_by_role("link", name="Your account").click()
    expect(page.locator("h1")).to_have_text("Your account")
    assert page.url == wanted
