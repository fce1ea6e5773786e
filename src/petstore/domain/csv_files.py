"""CSV that no spreadsheet runs as formulas."""

import csv
import re
from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol, TypeAlias

Delimiter: TypeAlias = Literal[",", ";", "\t"]
"""What divides the cells of CSV; spreadsheets of many countries take only semicolons."""

# What spreadsheets take for a formula (https://owasp.org/www-community/attacks/CSV_Injection), at
# the beginning of a cell, perhaps in quotes or after spaces. The last four are =, +, - and @ in
# full width, which some take for the others. A spreadsheet that expects another separator than the
# file has sees a cell begin after each of these separators, tabs and line breaks.
_OPERATORS = r"=+\-@\uff1d\uff0b\uff0d\uff20"
_BREAKS = r"\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029"
# No cell begins within these, so that no text is searched twice.
_QUOTES_AND_SPACES = rf'(?:"|[^\S{_BREAKS}])*'
_FORMULA = re.compile(
    rf"^(?={_QUOTES_AND_SPACES}[{_OPERATORS}{_BREAKS}])"
    rf"|(?<=[,;{_BREAKS}])(?={_QUOTES_AND_SPACES}[{_OPERATORS}])"
)
# Most texts have none of these characters, which is seen sooner.
_is_special = re.compile(rf"[{_OPERATORS}{_BREAKS}]").search


class Output(Protocol):
    def write(self, text: str, /) -> object: ...


def csv_writer(
    file: Output, columns: Sequence[str], *, spreadsheet_safe: bool, delimiter: Delimiter = ","
) -> Callable[[dict[str, Any]], Any]:
    """``spreadsheet_safe`` puts ``'`` wherever any spreadsheet may see a formula begin."""
    write = cells_writer(file, spreadsheet_safe=spreadsheet_safe, delimiter=delimiter)
    write(columns)
    return lambda row: write([row.get(name, "") for name in columns])


def cells_writer(
    file: Output, *, spreadsheet_safe: bool, delimiter: Delimiter = ","
) -> Callable[[Sequence[Any]], None]:
    writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
    # Python writes a lone carriage return without quotes, and could not read it back.
    quoting = csv.writer(file, delimiter=delimiter, lineterminator="\n", quoting=csv.QUOTE_ALL)

    def write(values: Sequence[Any]) -> None:
        cells, chosen = values, writer
        special = {value for value in values if isinstance(value, str) and _is_special(value)}
        if special and spreadsheet_safe:
            cells = [_FORMULA.sub("'", each) if each in special else each for each in values]
        if any("\r" in value for value in special):
            chosen = quoting
        chosen.writerow(cells)

    return write
