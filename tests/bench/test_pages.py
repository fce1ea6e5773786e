"""Reports, plots and pages that quote results have what the saved results give."""

import re
from pathlib import Path

import msgspec
import pytest

from pages import quoted
from petstore import __version__
from plots import plots
from report import FOLDER, pages, report
from results import Results

ROOT = Path(__file__).parent.parent.parent

RESULTS = msgspec.json.decode((FOLDER / "results.json").read_bytes(), type=Results)
WRITTEN = {
    FOLDER / "results.md": report(RESULTS),
    **{FOLDER / f"{name}.svg": drawing for name, drawing in plots(RESULTS).items()},
    **pages(RESULTS),
}


@pytest.mark.parametrize("tables", [{"one": ""}, {"one": "", "two": "", "three": ""}])
def test_a_table_without_a_marker_and_a_marker_without_a_table_are_refused(
    tables: dict[str, str],
) -> None:
    page = "<!-- table: one -->\nold\n<!-- end -->\n\n<!-- table: two -->\n<!-- end -->\n"
    with pytest.raises(ValueError, match=r"the page has places for \['one', 'two'\], not for"):
        quoted(page, tables)


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.name)
def test_every_page_and_plot_matches_the_saved_comparison(page: Path) -> None:
    assert page.read_text() == WRITTEN[page]


MEASURED = (
    *sorted(FOLDER.glob("*.md")),
    *(ROOT / "docs" / name for name in ("performance.md", "scale.md", "reliability.md")),
)


@pytest.mark.parametrize("page", MEASURED, ids=lambda page: page.name)
def test_a_page_names_what_it_measured_and_is_at_most_a_release_behind(page: Path) -> None:
    found = re.search(r"Petstore (\d+\.\d+\.\d+), commit [0-9a-f]{7,40}\b", page.read_text())
    assert found, f"{page.name}: expected the version and the commit that it measured"
    versions = re.findall(
        r"^## \[(\d+\.\d+\.\d+)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE
    )
    assert found[1] in {__version__, *versions[:2]}, (
        f"{page.name}: {found[1]} is too old; measure again"
    )
