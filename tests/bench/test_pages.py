"""Pages that quote results have the tables that the saved results give."""

from pathlib import Path

import msgspec
import pytest

from pages import quoted
from report import FOLDER, pages
from results import Results

RESULTS = msgspec.json.decode((FOLDER / "results.json").read_bytes(), type=Results)
PAGE = """\
# Title

<!-- table: one -->
old
<!-- end -->

Between.

<!-- table: two -->
<!-- end -->
"""


def test_a_table_replaces_the_one_before_and_nothing_else() -> None:
    text = quoted(PAGE, {"one": "new", "two": "| a |"})
    assert text == PAGE.replace("old", "new").replace("two -->\n", "two -->\n| a |\n")
    assert quoted(text, {"one": "new", "two": "| a |"}) == text


@pytest.mark.parametrize("tables", [{"one": ""}, {"one": "", "two": "", "three": ""}])
def test_a_table_without_a_place_and_a_place_without_a_table_are_refused(
    tables: dict[str, str],
) -> None:
    with pytest.raises(ValueError, match=r"the page has places for \['one', 'two'\], not for"):
        quoted(PAGE, tables)


@pytest.mark.parametrize(
    ("page", "text"), pages(RESULTS).items(), ids=lambda it: it.name if isinstance(it, Path) else ""
)
def test_every_quoted_number_matches_the_saved_comparison(page: Path, text: str) -> None:
    assert page.read_text() == text
