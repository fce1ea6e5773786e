"""Files of pets, read: each row of CSV or JSON Lines with its line, and its pet or what is wrong.

Every import reads its file here, whether it comes from the command line or from the console.
"""

import csv
import io
import sys
from collections.abc import Iterator, Sequence
from hashlib import file_digest
from typing import BinaryIO, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec.structs import fields

from petstore.domain.decoding import decode_json, expectation, field_types, number_or_text
from petstore.errors import InvalidBody
from petstore.pets.model import NewPet, Pet

FileFormat: TypeAlias = Literal["csv", "jsonl"]
Delimiter: TypeAlias = Literal[",", ";"]
"""What divides the cells of CSV; spreadsheets of many countries take only semicolons."""

COLUMNS = Pet.__struct_encode_fields__
NOT_UTF8 = "expected UTF-8"
_REQUIRED = [field.encode_name for field in fields(NewPet) if field.required]

_SHOWN = 200
_SKIPPED_AT_ONCE = 65_536


class FileLimits(NamedTuple):
    """How many lines a file may have, and how many characters and cells a row of CSV."""

    lines: int
    characters: int
    cells: int


# As for one field in ``csv``: a quote that never ends must not take in the rest of the file.
_LIMITS = FileLimits(sys.maxsize, 131_072, sys.maxsize)


class FileRow(NamedTuple):
    """A row of a file: its first line, its text, and its pet or the reason that it has none."""

    line: int
    text: str
    pet: NewPet | None
    reason: str = ""

    def refused(self, reason: str) -> "FileRow":
        """Return this row without its pet."""
        return self._replace(pet=None, reason=reason)


class ImportFile(NamedTuple):
    """A file of pets that was opened. Its ``digest`` identifies it, whatever its name.

    ``rows`` can be read once; blank lines are ``None``. CSV has ``columns``, and ``header`` is the
    text that names them.
    """

    content: BinaryIO
    digest: bytes
    rows: Iterator[FileRow | None]
    header: str = ""
    columns: Sequence[str] = ()
    delimiter: Delimiter = ","


def open_import_file(
    content: BinaryIO, file_format: FileFormat = "csv", limits: FileLimits = _LIMITS
) -> ImportFile:
    """Open a file of pets. It blocks, as long as it takes to read all of it for its digest.

    Raises:
        InvalidBody: it is CSV, and empty, or its first line is not the names of its columns. The
            rows raise it if there are too many lines.
        OSError: it cannot be read.
    """
    content.seek(0)
    digest = file_digest(content, "sha256").digest()  # type: ignore[arg-type] # as every file has
    content.seek(0)
    if file_format == "jsonl":
        return ImportFile(content, digest, _read_json_lines(content))
    start = content.read(limits.characters)
    if not start.strip():
        msg = "expected a CSV file; this one is empty"
        raise InvalidBody(msg)
    first_line = start.partition(b"\n")[0]
    delimiter: Delimiter = ";" if b";" in first_line and b"," not in first_line else ","
    content.seek(0)
    lines = _Lines(content, limits)
    cells = csv.reader(lines, delimiter=delimiter, strict=True)
    columns, header = _read_header(cells, limits.cells), lines.text
    rows = _read_csv(lines, cells, columns, limits.cells)
    return ImportFile(content, digest, rows, header, columns, delimiter)


def cells_of(text: str, delimiter: Delimiter) -> list[str]:
    """Return the cells of the text of one row of CSV; if it is not CSV, all of it as one cell."""
    try:
        file = io.StringIO(text, newline="\n")
        return next(csv.reader(file, delimiter=delimiter, strict=True))
    except csv.Error:
        return [text]


def csv_row(line: int, text: str, cells: dict[str, str]) -> FileRow:
    """Return the row of a CSV file with a ``text``; ``cells`` are by the names of the columns."""
    kinds = field_types(NewPet)
    values = {
        name: number_or_text(cell, kinds[name])
        for name, cell in cells.items()
        if name in kinds and (cell != "" or name in _REQUIRED)
    }
    try:
        return FileRow(line, text, msgspec.convert(values, NewPet))
    except msgspec.ValidationError as error:
        return FileRow(line, text, None, expectation(NewPet, error))


def is_utf8(text: str) -> bool:
    """Return whether a text of a file was UTF-8: other bytes are surrogates in it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _read_header(rows: Iterator[list[str]], max_cells: int) -> list[str]:
    try:
        header = next(rows, [])
    except csv.Error:
        header = []
    found = ", ".join(header)[:200]
    if "categoryId" not in header:
        header = ["categoryId" if column == "category" else column for column in header]
    if "\0" in found:  # workbooks, archives, pictures and UTF-16 have some early
        msg = "expected a CSV file in UTF-8, which is text; save the spreadsheet as “CSV UTF-8”"
    elif not set(_REQUIRED) <= set(header):
        msg = (
            "line 1: expected the names of the columns, separated by commas or semicolons,"
            f" {' and '.join(_REQUIRED)} among them; got {found!r}"
        )
    elif any(header.count(column) > 1 for column in COLUMNS):
        msg = f"line 1: expected each column once; got {found!r}"
    elif len(header) > max_cells:
        msg = f"line 1: expected at most {max_cells} columns, got {len(header):,}"
    else:
        return header
    raise InvalidBody(msg)


def _read_csv(
    lines: "_Lines", rows: Iterator[list[str]], header: list[str], max_cells: int
) -> Iterator[FileRow | None]:
    usual = min(len(header), max_cells)
    while True:
        lines.start_record()
        try:
            cells = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            reason = f"expected CSV ({error})"
        else:
            reason = _excess(header, cells, max_cells) if len(cells) > usual else ""
            if not (cells or reason):
                yield None
                continue
        text = lines.text
        if not (text.isascii() or is_utf8(text)):
            reason = NOT_UTF8
        if reason:
            yield FileRow(lines.first, text, None, reason)
        else:
            yield csv_row(lines.first, text, dict(zip(header, cells, strict=False)))


def _excess(header: list[str], cells: list[str], max_cells: int) -> str:
    """Return why there are too many cells, nothing if the surplus ones are empty."""
    if len(cells) > max_cells:
        return f"expected at most {max_cells:,} fields, got {len(cells):,}"
    return f"expected {len(header)} fields, got {len(cells)}" if any(cells[len(header) :]) else ""


class _Lines(Iterator[str]):
    """The lines of a CSV file. It remembers the lines of the present record.

    A row of more than ``limits.characters`` is not CSV. If one line is so long, only its beginning
    is read into memory.
    """

    def __init__(self, content: BinaryIO, limits: FileLimits) -> None:
        self._readline = content.readline
        self._max_lines, self._max, _ = limits
        self._max_bytes = 4 * self._max  # of UTF-8
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
        if self._count > self._max_lines:
            msg = f"expected at most {self._max_lines:,} lines; remove the blank ones"
            raise InvalidBody(msg)
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


def _read_json_lines(content: BinaryIO) -> Iterator[FileRow | None]:
    for number, raw in enumerate(content, 1):
        if not raw.strip():
            yield None
            continue
        text = raw.decode("utf-8", "surrogateescape")
        try:
            yield FileRow(number, text, decode_json(raw.strip(), NewPet))
        except InvalidBody as error:
            yield FileRow(number, text, None, error.message.replace("the body", "the line", 1))
