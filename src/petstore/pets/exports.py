"""Pets into files: CSV and JSON Lines, and CSV that no spreadsheet runs as formulas."""

import csv
import json
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from petstore.databases.contract import Reader
from petstore.pets.files import COLUMNS, Delimiter, FileFormat
from petstore.pets.model import PetFilter
from petstore.pets.store import list_pets

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

_BATCH = 1000


class Output(Protocol):
    """A text file to write to."""

    def write(self, text: str, /) -> object:
        """Write ``text``."""
        ...


class ExportPart(NamedTuple):
    """The pets of an export: at most ``limit`` of those ``wanted``, with ids above ``after``."""

    wanted: PetFilter = PetFilter()
    after: int | None = None
    limit: int = sys.maxsize


_EVERYTHING = ExportPart()


async def export_pets(
    store: Reader,
    file: Output,
    file_format: FileFormat,
    on_progress: Callable[[int], None],
    *,
    part: ExportPart = _EVERYTHING,
    spreadsheet_safe: bool = False,
    delimiter: Delimiter = ",",
) -> int:
    """Write the pets of a part, or every one, to ``file``; return how many.

    Call back with the number so far, and let others have the event loop in between.

    With ``spreadsheet_safe``, CSV has ``'`` before formulas in names; see ``csv_writer``. An import
    takes it for a part of the name.

    Raises:
        OSError: the file cannot be written.
        Unavailable: the database is unreachable.
    """
    from petstore.time_slices import TimeSlices  # here, so that `petstore --help` is instant

    slices = TimeSlices()
    write = pet_writer(file, file_format, spreadsheet_safe=spreadsheet_safe, delimiter=delimiter)
    count, after = 0, part.after
    while True:
        page = await list_pets(store, part.wanted, after, min(_BATCH, part.limit - count))
        for pet in page.items:
            write(msgspec.to_builtins(pet))
            await slices.rest()
        count += len(page.items)
        on_progress(count)
        after = page.next_after
        if after is None or count == part.limit:
            return count


def pet_writer(
    file: Output, file_format: FileFormat, *, spreadsheet_safe: bool, delimiter: Delimiter = ","
) -> Callable[[dict[str, Any]], Any]:
    """Begin a file of pets, and return what writes a pet, given as its JSON."""
    if file_format == "csv":
        return csv_writer(file, COLUMNS, spreadsheet_safe=spreadsheet_safe, delimiter=delimiter)
    return lambda pet: file.write(json.dumps(pet, ensure_ascii=False) + "\n")


def csv_writer(
    file: Output,
    columns: Sequence[str],
    *,
    spreadsheet_safe: bool,
    delimiter: Delimiter = ",",
) -> Callable[[dict[str, Any]], Any]:
    """Write the header of ``columns``, and return what writes a row.

    With ``spreadsheet_safe`` there is ``'`` before what a spreadsheet would take for a formula,
    wherever in a text it sees a cell begin: the spreadsheet may expect another separator.
    """
    write = cells_writer(file, spreadsheet_safe=spreadsheet_safe, delimiter=delimiter)
    write(columns)
    return lambda row: write([row.get(name, "") for name in columns])


def cells_writer(
    file: Output, *, spreadsheet_safe: bool, delimiter: Delimiter = ","
) -> Callable[[Sequence[Any]], None]:
    """Return what writes the cells of a row of CSV; see ``csv_writer``."""
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
