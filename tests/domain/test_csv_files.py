"""CSV as it is written; what spreadsheets see is in tests/pets/test_spreadsheet_safety.py."""

import io

import pytest

from petstore.domain.csv_files import cells_writer, csv_writer


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
