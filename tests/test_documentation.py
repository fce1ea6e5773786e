"""The pages of docs/ and README.md say what the code does, and lead where they say."""

import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from petstore.api.operation import BASE, Operation
from petstore.api.operations import OPERATIONS
from petstore.errors import PetstoreError, UnusableDatabase
from petstore.settings import Settings
from website.navigation import sections

ROOT = Path(__file__).parent.parent
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]


def errors(base: type[PetstoreError] = PetstoreError) -> Iterator[type[PetstoreError]]:
    """Yield every kind of error that can reach a caller."""
    for error in base.__subclasses__():
        if error is not UnusableDatabase:  # which stops the start, so nobody can call
            yield error
            yield from errors(error)


def codes(text: str) -> list[tuple[str, str]]:
    """Return the status and the code of every section that says a cause and what to do."""
    section = r"^## ([0-9]{3}) |^### ([a-z_]+)\n\n[^#]+?\n\n\*\*What to do:\*\* [A-Z]"
    found, last = [], ""
    for status, code in re.findall(section, text, re.MULTILINE):
        last = status or last
        if code:
            found.append((last, code))
    return found


def test_the_page_of_errors_has_a_section_for_every_code_and_no_other() -> None:
    """Each error links the section of its code, and the heading is the anchor."""
    page = (ROOT / "docs/errors.md").read_text().partition("\n## From a balancer\n")[0]
    assert sorted(codes(page)) == sorted({(str(error.status), error.code) for error in errors()})
    assert len(re.findall("^### ", page, re.MULTILINE)) == len(codes(page))


def test_the_page_of_settings_lists_each_as_it_is() -> None:
    page = (ROOT / "docs/settings.md").read_text()
    listed = re.findall(
        r"^\| `--([a-z-]+)` \| `(PETSTORE_[A-Z_]+)` \| (?:`(.*?)`|none|off) \| (.+) \|$",
        page,
        re.MULTILINE,
    )
    expected = [
        (
            field.name.replace("_", "-"),
            f"PETSTORE_{field.name.upper()}",
            "" if field.default in ((), "") or field.default is False else str(field.default),
            field.metadata["description"],
        )
        for field in fields(Settings)
    ]
    assert sorted(row for row in listed if row[0] != "demo") == sorted(expected)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
        assert (page.parent / link).exists(), link


def test_every_page_stands_in_a_section_of_the_index() -> None:
    index = sections((ROOT / "docs/README.md").read_text())
    listed = {entry.path for entries in index.values() for entry in entries}
    pages = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}
    assert {path for path in pages if not path.startswith("decisions/")} - listed == {"README.md"}
    assert list(index) == ["Tutorials", "How-to guides", "Reference", "Explanation"]


def test_every_decision_stands_in_their_index() -> None:
    decisions = (ROOT / "docs/decisions/README.md").read_text()
    for page in (ROOT / "docs/decisions").glob("0*.md"):
        assert f"({page.name})" in decisions


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.id)
def test_every_operation_is_described(operation: Operation) -> None:
    texts = "".join(page.read_text() for page in PAGES)
    assert f"{operation.method} {BASE}{operation.path}" in texts
