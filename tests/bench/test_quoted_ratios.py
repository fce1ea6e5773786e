"""The ratios that README and docs/performance.md quote are those of the saved comparison."""

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from report import FOLDER, MANY, OURS
from results import Results

ROOT = Path(__file__).parent.parent.parent
WORKS = {
    "docs/performance.md": ("list", "deep page", "get", "create", "place order", "mix"),
    "README.md": ("list", "create", "mix"),
}


def quoted(page: str) -> Iterator[tuple[str, str, float]]:
    """Yield peer, work and ratio of each cell of the first table with ratios."""
    for line in (ROOT / page).read_text().splitlines():
        title, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        if len(cells) == len(WORKS[page]) and any("×" in cell for cell in cells):
            for work, cell in zip(WORKS[page], cells, strict=True):
                if number := re.fullmatch(r"([0-9.]+) ×", cell):
                    yield title.partition(" (")[0], work, float(number[1])


@pytest.fixture(scope="module")
def results() -> Results:
    """The comparison that was saved."""
    return msgspec.json.decode((FOLDER / "results.json").read_bytes(), type=Results)


@pytest.mark.parametrize("page", WORKS)
def test_every_ratio_is_that_of_the_saved_comparison(page: str, results: Results) -> None:
    rates = {
        (one.title, series.work): series.span("rate").median
        for one in results.alone
        for series in one.series
        if series.connections == MANY
    }
    (ours,) = (one.title for one in results.alone if one.name == OURS)
    titles = {one.title for one in results.alone}
    found = list(quoted(page))
    assert found
    for title, work, ratio in found:
        (peer,) = (known for known in titles if known.startswith(title.partition(" from")[0]))
        assert rates[ours, work] / rates[peer, work] == pytest.approx(ratio, rel=0.03)
