"""A real browser, without a window, that notes what a page asks for and complains of."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Self

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Error,
    Page,
    expect,
    sync_playwright,
)

from support.programs import needs

# The first has no code for windows, and takes less than half of the processor time of the others.
_NAMES = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
)
_QUIET = (
    "--no-sandbox",  # which root, as in a container, has no use of
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Run Chromium until the block ends: the machine's own, else the one Playwright fetched."""
    expect.set_options(timeout=30_000)  # on a busy machine slow is no failure
    own = next((path for name in _NAMES if (path := shutil.which(name))), None)
    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=own, args=_QUIET)
        except Error as error:
            if own is None and "Executable doesn't exist" in str(error):
                pytest.skip(needs("a browser"))
            raise
        try:
            yield browser
        finally:
            browser.close()


def wait_for_forms(page: Page) -> None:
    """Let each step on a page wait while a form is being sent: the script ignores clicks then."""
    page.add_locator_handler(page.locator("form[aria-busy=true]").first, lambda: None)


def press(page: Page, *keys: str) -> None:
    """Press keys as a person does, once the script of the page is there to act on them."""
    page.wait_for_load_state()
    for key in keys:
        page.keyboard.press(key, delay=60)  # faster ones come from a scanner


@dataclass
class Visit:
    """A page, with the addresses it requested and the errors it had since it was opened."""

    page: Page
    requested: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    @classmethod
    def to(cls, address: str, browser: Browser | BrowserContext) -> Self:
        """Open ``address`` in a fresh page, in a context of its own unless one is given."""
        visit = cls(browser.new_page())
        wait_for_forms(visit.page)
        visit.page.on("request", lambda request: visit.requested.append(request.url))
        visit.page.on("console", visit._note)
        visit.page.on("pageerror", lambda error: visit.errors.append(str(error)))
        visit.page.goto(address)
        return visit

    def _note(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.errors.append(message.text)
