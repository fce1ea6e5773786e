"""The forms of a page, as a browser without JavaScript fills in and sends them."""

from html.parser import HTMLParser
from typing import NamedTuple

import httpx

from support.visitor import Visitor


class PageForm(NamedTuple):
    """A form: where it goes, what it sends as it stands, and the text of its button."""

    path: str
    fields: dict[str, str]
    button: str


class _Reader(HTMLParser):
    """Reads the forms that are sent with POST."""

    def __init__(self) -> None:
        super().__init__()
        self.forms: list[PageForm] = []
        self._open = False
        self._select = ""
        self._in_button = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._open = found.get("method") == "post"
            if self._open:
                self.forms.append(PageForm(found["action"].removeprefix("/console"), {}, ""))
        elif self._open and tag == "input":
            self.forms[-1].fields[found["name"]] = found["value"]
        elif self._open and tag == "select":
            self._select = found["name"]
        elif self._open and tag == "option" and "selected" in found:
            self.forms[-1].fields[self._select] = found["value"]
        elif tag == "button":
            self._in_button = True

    def handle_data(self, data: str) -> None:
        if self._open and self._in_button:
            self.forms[-1] = self.forms[-1]._replace(button=self.forms[-1].button + data)

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._open = False
        elif tag == "button":
            self._in_button = False


def form_of(page: httpx.Response, button: str) -> PageForm:
    """Return the form of a page whose button has this text."""
    reader = _Reader()
    reader.feed(page.text)
    buttons = {form.button: form for form in reader.forms}
    assert button in buttons, sorted(buttons)
    return buttons[button]


def buttons_of(page: httpx.Response) -> list[str]:
    """Return the texts of the buttons of the forms of a page, but for ``Sign out``."""
    reader = _Reader()
    reader.feed(page.text)
    return [form.button for form in reader.forms if form.button != "Sign out"]


async def press(
    visitor: Visitor, page: httpx.Response, button: str, **typed: str
) -> httpx.Response:
    """Fill in a form of a page, press its button, and return the response."""
    form = form_of(page, button)
    return await visitor.post(form.path, **form.fields | typed)


async def succeed(
    visitor: Visitor, page: httpx.Response, button: str, **typed: str
) -> httpx.Response:
    """Fill in a form, press its button, and return the page that it leads to."""
    form = form_of(page, button)
    return await visitor.submit(form.path, **form.fields | typed)
