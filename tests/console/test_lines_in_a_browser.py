"""What belongs together stands on one line, and nothing stands on top of something else."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, FilePayload, expect

from support.clerk import Clerk
from support.process import ServerProcess
from support.staff import issue_for_console

OVERLAPS = """() => [...document.querySelectorAll('.cards td[data-label]')].filter(cell => {
  const label = getComputedStyle(cell, '::before');
  return label.position === 'absolute'
    && parseFloat(label.width) > parseFloat(getComputedStyle(cell).paddingLeft);
}).map(cell => cell.dataset.label)"""


@pytest.fixture(scope="module")
def clerk(shop: ServerProcess, browser: Browser) -> Iterator[Clerk]:
    """Somebody with every right, on a phone."""
    clerk = Clerk.at(shop, browser, issue_for_console(shop))
    clerk.page.set_viewport_size({"width": 320, "height": 640})
    yield clerk
    clerk.leave()


@pytest.mark.parametrize("path", ["/webhooks", "/webhooks/1", "/keys", "/people", "/import"])
def test_no_label_of_a_card_reaches_into_its_text(clerk: Clerk, path: str) -> None:
    clerk.open(path)
    assert clerk.page.evaluate(OVERLAPS) == []


def test_a_name_that_no_line_can_break_makes_no_page_wider(clerk: Clerk) -> None:
    name = "a" + "\N{COMBINING ACUTE ACCENT}" * 20 + "W\N{WORD JOINER}" * 80
    pet = clerk.pet(name=name)
    clerk.call("PATCH", f"/pets/{pet['id']}", status="pending")
    for path in ("/today", "/activity", f"/pets/{pet['id']}"):
        clerk.open(path)
        assert clerk.page.evaluate("document.documentElement.scrollWidth") <= 320, path


def test_a_field_and_its_button_share_a_line_on_a_phone(clerk: Clerk) -> None:
    clerk.open("/today")
    field, button = clerk.page.get_by_label("Find a pet"), clerk.page.locator(".filters button")
    here, there = field.bounding_box(), button.bounding_box()
    assert here
    assert there
    assert abs(here["y"] - there["y"]) < 1
    assert here["width"] > there["width"] > 0


def test_the_preview_of_an_import_fits_the_screen(clerk: Clerk) -> None:
    clerk.open("/import")
    row = "Pumpernickel,Guinea pigs,available\nMirabelle,Guinea pigs;Rabbits;Hamsters;Mice,gone\n"
    content = f"name,category,status\n{row}".encode()
    file: FilePayload = {"name": "a.csv", "mimeType": "text/csv", "buffer": content}
    clerk.page.get_by_label("File").set_input_files(file)
    clerk.page.get_by_role("button", name="Preview").click()
    expect(clerk.page.get_by_label("Category", exact=True)).to_have_value("1")
    widths = "frames => frames.map(frame => frame.scrollWidth - frame.clientWidth)"
    assert clerk.page.locator(".scroll").evaluate_all(widths) == [0]


def test_the_choices_for_selected_pets_are_whole_on_a_phone(clerk: Clerk) -> None:
    clerk.open("/pets")
    clerk.page.locator(".pick").first.check()
    choice = clerk.page.locator("#selected-status")
    needed = choice.evaluate("""choice => {
      const whole = choice.cloneNode(true);
      whole.style.width = 'max-content';
      choice.after(whole);
      const {width} = whole.getBoundingClientRect();
      whole.remove();
      return width - choice.getBoundingClientRect().width;
    }""")
    assert needed <= 0
