"""What belongs together stands on one line, and nothing stands on top of something else."""

import re
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
# The punctuation that begins a line, after the name that it belongs to.
LONELY = """() => [...document.querySelectorAll('main bdi')].filter(name => {
  const next = name.nextSibling;
  if (next?.nodeType !== Node.TEXT_NODE || !/^[,.:;]/.test(next.data)) return false;
  const range = document.createRange();
  range.setStart(next, 0);
  range.setEnd(next, 1);
  return range.getBoundingClientRect().top >= [...name.getClientRects()].at(-1).bottom;
}).map(name => name.textContent)"""


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


def test_a_comma_stays_on_the_line_of_its_name(clerk: Clerk) -> None:
    clerk.open("/today")
    for width in range(320, 400, 4):
        clerk.page.set_viewport_size({"width": width, "height": 640})
        assert clerk.page.evaluate(LONELY) == [], width
    clerk.page.set_viewport_size({"width": 320, "height": 640})


def test_no_line_begins_with_the_half_of_the_day(clerk: Clerk) -> None:
    clerk.open("/orders/1")
    assert "\N{NO-BREAK SPACE}" in (clerk.page.locator(".facts time").last.text_content() or "")


def test_a_name_that_no_line_can_break_makes_no_page_wider(clerk: Clerk) -> None:
    name = "a" + "\N{COMBINING ACUTE ACCENT}" * 20 + "W\N{WORD JOINER}" * 80
    animal = clerk.animal(name=name)
    clerk.call("PATCH", f"/pets/{animal['id']}", status="pending")
    for path in ("/today", "/activity", f"/pets/{animal['id']}"):
        clerk.open(path)
        assert clerk.page.evaluate("document.documentElement.scrollWidth") <= 320, path


def test_a_field_and_its_button_share_a_line_on_a_phone(clerk: Clerk) -> None:
    clerk.open("/today")
    field, button = clerk.page.get_by_label("Find an animal"), clerk.page.locator(".filters button")
    here, there = field.bounding_box(), button.bounding_box()
    assert here
    assert there
    assert abs(here["y"] - there["y"]) < 1
    assert here["width"] > there["width"] > 0


def test_the_undo_of_what_was_added_is_beside_it(clerk: Clerk) -> None:
    clerk.open("/pets/new")
    clerk.page.get_by_label("Name").fill("Mirabelle")
    clerk.page.get_by_label("Category").select_option("Dogs")
    clerk.page.get_by_role("button", name="Add the animal").click()
    line = clerk.page.locator("#added li").first
    expect(line).to_contain_text("Mirabelle")
    words, undo = (
        line.locator("span").first.bounding_box(),
        line.get_by_role("button").bounding_box(),
    )
    assert words
    assert undo
    assert words["x"] + words["width"] < undo["x"]
    assert undo["y"] < words["y"] + words["height"]


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


def test_the_top_of_a_chart_is_written_like_other_amounts(clerk: Clerk) -> None:
    clerk.open("/sales")
    expect(clerk.page.locator("p.axis").first).to_have_text(re.compile(r"^\$[\d,]+\.00$"))
    expect(clerk.page.locator("p.axis").last).to_have_text(re.compile(r"^[\d,]+$"))


def test_the_choices_for_selected_animals_are_whole_on_a_phone(clerk: Clerk) -> None:
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


def test_why_animals_were_left_as_they_are_is_read_on_cards(clerk: Clerk) -> None:
    animal = clerk.animal(status="sold")
    clerk.open(f"/pets?id={animal['id']}")
    clerk.page.locator(".pick").check()
    clerk.page.locator("#selected-status").select_option("pending")
    clerk.page.locator("#selection").get_by_role("button", name="Change").click()
    expect(clerk.page.get_by_role("heading", level=1)).to_have_text("1 animal was left as it is")
    cells = clerk.page.get_by_role("table").get_by_role("cell")
    assert len(set(cells.evaluate_all("cells => cells.map(cell => cell.offsetTop)"))) == 3


def test_the_state_and_the_details_of_a_person_are_beside_each_other(clerk: Clerk) -> None:
    clerk.page.set_viewport_size({"width": 1280, "height": 900})
    person = clerk.call("POST", "/people", name="Petra", login="petra.lines", role="clerk")
    clerk.open(f"/people/{person['id']}")
    state = clerk.page.get_by_role("region", name="State").bounding_box()
    details = clerk.page.get_by_role("region", name="Details").bounding_box()
    assert state
    assert details
    assert state["y"] == details["y"]
    clerk.page.set_viewport_size({"width": 320, "height": 640})
