"""A real browser, without a window, and a clerk at the console in it."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, Self
from uuid import uuid4

import httpx
import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Error,
    Locator,
    Page,
    ViewportSize,
    expect,
    sync_playwright,
)

from support.process import ServerProcess
from support.programs import needs
from support.visitor import cookies_of_administrator

# 320 px is also what 1280 px are with 400 % zoom (WCAG 1.4.10).
PHONE: ViewportSize = {"width": 320, "height": 568}
DESK: ViewportSize = {"width": 1280, "height": 800}
AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text()
VIOLATIONS = """async options => (await axe.run({resultTypes: ['violations'], ...options}))
  .violations.flatMap(rule => rule.nodes.map(node => `${rule.id}: ${node.html.slice(0, 200)}`))"""

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


def sign_in(context: BrowserContext, shop: ServerProcess, token: str) -> None:
    for name, value in cookies_of_administrator(shop, token).items():
        context.add_cookies([{"name": name, "value": value, "url": shop.url}])


@dataclass
class Clerk:
    """An administrator on a ``page`` of a browser; ``token`` is a key's, for everything."""

    shop: ServerProcess
    page: Page
    token: str
    errors: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        wait_for_forms(self.page)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))

    @classmethod
    def at(cls, shop: ServerProcess, browser: Browser, token: str, **options: Any) -> Self:
        """Bring in a person who has signed in; ``options`` are the browser's."""
        context = browser.new_context(**options)
        sign_in(context, shop, token)
        return cls(shop, context.new_page(), token)

    def open(self, path: str) -> None:
        self.page.goto(f"{self.shop.url}/console{path}")

    def call(self, method: str, path: str, **body: Any) -> Any:
        headers = {"Authorization": f"Bearer {self.token}"}
        url = f"{self.shop.url}/v1{path}"
        response = httpx.request(method, url, headers=headers, json=body)
        assert response.is_success, response.text
        return response.json() if response.content else None

    def pet(self, **fields: Any) -> Any:
        name = f"Hilda {uuid4().hex[:8]}"
        values = {"name": name, "categoryId": 1, "status": "available"}
        return self.call("POST", "/pets", **(values | fields))

    def field(self, name: str) -> Locator:
        return self.page.locator(f"main form[method=post] [name={name}]:visible").first

    def save(self) -> None:
        """Send that form: the one with *Save*, else the first one."""
        forms = self.page.locator("main form[method=post]:has(:is(input, select):visible)")
        saving = forms.filter(has_text="Save")
        (saving if saving.count() else forms).first.locator("button").first.click()

    def leave(self) -> None:
        """Close the browser, whatever was typed; the script must not have failed."""
        self.page.context.close()
        assert self.errors == []
