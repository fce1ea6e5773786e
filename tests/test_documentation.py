"""The pages of docs/ and README.md say what the code does, and lead where they say."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from petstore.errors import PetstoreError, UnusableDatabase
from petstore.events.model import EVENT_TYPES, scope_of
from petstore.logs import EventName, RequestLine
from website.navigation import sections

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src/petstore"
RECIPES = ("CONTRIBUTING.md", "docs/extending.md")
GROUPS = ["Start", "Build", "Clients", "API reference", "Run a shop", "Operate", "About"]
GENERATED = re.compile(r"operations/|(event-types|metrics)\.md")
"""What follows from the code, and is on the site alone."""
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]


def errors(base: type[PetstoreError] = PetstoreError) -> Iterator[type[PetstoreError]]:
    """Yield every kind of error that can reach a caller."""
    for error in base.__subclasses__():
        if error is not UnusableDatabase:  # which stops the start, so nobody can call
            yield error
            yield from errors(error)


def test_the_page_of_errors_has_a_row_for_every_code_and_no_other() -> None:
    """Each error links the row of its code."""
    page = (ROOT / "docs/errors.md").read_text().partition("\n## From a load balancer\n")[0]
    found, status = [], ""
    for heading, code in re.findall(r'^(?:## (\d{3}) |\| <b id="(\w+)">)', page, re.MULTILINE):
        status = heading or status
        found += [(status, code)] if code else []
    assert sorted(found) == sorted({(str(error.status), error.code) for error in errors()})


def test_the_recipes_name_files_and_names_that_exist() -> None:
    recipes = "".join((ROOT / name).read_text() for name in RECIPES)
    named = re.findall(r"`([\w./<>-]+(?:\.(?:json|md|py|sql|toml|yml)|/))`", recipes)
    assert [name for name in named if not files(name)] == []
    several = r"((?:`\w+`[\s,]*(?:and )?)+)(?:in|of)\s+`([\w./-]+\.py)`"
    for names, name in re.findall(several, recipes):
        (text,) = (path.read_text() for path in files(name))
        assert set(re.findall(r"\w+", names)) - {"and"} <= set(re.findall(r"\w+", text)), name


def files(name: str) -> list[Path]:
    pattern = re.sub("<[a-z]+>|NNNN", "*", name)
    return [path for folder in (ROOT, PACKAGE) for path in folder.glob(pattern)]


def test_every_page_is_in_a_section_of_the_index() -> None:
    index = sections((ROOT / "docs/README.md").read_text())
    listed = {entry.path for entries in index.values() for entry in entries}
    pages = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").glob("*.md")}
    assert pages - listed == {"README.md"}
    assert list(index) == GROUPS


def test_a_page_can_be_read_in_one_sitting() -> None:
    long = {"client-library.md", "errors.md", "generated-clients.md", "runbook.md"}
    for page in (ROOT / "docs").glob("*.md"):
        if page.name not in long:
            assert len(page.read_text().split()) <= 1300, page.name


def test_every_link_to_a_file_leads_to_one() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^()#:\s]+)[#)]", page.read_text()):
            if (page.parent / target).is_relative_to(ROOT / "docs") and GENERATED.match(target):
                continue
            assert (page.parent / target).exists(), (page.name, target)


def section(page: str, heading: str) -> str:
    text = (ROOT / f"docs/{page}.md").read_text()
    return text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def test_the_page_of_logs_lists_every_member_of_a_request_and_every_event_in_order() -> None:
    for heading, names in (
        ("Requests", RequestLine.__struct_fields__),
        ("Events of the service", get_args(EventName)),
    ):
        listed = re.findall(r"^\| `([a-z_]+)` \|", section("logs", heading), re.MULTILINE)
        assert listed == list(names)


def test_the_page_of_events_has_the_correct_scopes_of_the_types() -> None:
    text = section("events", "What a key sees")
    rows = re.findall(r"^\| (`[^|]+) \| (?:`([a-z:]+)`|none: [^|]+) \|$", text, re.MULTILINE)
    patterns = {
        name: scope or None for names, scope in rows for name in re.findall(r"`(.+?)`", names)
    }
    for name in EVENT_TYPES:
        assert patterns.get(name, patterns.get(f"{name.partition('.')[0]}.*", "")) == scope_of(name)


def test_the_first_change_is_still_there_to_make() -> None:
    guide = (ROOT / "CONTRIBUTING.md").read_text()
    (phrase,) = re.findall(r'^git grep -n "(.+)" src tests docs$', guide, re.MULTILINE)
    named = set(re.findall(r"`((?:src|tests)/[\w/]+\.py)`", guide))
    found = {
        str(path.relative_to(ROOT))
        for folder in ("src", "tests")
        for path in (ROOT / folder).rglob("*.py")
        if phrase in path.read_text()
    }
    assert found == named
    (test,) = re.findall(r"pytest tests/categories -k (\w+)", guide)
    assert f"{test}(" in (ROOT / "tests/categories/test_operations.py").read_text()
