"""``make screenshots``: each page of the console, on a phone and at a desk, light and dark.

They show the demo store, as its administrator sees it. They are for whoever changes how a page
looks. Those of ``IN_DOCS`` stand in the documentation too.
"""

import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from playwright.sync_api import Browser, BrowserContext, FilePayload

from petstore.console.console import PAGES
from petstore.console.page import HOME
from support.browser import DESK, PHONE, chromium
from support.process import ServerProcess
from website.sources import ROOT

IN_DOCS = {
    "today-1280-light": "console-today",
    "orders-1280-light": "console-orders",
    "sales-1280-dark": "console-sales",
    "pets-petId-320-light": "console-pet",
}
"""The pictures of the documentation, by the names of the screenshots."""

_SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
_LINK = re.compile(rf"http\S+{HOME}/invitation/\S+")
_HREF = re.compile(rf'href="({HOME}[^"?#]*)')
_PARAMETER = re.compile(r"\\\{\w+\\\}")


def addresses(read: Callable[[str], str]) -> Iterator[tuple[str, str]]:
    """Yield the name and the path of each page that links lead to, from the first one on.

    ``read`` returns the HTML of a path to somebody who is signed in.
    """
    patterns = {path: _pattern(path) for path in _paths()}
    seen = [HOME]
    for path in seen:  # which grows
        matching = [page for page, pattern in patterns.items() if pattern.fullmatch(path)]
        for page in matching:
            del patterns[page]
            yield name_of(page), path
        if matching:
            links = dict.fromkeys(_HREF.findall(read(path)))
            seen += [target for target in links if target not in seen]


def name_of(path: str) -> str:
    """Return the name of the screenshots of a page."""
    return re.sub(r"\W+", "-", path).strip("-") or "home"


def take(folder: Path) -> list[str]:
    """Take the screenshots into ``folder``, which is emptied; return their names."""
    shutil.rmtree(folder, ignore_errors=True)
    with TemporaryDirectory() as store, chromium() as browser:
        server = ServerProcess(Path(store), "--demo")
        try:
            return [*_taken(folder, server, _signed_in(server, browser))]
        finally:
            server.stop()


def link_of(server: ServerProcess) -> str:
    """Return the link with which the administrator of a demo store sets a password."""
    server.wait_until_ready()
    said = server.process.stdout or ()
    return next(found[0] for line in said if (found := _LINK.search(line)))


def _paths() -> Iterator[str]:
    """Yield the addresses of pages, without those of files."""
    yield from (page.path for page in PAGES if page.method == "GET" and "." not in page.path)


def _pattern(path: str) -> re.Pattern[str]:
    return re.compile(re.escape(HOME) + _PARAMETER.sub(r"\\d+", re.escape(path)))


def _signed_in(server: ServerProcess, browser: Browser) -> BrowserContext:
    context = browser.new_context(reduced_motion="reduce")
    page = context.new_page()
    page.goto(link_of(server))
    page.get_by_label("New password").fill("correct horse")
    page.get_by_role("button", name="Set the password").click()
    page.goto(f"{server.url}{HOME}/import")
    example = page.request.get(f"{server.url}{HOME}/import/example.csv")
    file: FilePayload = {"name": "pets.csv", "mimeType": "text/csv", "buffer": example.body()}
    page.get_by_label("File", exact=True).set_input_files(file)
    page.locator("form[enctype] button").click()
    return context


def _taken(folder: Path, server: ServerProcess, context: BrowserContext) -> Iterator[str]:
    page = context.new_page()
    for name, path in addresses(lambda path: context.request.get(f"{server.url}{path}").text()):
        page.goto(f"{server.url}{path}")
        for size in (PHONE, DESK):
            page.set_viewport_size(size)
            for scheme in _SCHEMES:
                page.emulate_media(color_scheme=scheme)
                shot = f"{name}-{size['width']}-{scheme}"
                is_whole = shot not in IN_DOCS
                page.screenshot(path=folder / f"{shot}.png", full_page=is_whole)
                yield shot


if __name__ == "__main__":
    target = ROOT / "screenshots"
    names = take(target)
    for name, image in IN_DOCS.items():
        shutil.copy(target / f"{name}.png", ROOT / f"docs/images/{image}.png")
    sys.stdout.write(f"screenshots: {len(names)} pictures\n")
