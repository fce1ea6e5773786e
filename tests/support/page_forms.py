"""The forms of a page, as a browser without JavaScript fills in and sends them."""

from html.parser import HTMLParser
from typing import Any, NamedTuple

import httpx

from support.visitor import Visitor


class PageForm(NamedTuple):
    """A form: where it goes, what it sends as it stands, and the text of its button."""

    path: str
    fields: dict[str, Any]
    button: str


class _Reader(HTMLParser):
    """Reads the forms that are sent with POST."""

    def __init__(self, page: httpx.Response) -> None:
        super().__init__()
        self.forms: list[PageForm] = []
        self._open = False
        self._action = ""
        self._select = ""
        self._in_button = False
        self._text = ""
        self.feed(page.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._open = found.get("method") == "post"
            if self._open:
                self._action = found["action"]
                self.forms.append(PageForm(self._action.removeprefix("/console"), {}, ""))
        elif tag == "button":
            # One of these sends nothing; others mend a field, or are there for the Enter key.
            is_other = found.get("type") == "button" or "name" in found or "aria-hidden" in found
            self._in_button = self._open and not is_other
            if self._in_button:
                # Each button of a form sends the same fields, perhaps elsewhere.
                path = found.get("formaction", self._action).removeprefix("/console")
                form = self.forms.pop() if not self.forms[-1].button else self.forms[-1]
                self.forms.append(PageForm(path, form.fields, ""))
        elif self._open:
            self._add(tag, found, self.forms[-1].fields)

    def _add(self, tag: str, found: dict[str, str], fields: dict[str, Any]) -> None:
        if found.get("type") == "checkbox":
            if "checked" in found:
                fields.setdefault(found["name"], []).append(found["value"])
        elif tag == "input" and isinstance(fields.get(found["name"]), list):
            fields[found["name"]].append(found.get("value", ""))
        elif tag == "input" and found.get("type") == "hidden" and found["name"] in fields:
            fields[found["name"]] = [fields[found["name"]], found.get("value", "")]
        elif tag == "input":
            fields[found["name"]] = found.get("value", "")
        elif tag == "textarea":
            self._text = found["name"]
            fields[self._text] = ""
        elif tag == "select":
            self._select = found["name"]
        elif tag == "option" and ("selected" in found or self._select not in fields):
            fields[self._select] = found["value"]

    def handle_data(self, data: str) -> None:
        if self._open and self._in_button:
            self.forms[-1] = self.forms[-1]._replace(button=self.forms[-1].button + data)
        elif self._text:
            self.forms[-1].fields[self._text] += data.removeprefix("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._open = False
        elif tag == "button":
            self._in_button = False
        elif tag == "textarea":
            self._text = ""


def form_to(page: httpx.Response, path: str) -> PageForm:
    (form,) = (form for form in _Reader(page).forms if form.path == path)
    return form


def form_of(page: httpx.Response, button: str) -> PageForm:
    buttons = {form.button: form for form in _Reader(page).forms}
    assert button in buttons, sorted(buttons)
    return buttons[button]


def buttons_of(page: httpx.Response) -> list[str]:
    """Return the texts of the buttons of the forms of a page, but for ``Sign out``."""
    return [form.button for form in _Reader(page).forms if form.button != "Sign out"]


async def press(
    visitor: Visitor, page: httpx.Response, button: str, **typed: str
) -> httpx.Response:
    form = form_of(page, button)
    return await visitor.post(form.path, **form.fields | typed)


async def succeed(
    visitor: Visitor, page: httpx.Response, button: str, **typed: str
) -> httpx.Response:
    form = form_of(page, button)
    return await visitor.submit(form.path, **form.fields | typed)


def conflict_of(page: httpx.Response, field: str) -> list[str]:
    """Return what a conflict says about a field: as it was opened, as it is now, as wanted."""
    item = page.text.partition(f"<li>{field}: ")[2].partition("</li>")[0]
    told = [value.partition("</bdi>")[0] for value in item.split("<bdi>")[1:]]
    return [*told, "the same as now"][:3]
