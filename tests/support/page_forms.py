"""The forms of a page, as a browser without JavaScript fills in and sends them."""

import re
from collections.abc import Iterator
from html import unescape
from typing import Any, NamedTuple

import httpx

from support.visitor import Visitor

_ATTRIBUTE = re.compile(r'([\w-]+)(?:="([^"]*)")?')
_FORM = re.compile(r"<form\b([^>]*)>(.*?)</form>", re.DOTALL)
_CONTROL = re.compile(r"<(input|select|option|textarea)\b([^>]*)>([^<]*)")
# One of the others sends nothing; some mend a field, or are there for the Enter key.
_BUTTON = re.compile(
    r'<button\b(?![^>]*\s(?:type="button"|name=|aria-hidden))([^>]*)>(.*?)</button>', re.DOTALL
)


class PageForm(NamedTuple):
    """A form: where it goes, what it sends as it stands, and the text of its button."""

    path: str
    fields: dict[str, Any]
    button: str


def _attributes(text: str) -> dict[str, str]:
    return {name: unescape(value) for name, value in _ATTRIBUTE.findall(text)}


def _fields(form: str) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    name = ""
    for tag, attributes, text in _CONTROL.findall(form):
        found = _attributes(attributes)
        name, kind, value = found.get("name", name), found.get("type"), found.get("value", "")
        if tag == "textarea":
            fields[name] = unescape(text).removeprefix("\n")
        elif kind == "checkbox":
            if "checked" in found:
                fields.setdefault(name, []).append(value)
        elif tag == "input" and isinstance(fields.get(name), list):
            fields[name].append(value)
        elif kind == "hidden" and name in fields:
            fields[name] = [fields[name], value]
        elif tag == "input" or "selected" in found:
            fields[name] = value
        elif tag == "option":
            fields.setdefault(name, value)
    return fields


def _forms(page: httpx.Response) -> Iterator[PageForm]:
    """Yield each form that is sent with POST, for each of its buttons."""
    for opening, content in _FORM.findall(page.text):
        form = _attributes(opening)
        if form.get("method") == "post":
            fields = _fields(content)
            for attributes, text in _BUTTON.findall(content) or [("", "")]:
                path = _attributes(attributes).get("formaction", form["action"])
                yield PageForm(
                    path.removeprefix("/console"), fields, unescape(re.sub("<[^>]*>", "", text))
                )


def form_to(page: httpx.Response, path: str) -> PageForm:
    (form,) = (form for form in _forms(page) if form.path == path)
    return form


def form_of(page: httpx.Response, button: str) -> PageForm:
    buttons = {form.button: form for form in _forms(page)}
    assert button in buttons, sorted(buttons)
    return buttons[button]


def buttons_of(page: httpx.Response) -> list[str]:
    """Return the texts of the buttons of the forms of a page, but for ``Sign out``."""
    return [form.button for form in _forms(page) if form.button != "Sign out"]


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
