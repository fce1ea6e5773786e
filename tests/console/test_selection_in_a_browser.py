"""Several pets selected in a list, in a real browser: by mouse, by keyboard, beside others."""

from collections.abc import Iterator
from uuid import uuid4

import pytest
from playwright.sync_api import Browser, Locator, expect

from support.clerk import Clerk
from support.process import ServerProcess
from support.staff import issue_for_console


@pytest.fixture(scope="module")
def regular(shop: ServerProcess, browser: Browser) -> Iterator[Clerk]:
    clerk = Clerk.at(shop, browser, issue_for_console(shop))
    yield clerk
    clerk.leave()


@pytest.fixture
def clerk(regular: Clerk) -> Iterator[Clerk]:
    """Somebody whose page has no failing script."""
    yield regular
    assert regular.errors == []


@pytest.fixture
def word() -> str:
    """A word that only the pets of this test have in their names."""
    return f"otto{uuid4().hex[:8]}"


def shown(clerk: Clerk, word: str, count: int) -> Locator:
    """Add so many pets with a word in their names, list them, and return their checkboxes."""
    for number in range(count):
        clerk.pet(name=f"{word} {number}")
    clerk.open(f"/pets?name={word}")
    boxes = clerk.page.locator("input[name=pet]")
    expect(boxes).to_have_count(count)
    return boxes


def test_all_pets_of_a_page_are_selected_at_once_and_changed(clerk: Clerk, word: str) -> None:
    boxes, page = shown(clerk, word, 3), clerk.page
    page.get_by_label("Select all on this page").check()
    expect(page.locator("#selected")).to_have_text("3 selected")
    boxes.nth(1).uncheck()
    page.locator("#selected-status").select_option("sold")
    page.get_by_role("button", name="Change", exact=True).click()
    notice = page.locator(".notice")
    expect(notice).to_contain_text("2 pets are sold.")
    expect(notice).to_be_focused()
    expect(page.locator("tbody .sold")).to_have_count(2)
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".notice")).to_contain_text("2 pets are as before.")
    expect(page.locator("tbody .available")).to_have_count(3)


def test_a_pet_that_somebody_else_deletes_is_no_longer_counted(clerk: Clerk, word: str) -> None:
    boxes, page = shown(clerk, word, 2), clerk.page
    boxes.first.check()
    boxes.last.check()
    clerk.call("DELETE", f"/pets/{boxes.last.input_value().partition('.')[0]}")
    expect(boxes).to_have_count(1)
    expect(page.locator("#selected")).to_have_text("1 selected")


def test_the_keyboard_alone_selects_and_changes(clerk: Clerk, word: str) -> None:
    boxes, page = shown(clerk, word, 2), clerk.page
    boxes.first.focus()
    page.keyboard.press("Space")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    expect(boxes.nth(1)).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("x")
    expect(page.locator("#selected")).to_have_text("2 selected")
    page.keyboard.press("s")
    expect(page.locator("#selection:focus")).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.locator("#selected-status")).to_be_focused()
    page.keyboard.press("s")  # the status that begins with it
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator(".notice")).to_contain_text("2 pets are sold.")
