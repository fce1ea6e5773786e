"""CSV as it is written, and as spreadsheets see it, whatever separator they expect."""

import csv
import io
import re
from collections.abc import Iterator
from itertools import product
from typing import Any

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


def test_what_is_special_is_escaped_and_a_lone_return_quoted_as_it_is_wanted() -> None:
    rows: list[dict[str, Any]] = [
        *({"id": 7, "name": "=1"}, {"id": "x=1", "more": 7}, {"id": "\ra", "name": "=1"})
    ]
    for is_safe, text in (
        (True, 'id,name\n7,\'=1\nx=1,\n"\'\ra","\'=1"\n7,a\n'),
        (False, 'id,name\n7,=1\nx=1,\n"\ra","=1"\n7,a\n'),
    ):
        file = io.StringIO(newline="")
        write = csv_writer(file, ["id", "name"], spreadsheet_safe=is_safe)
        for row in rows:
            write(row)
        cells_writer(file, spreadsheet_safe=is_safe)([7, "a"])
        assert file.getvalue() == text
