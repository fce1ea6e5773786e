"""A form to send again: the page that it meets instead of its own keeps what was typed."""

import re
from typing import NamedTuple

from petstore.console.forms import Form, in_words

_MAX_ADDRESS = 2000
# A page of the console, as its own links name it: no dots, no second slash, no other site.
_ADDRESS = re.compile(r"(?:/[A-Za-z0-9_-]+)+(?:\?[!-\[\]-~]*)?\Z")
_PREFIX = "typed."
_PATH = "again"
# What a form has for the service, beside what a person types.
_UNSEEN = re.compile(r"once|again|version|seen|until|was_.*")


class Again(NamedTuple):
    """A form to send again: the page that takes it, relative to the console, and its fields."""

    path: str
    fields: tuple[tuple[str, str], ...]

    @property
    def hidden(self) -> list[tuple[str, str]]:
        """The fields of the sign-in form that keep it."""
        return [(_PATH, self.path), *((_PREFIX + name, value) for name, value in self.fields)]

    @property
    def shown(self) -> list[tuple[str, str]]:
        """The fields that mean something to the person."""
        return [
            (in_words(name), value)
            for name, value in self.fields
            if value and not _UNSEEN.fullmatch(name)
        ]


def again_of(path: str, form: Form) -> Again:
    """Return a form as it arrived."""
    return Again(path, tuple(_pairs(form)))


def kept_in(form: Form) -> Again | None:
    """Return the form that a sign-in form keeps, ``None`` if it keeps none."""
    path = page_address(form.text(_PATH))
    if not path:
        return None
    fields = ((name, value) for name, value in _pairs(form) if name.startswith(_PREFIX))
    return Again(path, tuple((name.removeprefix(_PREFIX), value) for name, value in fields))


def page_address(address: str) -> str:
    """Return the address of a page, relative to the console; empty if it leads elsewhere."""
    is_page = len(address) <= _MAX_ADDRESS and _ADDRESS.match(address) is not None
    return address if is_page else ""


def _pairs(form: Form) -> list[tuple[str, str]]:
    return [(name, value) for name, values in form.fields.items() for value in values]
