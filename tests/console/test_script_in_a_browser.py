"""What the script adds to the pages, in a real browser."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias
from uuid import uuid4

import pytest
from playwright.sync_api import Browser, Dialog, Locator, Page, Route, expect

from support.browser import Clerk, press
from support.process import ServerProcess
from support.visitor import issue_for_console

SOON = 10_000
"""Milliseconds in which a console sees that the service is gone: 5 seconds, on a busy machine."""
LATER = 2_000_000_000
"""A moment in seconds: 2033-05-18T03:33:20Z."""

Arrive: TypeAlias = Callable[..., Clerk]


@pytest.fixture(scope="module")
def token(shop: ServerProcess) -> str:
    return issue_for_console(shop)


@pytest.fixture
def arrive(shop: ServerProcess, browser: Browser, token: str) -> Iterator[Arrive]:
    """Sign people in, each in a browser of their own, until the test ends."""
    clerks = []

    def arrive(**options: Any) -> Clerk:
        clerks.append(Clerk.at(shop, browser, token, **options))
        return clerks[-1]

    yield arrive
    for clerk in clerks:
        clerk.leave()


@pytest.fixture(scope="module")
def regular(shop: ServerProcess, browser: Browser, token: str) -> Iterator[Clerk]:
    """Somebody far away, whose browser several tests go on with: a browser costs more than all."""
    clerk = Clerk.at(shop, browser, token, timezone_id="Australia/Adelaide", locale="de-DE")
    yield clerk
    clerk.leave()


@pytest.fixture
def clerk(regular: Clerk) -> Iterator[Clerk]:
    """That person, whose pages come as the service sends them; no script of them may fail."""
    yield regular
    regular.page.unroute_all()
    assert regular.errors == []


def add_to_list(page: Page, markup: Callable[[], str]) -> None:
    """Show ``markup`` at the top of the list of pets, each time that it is read."""

    def change(route: Route) -> None:
        response = route.fetch()
        body = response.text().replace("</h1>", f"</h1>{markup()}", 1)
        route.fulfill(response=response, body=body)

    page.route("**/console/pets", change)


def test_a_sale_by_someone_else_shows_at_once_in_the_list_today_and_on_paper(clerk: Clerk) -> None:
    page, pet = clerk.page, clerk.pet()
    clerk.open(f"/pets?name={pet['name']}")
    page.evaluate("window.stays = true")
    link = page.get_by_role("link", name=pet["name"])
    link.focus()
    clerk.call("PATCH", f"/pets/{pet['id']}", status="sold")
    expect(page.locator("main table")).to_contain_text("sold")
    expect(page.locator("#live")).to_have_text("Live")
    expect(link).to_be_focused()
    assert page.evaluate("window.stays")
    clerk.open("/today")
    page.evaluate("window.stays = true")
    expect(page.locator("#live")).to_have_text("Live")
    page.evaluate("find => document.querySelector(find).dateTime = 'before'", "#printed time")
    figure = page.locator("#sold .figure strong").first
    before = figure.text_content() or ""
    clerk.call("POST", "/store/orders", petId=clerk.pet()["id"], amount=24_900, complete=True)
    expect(figure).not_to_have_text(before)
    expect(page.locator("#printed time")).not_to_have_attribute("datetime", "before")
    assert page.evaluate("window.stays")


def test_a_double_click_adds_one_pet(clerk: Clerk) -> None:
    name = clerk.pet()["name"] + " twice"
    clerk.open("/pets/new")
    clerk.field("name").fill(name)
    clerk.field("categoryId").select_option(index=1)
    clerk.page.locator("main form[method=post] button").first.dblclick()
    expect(clerk.page.locator(".notice")).to_contain_text(name)
    assert len(clerk.call("GET", f"/pets?name={name}")) == 1


def test_a_notice_is_read_out_after_a_page_was_loaded(clerk: Clerk) -> None:
    clerk.open("/pets/new")
    clerk.page.evaluate("document.querySelector('main form').dataset.plain = ''")
    clerk.page.get_by_label("Name", exact=True).fill("Bella")
    clerk.page.get_by_label("Category").select_option(index=1)
    clerk.page.get_by_role("button", name="Add the pet").click()
    expect(clerk.page.locator("#said")).to_contain_text("Added ")
    expect(clerk.page.get_by_label("Name", exact=True)).to_be_focused()


def test_selling_by_name_takes_five_keys_at_a_desk(clerk: Clerk) -> None:
    page, name = clerk.page, clerk.pet()["name"]
    clerk.pet(name=f"{name} II")
    for start in ("/today", "/pets"):
        clerk.open(start)
        press(page, "/")
        page.keyboard.type(name)
        press(page, "Enter")
        expect(page.get_by_role("link", name=name).first).to_be_focused()
        press(page, "Enter")
        expect(page.locator("h1")).to_have_text(name)
        press(page, "s")
        expect(page.get_by_label("Buyer")).to_be_focused()
        press(page, "Enter")
        expect(page.locator(".notice")).to_contain_text("Sold")
        page.get_by_role("button", name="Undo", exact=True).click()
        expect(page.locator("#state")).to_contain_text("available")


def test_selling_by_name_takes_four_taps_on_a_phone(arrive: Arrive) -> None:
    clerk = arrive(viewport={"width": 375, "height": 667}, is_mobile=True, has_touch=True)
    page, name = clerk.page, clerk.pet()["name"]
    for start in ("/today", "/pets"):
        clerk.open(start)
        search = page.get_by_role("search")
        search.locator("[name=name]").tap()
        page.keyboard.type(name)
        search.get_by_role("button", name="Find").tap()
        page.get_by_role("link", name=name).tap()
        page.get_by_role("button", name=f"Sell {name}").tap()
        expect(page.locator(".notice")).to_contain_text("Sold")
        page.get_by_role("button", name="Undo", exact=True).tap()
        expect(page.locator("#state")).to_contain_text("available")


def test_the_form_of_a_pet_and_its_undo_show_what_others_change_unless_the_form_is_in_use(
    clerk: Clerk,
) -> None:
    pet = clerk.pet()
    path = f"/pets/{pet['id']}"
    clerk.open(path)
    clerk.page.evaluate("document.querySelector('[name=name]').value = 'set by a script'")
    clerk.call("PATCH", path, name="Hilda the Great", status="pending")
    expect(clerk.field("name")).to_have_value("Hilda the Great")
    expect(clerk.field("status")).to_have_value("pending")
    clerk.field("name").fill("Typed by me")
    clerk.call("PATCH", path, name="Hilda the Greatest")
    expect(clerk.page.locator("#history")).to_contain_text("Hilda the Greatest")
    expect(clerk.field("name")).to_have_value("Typed by me")
    clerk.save()
    expect(clerk.page.get_by_role("alert")).to_contain_text("Hilda the Greatest")
    expect(clerk.field("name")).to_have_value("Typed by me")
    clerk.save()
    expect(clerk.page.locator("h1")).to_have_text("Typed by me")
    undo = clerk.page.locator(".notice").get_by_role("button", name="Undo")
    expect(undo).to_be_visible()
    clerk.call("PATCH", path, name="Max")
    expect(undo).to_have_count(0)
    expect(clerk.page.locator(".notice")).to_be_visible()


def test_the_back_button_works_after_a_form(clerk: Clerk) -> None:
    pet, page = clerk.pet(), clerk.page
    clerk.open(f"/pets?name={pet['name']}")
    clerk.open(f"/pets/{pet['id']}")
    page.locator(".confirm > summary", has_text="Delete").click()
    page.locator(".confirm[open] button.danger").click()
    expect(page.locator(".notice")).to_contain_text(pet["name"])
    assert "/console/pets?name=" in page.url  # where the pet was found
    page.go_back()
    expect(page).to_have_url(f"{clerk.shop.url}/console/pets/{pet['id']}")
    expect(page.locator("h1")).not_to_have_text("Pets")  # it is deleted


def test_leaving_a_page_with_unsaved_input_asks_first(arrive: Arrive) -> None:
    clerk = arrive()
    asked: list[str] = []

    def leave(dialog: Dialog) -> None:
        asked.append(dialog.type)
        dialog.accept()

    clerk.page.on("dialog", leave)
    clerk.open("/pets/new")
    clerk.open("/pets/new")
    assert asked == []
    clerk.field("name").press_sequentially("R")
    clerk.open("/pets")
    assert asked == ["beforeunload"]


def test_the_input_is_kept_without_a_network(clerk: Clerk) -> None:
    clerk.open("/pets/new")
    clerk.field("name").fill("Offline")
    clerk.field("categoryId").select_option(index=1)
    clerk.page.context.set_offline(True)
    clerk.save()
    expect(clerk.page.get_by_role("alert")).to_contain_text("cannot be reached")
    expect(clerk.field("name")).to_have_value("Offline")
    clerk.page.context.set_offline(False)
    clerk.save()
    expect(clerk.page.locator(".notice")).to_contain_text("Offline")


def test_signing_out_in_another_tab_keeps_the_input(arrive: Arrive) -> None:
    clerk = arrive()
    typing, leaving = clerk.page.context.new_page(), clerk.page.context.new_page()
    typing.goto(f"{clerk.shop.url}/console/pets/new")
    form = typing.locator("main form[method=post]").first
    form.locator("[name=name]").fill("Kept")
    form.locator("[name=categoryId]").select_option(index=1)
    with clerk.page.expect_request("**/console/changes?*"):
        clerk.open("/pets")
    leaving.goto(f"{clerk.shop.url}/console/help")
    leaving.evaluate("document.querySelector('form.account').requestSubmit()")
    expect(leaving.get_by_label("Login")).to_be_visible()
    form.locator("button").first.click()
    expect(typing.get_by_role("alert")).to_contain_text("You were signed out.")
    expect(form.locator("[name=name]")).to_have_value("Kept")
    clerk.pet()
    expect(clerk.page).to_have_url(f"{clerk.shop.url}/console/sign-in?next=%2Fpets")


def test_a_background_tab_sends_no_requests(clerk: Clerk) -> None:
    with clerk.page.expect_request("**/console/changes?*"):
        clerk.open("/pets")
    with clerk.page.expect_event("requestfailed"):
        clerk.page.evaluate(
            "Object.defineProperty(document, 'hidden', {value: true, configurable: true});"
            "document.dispatchEvent(new Event('visibilitychange'))"
        )
    with clerk.page.expect_request("**/console/changes?*"):
        clerk.page.evaluate(
            "delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))"
        )


def test_live_turns_to_offline_while_the_service_is_gone(tmp_path: Path, browser: Browser) -> None:
    server = ServerProcess(tmp_path)
    server.wait_until_ready()
    clerk = Clerk.at(server, browser, issue_for_console(server))
    live = clerk.page.locator("#live")
    clerk.open("/pets")
    expect(live).to_have_text("Live")
    # It takes connections and does not respond, as beyond a network that loses everything.
    os.killpg(server.process.pid, signal.SIGSTOP)
    expect(live).to_have_text("Offline", timeout=SOON)
    os.killpg(server.process.pid, signal.SIGCONT)
    expect(live).to_have_text("Live", timeout=SOON)
    pet = clerk.pet()
    expect(clerk.page.locator("main table")).to_contain_text(pet["name"])
    server.stop()
    expect(live).to_have_text("Offline", timeout=SOON)
    clerk.leave()


def test_times_have_the_zone_of_the_shop_and_numbers_the_format_of_the_reader(clerk: Clerk) -> None:
    page = clerk.page
    markup = (
        '<time id="moment" datetime="2026-11-22T22:30:00.000Z">22 Nov 2026, 22:30</time>'
        '<time id="day" datetime="2026-11-22">22 Nov 2026</time>'
        '<data value="12345678">12 345 678</data>'
    )
    add_to_list(page, lambda: markup)
    clerk.open("/pets")
    expect(page.locator("#moment")).to_have_text("22.11.2026, 22:30")
    expect(page.locator("#day")).to_have_text("22.11.2026")
    expect(page.locator("data").first).to_have_text("12.345.678")


def test_a_countdown_runs_and_its_end_is_announced_once(arrive: Arrive) -> None:
    clerk = arrive()
    page = clerk.page
    page.clock.install(time=LATER)
    ends = '<time id="end" datetime="2033-05-18T05:35:00Z" data-until>-</time>'
    add_to_list(page, lambda: ends)
    clerk.open("/pets")
    end, said = page.locator("#end"), page.locator("#said")
    expect(end).to_have_text("2 h 2 min left")
    page.clock.fast_forward("02:00:00")
    expect(end).to_have_text("2 min left")
    expect(said).to_have_text("")
    page.clock.fast_forward("03:00")
    expect(end).to_have_text("time is up")
    expect(said).to_have_text("A time on this page is up.")


def test_parts_of_a_page_refresh_unless_they_are_in_use(arrive: Arrive) -> None:
    clerk = arrive()
    page = clerk.page
    page.clock.install(time=LATER)
    counts = iter(range(1, 100))

    def markup() -> str:
        count = next(counts)
        rows = [f'<li><a href="#{name}">{name} {count}</a></li>' for name in ("Rex", "Bella")]
        return (
            f'<section id="one" data-refresh="10"><p>{count}</p><details><summary>More</summary>'
            f"<p>Text</p></details></section>"
            f'<section id="two" data-refresh="10"><p>{count}</p><input id="in-use"></section>'
            f'<ul id="three" data-refresh="10">{"".join(rows[:: 1 if count < 3 else -1])}</ul>'
        )

    add_to_list(page, markup)
    clerk.open("/pets")
    page.locator("summary", has_text="More").click()
    page.locator("#in-use").fill("typed")
    page.clock.fast_forward("00:10")
    expect(page.locator("#one > p")).to_have_text("2")
    expect(page.locator("#one details")).to_have_attribute("open", "")
    expect(page.locator("#two > p")).to_have_text("1")
    expect(page.locator("#in-use")).to_have_value("typed")

    page.get_by_role("link", name="Rex 2").focus()  # the rows will change their places
    page.clock.fast_forward("00:10")
    expect(page.locator("#three")).to_have_text("Bella 3Rex 3")
    expect(page.get_by_role("link", name="Rex 3")).to_be_focused()
    expect(page.locator("#two > p")).to_have_text("3")


def test_keyboard_shortcuts_navigate_the_console_until_they_are_turned_off(arrive: Arrive) -> None:
    page = (clerk := arrive()).page
    clerk.open("/pets")
    search, dialog = page.locator("[role=search] input").first, page.locator("dialog#help")
    page.keyboard.press("/")
    expect(search).to_be_focused()
    page.keyboard.press("?")
    expect(search).to_have_value("?")
    expect(dialog).to_be_hidden()

    search.blur()
    page.keyboard.press("?")
    expect(dialog).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()

    page.keyboard.press("n")
    expect(page).to_have_url(f"{clerk.shop.url}/console/pets/new")
    page.locator("h1").click()
    press(page, "/")
    expect(search).to_be_focused()
    page.locator("h1").click()
    press(page, "g", "a")
    expect(page).to_have_url(f"{clerk.shop.url}/console/pets")

    clerk.open("/help")
    page.get_by_label("Use shortcuts of a single key").uncheck()
    clerk.open("/pets")
    page.keyboard.press("?")
    page.keyboard.press("n")
    expect(dialog).to_be_hidden()
    page.get_by_role("link", name="Help").click()
    expect(dialog).to_be_visible()
    expect(page.get_by_label("Use shortcuts of a single key")).not_to_be_checked()


def test_a_scanner_presses_no_shortcuts_and_escape_closes_a_confirmation(clerk: Clerk) -> None:
    page, pet = clerk.page, clerk.pet()
    clerk.open(f"/pets/{pet['id']}")
    page.evaluate("""() => {
      for (const key of ['n', 'g', 'a', 's', '7']) {
        document.body.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true}));
      }
    }""")
    delete = page.locator(".confirm:has(.danger) > summary").last
    delete.click()
    expect(page.locator(".confirm[open]")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".confirm[open]")).to_have_count(0)
    expect(delete).to_be_focused()
    expect(page).to_have_url(f"{clerk.shop.url}/console/pets/{pet['id']}")


# Several pets selected in a list


def shown(clerk: Clerk, count: int) -> Locator:
    """Add so many pets, list only them, and return their checkboxes."""
    word = f"otto{uuid4().hex[:8]}"
    for number in range(count):
        clerk.pet(name=f"{word} {number}")
    clerk.open(f"/pets?name={word}")
    boxes = clerk.page.locator("input[name=pet]")
    expect(boxes).to_have_count(count)
    return boxes


def test_all_pets_of_a_page_that_nobody_deletes_are_selected_at_once_and_changed(
    clerk: Clerk,
) -> None:
    boxes, page = shown(clerk, 4), clerk.page
    page.get_by_label("Select all on this page").check()
    expect(page.locator("#selected")).to_have_text("4 selected")
    clerk.call("DELETE", f"/pets/{boxes.last.input_value().partition('.')[0]}")
    expect(boxes).to_have_count(3)
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


def test_the_keyboard_alone_selects_and_changes(clerk: Clerk) -> None:
    boxes, page = shown(clerk, 2), clerk.page
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
