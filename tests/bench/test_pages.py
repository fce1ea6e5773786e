"""Reports, plots and pages that quote results have what the saved results give."""

from pathlib import Path

import msgspec
import pytest

from pages import quoted
from plots import plots
from report import FOLDER, pages, report
from results import Results

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
