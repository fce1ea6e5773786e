"""CSV as it is written, and as spreadsheets see it, whatever separator they expect."""

import csv
import io
import re
from collections.abc import Iterator
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from petstore.domain.csv_files import Delimiter, cells_writer, csv_writer
from support.exploration import explored

FORMULA = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]")
BREAKS = "\v\f\x1c\x1d\x1e\x85\u2028\u2029"
TEXTS = st.text('=+-@\uff1d,;\t\r\n" a\xa0' + BREAKS, max_size=8)


def written(cells: list[str], delimiter: Delimiter) -> str:
    file = io.StringIO(newline="")
    cells_writer(file, spreadsheet_safe=True, delimiter=delimiter)(cells)
    return file.getvalue()


def seen(text: str) -> Iterator[str]:
    """Yield the cells that spreadsheets see, of which each expects other separators."""
    for lines, separator, is_trimmed in product(
        (re.split("\r\n|\r|\n", text), text.splitlines()), ",;\t", (False, True)
    ):
        for row in csv.reader(lines, delimiter=separator, skipinitialspace=is_trimmed):
            yield from row


@pytest.mark.parametrize("delimiter", [",", ";"])
@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("=1+1", "'=1+1"),
        ("a;=cmd|' /C calc'!A0", "a;'=cmd|' /C calc'!A0"),
        ("a,=1", "a,'=1"),
        ("a\t@SUM(1)", "a\t'@SUM(1)"),
        ('a;"=1"', 'a;\'"=1"'),
        ("a\n+1", "a\n'+1"),
        ("a,\uff0d1", "a,'\uff0d1"),
        ("\t\t=1", "'\t\t'=1"),
        ("  =1", "'  =1"),
        ("a;  =1", "a;'  =1"),
        ('a, "=1', "a,' \"=1"),
        *((f"a{character}=1", f"a{character}'=1") for character in BREAKS),
        ("a; b\n\nc, d-e = f", "a; b\n\nc, d-e = f"),
    ],
)
def test_a_formula_after_a_separator_is_safe(name: str, safe: str, delimiter: Delimiter) -> None:
    row = next(
        csv.reader(io.StringIO(written(["1", name], delimiter), newline=""), delimiter=delimiter)
    )
    assert row == ["1", safe]


@explored(100)
@given(st.lists(TEXTS, min_size=1, max_size=3), st.sampled_from(",;"))
def test_no_exported_cell_is_read_as_a_formula(cells: list[str], delimiter: Delimiter) -> None:
    text = written(["7", *cells], delimiter)
    assert not [cell for cell in seen(text) if FORMULA.match(cell)], text


@pytest.mark.parametrize(
    ("cells", "is_safe", "line"),
    [
        ([7, "a", ""], True, "7,a,\n"),
        (["x", "ax=1", 7], True, "x,ax=1,7\n"),
        ([7, "=1", "a"], True, "7,'=1,a\n"),
        ([7, "=1", "a"], False, "7,=1,a\n"),
        ([7, "a\rb", "=1"], False, '"7","a\rb","=1"\n'),
    ],
)
def test_a_formula_is_escaped_if_that_is_wanted_and_a_lone_return_is_quoted(
    cells: list[object],
    is_safe: bool,  # noqa: FBT001 - a parameter of the table
    line: str,
) -> None:
    file = io.StringIO(newline="")
    cells_writer(file, spreadsheet_safe=is_safe)(cells)
    assert file.getvalue() == line


def test_a_row_has_its_cells_below_the_header_and_nothing_for_what_it_lacks() -> None:
    file = io.StringIO(newline="")
    csv_writer(file, ["id", "name"], spreadsheet_safe=True)({"id": 1, "other": 2})
    assert file.getvalue() == "id,name\n1,\n"
