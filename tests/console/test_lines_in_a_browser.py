"""What belongs together stands on one line, and nothing stands on top of something else."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from support.clerk import Clerk
from support.process import ServerProcess
from support.staff import issue_for_console


@pytest.fixture(scope="module")
def clerk(shop: ServerProcess, browser: Browser) -> Iterator[Clerk]:
    """Somebody with every right, on a phone."""
    clerk = Clerk.at(shop, browser, issue_for_console(shop))
    clerk.page.set_viewport_size({"width": 320, "height": 640})
    yield clerk
    clerk.leave()


def test_a_name_that_no_line_can_break_makes_no_page_wider(clerk: Clerk) -> None:
    name = "a" + "\N{COMBINING ACUTE ACCENT}" * 20 + "W\N{WORD JOINER}" * 80
    pet = clerk.pet(name=name)
    clerk.call("PATCH", f"/pets/{pet['id']}", status="pending")
    for path in ("/today", "/activity", f"/pets/{pet['id']}"):
        clerk.open(path)
        assert clerk.page.evaluate("document.documentElement.scrollWidth") <= 320, path
