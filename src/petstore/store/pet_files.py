"""Pets in files: the rows of CSV and JSON Lines, in and out."""

import csv
import io
import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO, Literal, NamedTuple, Protocol, TypeAlias

import msgspec
from msgspec.structs import fields

from petstore.databases.contract import Reader
from petstore.domain.decoding import decode_json, expectation, field_types, number_or_text
from petstore.domain.pets import NewPet, Pet, PetFilter
from petstore.errors import InvalidBody
from petstore.store.pets import list_pets

FileFormat: TypeAlias = Literal["csv", "jsonl"]
Delimiter: TypeAlias = Literal[",", ";"]
"""What divides the cells of CSV; spreadsheets of many countries take only semicolons."""

COLUMNS = Pet.__struct_fields__
_REQUIRED = [field.name for field in fields(NewPet) if field.required]

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


_SHOWN = 200
_SKIPPED_AT_ONCE = 65_536


class RowLimits(NamedTuple):
    """How many characters and cells a row of CSV may have."""

    characters: int
    cells: int


MAX_ROW = RowLimits(131_072, sys.maxsize)
"""As for one field in ``csv``: a quote that never ends must not take in the rest of the file."""


class Output(Protocol):
    """A text file to write to."""

    def write(self, text: str, /) -> object:
        """Write ``text``."""
        ...


class FileRow(NamedTuple):
    """A row of a file: its first line, its text, and its pet or the reason that it has none."""

    line: int
    text: str
    pet: NewPet | None
    reason: str = ""


class Part(NamedTuple):
    """The pets of an export: at most ``limit`` of those ``wanted``, with ids above ``after``."""

    wanted: PetFilter = PetFilter()
    after: int | None = None
    limit: int = sys.maxsize


_EVERYTHING = Part()


async def export_pets(
    store: Reader,
    file: Output,
    file_format: FileFormat,
    on_progress: Callable[[int], None],
    *,
    part: Part = _EVERYTHING,
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
    from petstore.store.time_slices import TimeSlices  # here, so that `petstore --help` is instant

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


def read_rows(file: BinaryIO, file_format: FileFormat) -> Iterator[FileRow]:
    """Yield the rows of a file. Blank lines are skipped.

    Raises:
        InvalidBody: the first line of CSV is not the names of its columns.
    """
    return filter(None, read_csv(file)) if file_format == "csv" else _read_json_lines(file)


def read_csv(
    file: BinaryIO, delimiter: Delimiter = ",", limits: RowLimits = MAX_ROW
) -> Iterator[FileRow | None]:
    """Yield the rows of a CSV file, and ``None`` for each blank line.

    Raises:
        InvalidBody: the first line is not the names of its columns.
    """
    lines = _Lines(file, limits.characters)
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    header = _read_header(reader)
    usual = min(len(header), limits.cells)
    while True:
        lines.start_record()
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield FileRow(lines.first, lines.text, None, f"expected CSV ({error})")
            continue
        if len(cells) > usual and (reason := _excess(header, cells, limits.cells)):
            yield FileRow(lines.first, lines.text, None, reason)
        elif cells:
            yield csv_row(lines.first, lines.text, dict(zip(header, cells, strict=False)))
        else:
            yield None


def read_columns(
    file: BinaryIO, delimiter: Delimiter = ",", limits: RowLimits = MAX_ROW
) -> list[str]:
    """Return the names of the columns of a CSV file.

    Raises:
        InvalidBody: the first line is not the names of its columns.
    """
    lines = _Lines(file, limits.characters)
    return _read_header(csv.reader(lines, delimiter=delimiter, strict=True))


def cells_of(text: str, delimiter: Delimiter = ",") -> list[str]:
    """Return the cells of the text of one row of CSV; if it is not CSV, all of it as one cell."""
    try:
        file = io.StringIO(text, newline="\n")
        return next(csv.reader(file, delimiter=delimiter, strict=True))
    except csv.Error:
        return [text]


def _excess(header: list[str], cells: list[str], max_cells: int) -> str:
    """Return why there are too many cells, nothing if the surplus ones are empty."""
    if len(cells) > max_cells:
        return f"expected at most {max_cells:,} fields, got {len(cells):,}"
    return f"expected {len(header)} fields, got {len(cells)}" if any(cells[len(header) :]) else ""


def _read_header(rows: Iterator[list[str]]) -> list[str]:
    try:
        header = next(rows, [])
    except csv.Error:
        header = []
    found = ", ".join(header)[:200]
    if "categoryId" not in header:
        header = ["categoryId" if column == "category" else column for column in header]
    if not set(_REQUIRED) <= set(header):
        msg = (
            "line 1: expected the names of the columns, separated by commas,"
            f" {' and '.join(_REQUIRED)} among them; got {found!r}"
        )
        raise InvalidBody(msg)
    if any(header.count(column) > 1 for column in COLUMNS):
        msg = f"line 1: expected each column once; got {found!r}"
        raise InvalidBody(msg)
    return header


class _Lines(Iterator[str]):
    """The lines of a CSV file. It remembers the lines of the present record.

    A row of more than ``max_characters`` is not CSV. If one line is so long, only its beginning is
    read into memory.
    """

    def __init__(self, file: BinaryIO, max_characters: int) -> None:
        self._readline = file.readline
        self._max = max_characters
        self._max_bytes = 4 * max_characters  # of UTF-8
        self._count = 0
        self.start_record()

    def start_record(self) -> None:
        self.first = self._count + 1
        self._lines: list[str] = []
        self._length = 0

    @property
    def text(self) -> str:
        return "".join(self._lines)

    def __next__(self) -> str:
        line = self._readline(self._max_bytes)
        if not line:
            raise StopIteration
        self._count += 1
        encoding = "utf-8-sig" if self._count == 1 else "utf-8"
        # Bytes that are not UTF-8 become surrogates, and their row is refused.
        text = line.decode(encoding, "surrogateescape")
        self._length += len(text)
        if self._length > self._max:
            if len(text) > self._max:
                self._skip_rest(line)
                text = f"{text[:_SHOWN]}…\n"
            self._lines.append(text)
            msg = f"row larger than {self._max} characters"
            raise csv.Error(msg)
        self._lines.append(text)
        return text

    def _skip_rest(self, line: bytes) -> None:
        while line and not line.endswith(b"\n"):
            line = self._readline(_SKIPPED_AT_ONCE)


def csv_row(line: int, text: str, cells: dict[str, str]) -> FileRow:
    """Return the row of a CSV file with a ``text``; ``cells`` are by the names of the columns."""
    kinds = field_types(NewPet)
    values = {
        name: number_or_text(cell, kinds[name])
        for name, cell in cells.items()
        if name in kinds and (cell != "" or name in _REQUIRED)
    }
    try:
        text.encode()
        return FileRow(line, text, msgspec.convert(values, NewPet))
    except UnicodeEncodeError:
        return FileRow(line, text, None, "expected UTF-8")
    except msgspec.ValidationError as error:
        return FileRow(line, text, None, expectation(NewPet, error))


def _read_json_lines(file: BinaryIO) -> Iterator[FileRow]:
    for number, raw in enumerate(file, 1):
        if not raw.strip():
            continue
        text = raw.decode("utf-8", "surrogateescape")
        try:
            yield FileRow(number, text, decode_json(raw.strip(), NewPet))
        except InvalidBody as error:
            yield FileRow(number, text, None, error.message.replace("the body", "the line", 1))


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
