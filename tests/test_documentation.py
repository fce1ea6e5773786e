"""The pages of docs/ and README.md say what the code does, and lead where they say."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import Struct

from petstore.categories.model import Category
from petstore.errors import PetstoreError, UnusableDatabase
from petstore.interface.operation import BASE
from petstore.interface.operations import OPERATIONS
from petstore.keys.model import KeyWithToken
from petstore.orders.model import Order
from petstore.people.model import Person
from petstore.pets.model import Pet
from petstore.webhooks.model import Delivery, Webhook
from website.lists import LISTS, with_list
from website.navigation import sections

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src/petstore"
RECIPES = ("CONTRIBUTING.md", "docs/extending.md")
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]


def errors(base: type[PetstoreError] = PetstoreError) -> Iterator[type[PetstoreError]]:
    """Yield every kind of error that can reach a caller."""
    for error in base.__subclasses__():
        if error is not UnusableDatabase:  # which stops the start, so nobody can call
            yield error
            yield from errors(error)


def codes(text: str) -> list[tuple[str, str]]:
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


@pytest.mark.parametrize(
    ("page", "resource"),
    [
        ("categories", Category),
        ("keys", KeyWithToken),
        ("orders", Order),
        ("people", Person),
        ("pets", Pet),
        ("webhooks", Delivery),
        ("webhooks", Webhook),
    ],
)
def test_every_field_of_a_resource_has_a_row_on_its_page(page: str, resource: type[Struct]) -> None:
    text = (ROOT / f"docs/{page}.md").read_text()
    tables = re.findall(r"^\| Field \|.*\n((?:\|.*\n)+)", text, re.MULTILINE)
    first_cells = " ".join(re.findall(r"^\|([^|]+)", "".join(tables), re.MULTILINE))
    assert set(resource.__struct_encode_fields__) <= set(re.findall(r"`(\w+)`", first_cells))


@pytest.mark.parametrize("name", LISTS)
def test_a_list_agrees_with_the_code(name: str) -> None:
    page, make = LISTS[name]
    text = page.read_text()
    assert with_list(text, name, make()) == text, "run: make lists"


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
    pages = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}
    assert {path for path in pages if not path.startswith("decisions/")} - listed == {"README.md"}
    assert list(index) == ["Tutorials", "How-to guides", "Reference", "Explanation"]


def test_every_decision_record_is_in_the_index() -> None:
    decisions = (ROOT / "docs/decisions/README.md").read_text()
    for page in (ROOT / "docs/decisions").glob("0*.md"):
        assert f"({page.name})" in decisions


def test_every_operation_is_described() -> None:
    texts = "".join(page.read_text() for page in PAGES)
    for operation in OPERATIONS:
        assert f"{operation.method} {BASE}{operation.path}" in texts


def test_every_link_to_a_file_leads_to_one() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^()#:\s]+)[#)]", page.read_text()):
            assert (page.parent / target).exists(), (page.name, target)
