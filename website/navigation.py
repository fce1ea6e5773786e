"""The navigation of the site: the lists of its home page, section by section."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

_SECTION = re.compile(r"^## (.+)$")
_ITEM = re.compile(r"^- \[([^\]]+)\]\(([^)#]+)(?:#[^)]*)?\): (.+)$")
_CONTINUED = re.compile(r"\n  (?=\S)")


class Entry(NamedTuple):
    """A page, with its title in the sidebar and what it is about, in one line."""

    title: str
    path: str
    text: str

    def __str__(self) -> str:
        return f"- [{self.title}]({self.path}): {self.text}"


def sections(home: str) -> dict[str, list[Entry]]:
    """Return the entries of each section of the home page: of its headings with a list."""
    found: dict[str, list[Entry]] = {}
    for title, entry in _entries(home):
        found.setdefault(title, []).append(entry)
    return found


def _entries(home: str) -> Iterator[tuple[str, Entry]]:
    title = ""
    for line in _CONTINUED.sub(" ", home).splitlines():
        if heading := _SECTION.match(line):
            title = heading[1]
        elif item := _ITEM.match(line):
            yield title, Entry(*item.groups())


def with_entries(home: str, section: str, added: Iterable[Entry]) -> str:
    """Return the home page with more entries, the last ones in the list of a section."""
    before, heading, after = home.partition(f"\n## {section}\n")
    own, following, rest = after.partition("\n\n## ")
    lines = "".join(f"\n{entry}" for entry in added)
    return f"{before}{heading}{own.rstrip()}{lines}{following or chr(10)}{rest}"
