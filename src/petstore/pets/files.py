"""Files of pets, read: each row of CSV or JSON Lines with its line, and its pet or what is wrong.

Every import reads its file here, whether it comes from the command line or from the console.
"""

import codecs
import csv
import io
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from hashlib import file_digest
from typing import Any, BinaryIO, Literal, NamedTuple, TypeAlias, cast, get_args

from msgspec.inspect import StrType

from petstore.domain.csv_files import Delimiter
from petstore.domain.decoding import (
    convert,
    decode_json,
    field_types,
    integer_in,
    number_or_text,
)
from petstore.domain.names import name_key
from petstore.errors import InvalidBody
from petstore.pets.columns import FIELDS, OPTIONAL, Columns, match_columns
from petstore.pets.model import NewPet, Pet

FileFormat: TypeAlias = Literal["csv", "jsonl"]

COLUMNS = Pet.__struct_encode_fields__
NOT_UTF8 = "expected UTF-8"
_REQUIRED = [field for field in FIELDS if field not in OPTIONAL]

_SHOWN = 200
# Unknown names of a batch, and the names of categories: to compare all of them may take minutes.
_COMPARED, _COMPARED_WITH = 20, 1000
_AT_ONCE = 65_536
# Spreadsheets write and read it as the first line.
_SEPARATOR = re.compile('"?sep=([,;\t])"?\r?\n', re.IGNORECASE)
_OF_CATEGORY = "categoryId: "


class FileLimits(NamedTuple):
    """How many lines a file may have, and how many characters and cells a row of CSV."""

    lines: int
    characters: int
    cells: int


# As for one field in ``csv``: a quote that never ends must not take in the rest of the file.
_LIMITS = FileLimits(sys.maxsize, 131_072, sys.maxsize)


class FileRow(NamedTuple):
    """A row of a file: its first line, its text, and its pet or the reason that it has none.

    The ``reason`` has all that is wrong, each behind the name of its field.
    """

    line: int
    text: str
    pet: NewPet | None
    reason: str = ""

    def refused(self, reason: str) -> "FileRow":
        """Return this row without its pet."""
        return self._replace(pet=None, reason=reason)


class CsvLayout(NamedTuple):
    """How the rows of a CSV file are read: its columns, and what divides the cells."""

    columns: Columns = Columns((), ())
    delimiter: Delimiter = ","

    def read(self, row: FileRow) -> FileRow:
        """Return a row as it is with this layout; what is no row of CSV stays refused."""
        # A reason begins with the name of a field, or the row could not be read.
        is_row = not row.reason.startswith("expected ")
        return _csv_row(row.line, row.text, self.cells(row)) if is_row else row

    def category_of(self, row: FileRow) -> str:
        """Return the text of the category of a row."""
        return self.cells(row).get("categoryId", "").strip()

    def with_category(self, row: FileRow, category_id: int) -> FileRow:
        """Return a row with another category than its own text says."""
        return _csv_row(row.line, row.text, self.cells(row) | {"categoryId": str(category_id)})

    def category_names(self, rows: list[FileRow]) -> dict[int, str]:
        """Return the categories that are names, by the places of their rows."""
        names = {
            place: self.category_of(row)
            for place, row in enumerate(rows)
            if _OF_CATEGORY in row.reason
        }
        return {place: name for place, name in names.items() if name and integer_in(name) is None}

    def name_categories(
        self,
        rows: list[FileRow],
        names: Mapping[int, str],
        ids: Mapping[str, int],
        known: Sequence[str] = (),
    ) -> None:
        """Give rows whose categories are names the ``ids`` of these, and refuse the others.

        The reasons have those of the ``known`` names that may be meant.
        """
        unknown = [name for name in dict.fromkeys(names.values()) if name not in ids]
        meant = _meant(unknown[:_COMPARED], known[:_COMPARED_WITH])
        for place, name in names.items():
            row = rows[place]
            rows[place] = (
                self.with_category(row, ids[name])
                if name in ids
                else self.of_no_category(row, _reason(name, meant.get(name, ())))
            )

    def category_number(self, row: FileRow) -> int | None:
        """Return the category of a row that is a number, also if something else is refused."""
        if row.pet is not None:
            return row.pet.category_id
        is_other = not row.reason.startswith("expected ") and _OF_CATEGORY not in row.reason
        return integer_in(self.category_of(row)) if is_other else None

    def of_no_category(self, row: FileRow, reason: str) -> FileRow:
        """Return a row refused for its category, and for what else is wrong with it."""
        others = self.with_category(row, 1).reason
        return row.refused(f"{reason}; {others}" if others else reason)

    def cells(self, row: FileRow) -> dict[str, str]:
        """Return the cells of a row, by the fields that they are."""
        cells = cells_of(row.text, self.delimiter)
        return dict(zip(self.columns.fields, cells, strict=False))


def _meant(unknown: Sequence[str], known: Sequence[str]) -> dict[str, list[str]]:
    """Return up to three of the names that are ``known`` for each that is not."""
    keys = {name_key(name): name for name in known}
    return {
        name: [keys[key] for key in get_close_matches(name_key(name[:_SHOWN]), keys, cutoff=0.7)]
        for name in unknown
    }


def _reason(name: str, meant: Sequence[str]) -> str:
    reason = f"{_OF_CATEGORY}no category has the name {name[:_SHOWN]!r}"
    return f"{reason}; did you mean {' or '.join(map(repr, meant))}?" if meant else reason


class ImportFile(NamedTuple):
    """A file of pets that was opened. Its ``digest`` identifies it, whatever its name.

    ``rows`` can be read once; blank ones are ``None``. CSV has a ``layout``, and ``header`` is the
    text before the rows.
    """

    content: BinaryIO
    digest: bytes
    rows: Iterator[FileRow | None]
    header: str = ""
    layout: CsvLayout = CsvLayout()


def open_import_file(
    content: BinaryIO,
    file_format: FileFormat = "csv",
    limits: FileLimits = _LIMITS,
    chosen: Mapping[str, str] | None = None,
) -> ImportFile:
    """Open a file of pets. It blocks, as long as it takes to read all of it for its digest.

    ``chosen`` has the names of columns by the fields that somebody chose them for.

    Raises:
        InvalidBody: it is CSV, and empty, or its first row is not the names of columns. The
            rows raise it if there are too many lines.
        OSError: it cannot be read.
    """
    content.seek(0)
    digest = file_digest(content, "sha256").digest()  # type: ignore[arg-type] # as every file has
    if file_format == "jsonl":
        content.seek(0)
        return ImportFile(content, digest, _read_json_lines(content))
    start = _in_utf8(content).read(limits.characters).decode("utf-8-sig", "replace")
    if not start.strip():
        msg = "expected a CSV file; this one is empty"
        raise InvalidBody(msg)
    named = _SEPARATOR.match(start)
    delimiter = cast("Delimiter", named[1]) if named else _likely_delimiter(start)
    lines = _Lines(_in_utf8(content), limits)
    before = next(lines) if named else ""
    cells = csv.reader(lines, delimiter=delimiter, strict=True)
    columns = _read_header(lines, cells, limits.cells, chosen or {})
    header = before + lines.text
    rows = _read_csv(lines, cells, columns, limits.cells)
    return ImportFile(content, digest, rows, header, CsvLayout(columns, delimiter))


def cells_of(text: str, delimiter: Delimiter) -> list[str]:
    """Return the cells of the text of one row of CSV; if it is not CSV, all of it as one cell."""
    try:
        file = io.StringIO(text, newline="\n")
        return next(csv.reader(file, delimiter=delimiter, strict=True))
    except csv.Error:
        return [text]


def _csv_row(line: int, text: str, cells: dict[str, str]) -> FileRow:
    """Return the row of a CSV file with a ``text``; ``cells`` are by the names of the columns."""
    kinds = field_types(NewPet)
    texts = {
        # A text is as it is, or exports could not be imported unchanged.
        name: cell if isinstance(kinds[name], StrType) else cell.strip().lower()
        for name, cell in cells.items()
        if name in kinds
    }
    values = {
        name: number_or_text(text, kinds[name])
        for name, text in texts.items()
        if text != "" or name in _REQUIRED
    }
    try:
        return FileRow(line, text, convert(values, NewPet, InvalidBody))
    except InvalidBody as error:
        return FileRow(line, text, None, "; ".join([error.message, *error.others]))


def is_utf8(text: str) -> bool:
    """Return whether a text of a file was UTF-8: other bytes are surrogates in it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _in_utf8(content: BinaryIO) -> BinaryIO:
    """Return the content of a file from its beginning; spreadsheets write UTF-16 as well."""
    content.seek(0)
    is_utf16 = content.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    content.seek(0)
    return io.BufferedReader(_Utf16(content), _AT_ONCE) if is_utf16 else content


class _Utf16(io.RawIOBase):
    """The bytes of a text as UTF-8, which is in UTF-16."""

    def __init__(self, content: BinaryIO) -> None:
        self._content, self._left = content, b""
        self._decode = codecs.getincrementaldecoder("utf-16")("surrogatepass").decode

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        while not self._left and (read := self._content.read(_AT_ONCE)):
            self._left = self._decode(read).encode("utf-8", "surrogatepass")
        count = min(len(buffer), len(self._left))
        buffer[:count], self._left = self._left[:count], self._left[count:]
        return count


def _likely_delimiter(start: str) -> Delimiter:
    """Return what divides the names of the columns: they are known, or there are several."""

    def likelihood(delimiter: Delimiter) -> tuple[int, int]:
        names = cells_of(start.lstrip(), delimiter)
        return -len(match_columns(names).unsure), len(names)

    return max(get_args(Delimiter), key=likelihood)


def _read_header(
    lines: "_Lines", rows: Iterator[list[str]], max_cells: int, chosen: Mapping[str, str]
) -> Columns:
    try:
        header = next((row for row in _records(lines, rows) if any(map(str.strip, row))), [])
    except csv.Error:
        header = []
    header = [name.strip() for name in header]
    found, line = ", ".join(header)[:200], f"line {lines.first}"
    if "\0" in found:  # workbooks, archives and pictures have some early
        msg = "expected a CSV file in UTF-8, which is text; save the spreadsheet as “CSV UTF-8”"
    elif len(header) < len(_REQUIRED):
        msg = (
            f"{line}: expected the names of the columns, {' and '.join(_REQUIRED)} among them,"
            f" with commas, semicolons or tabs between them; got {found!r}"
        )
    elif len(header) > max_cells:
        msg = f"{line}: expected at most {max_cells} columns, got {len(header):,}"
    elif unknown := [name for name in chosen.values() if name not in header]:
        msg = f"{line}: expected a column {unknown[0]!r}; got {found!r}"
    else:
        return match_columns(header, {field: header.index(each) for field, each in chosen.items()})
    raise InvalidBody(msg)


def _records(lines: "_Lines", rows: Iterator[list[str]]) -> Iterator[list[str]]:
    """Yield the rows, and remember the lines of each alone."""
    lines.start_record()
    for row in rows:
        yield row
        lines.start_record()


def _read_csv(
    lines: "_Lines", rows: Iterator[list[str]], columns: Columns, max_cells: int
) -> Iterator[FileRow | None]:
    usual = min(len(columns.names), max_cells)
    while True:
        lines.start_record()
        try:
            cells = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            reason = f"expected CSV ({error})"
        else:
            reason = _excess(usual, cells, max_cells) if len(cells) > usual else ""
            if not (reason or any(map(str.strip, cells))):
                yield None
                continue
        text = lines.text
        if not (text.isascii() or is_utf8(text)):
            reason = NOT_UTF8
        if reason:
            yield FileRow(lines.first, text, None, reason)
        else:
            yield _csv_row(lines.first, text, dict(zip(columns.fields, cells, strict=False)))


def _excess(usual: int, cells: list[str], max_cells: int) -> str:
    """Return why there are too many cells, nothing if the surplus ones are empty."""
    if len(cells) > max_cells:
        return f"expected at most {max_cells:,} cells, got {len(cells):,}"
    is_more = any(map(str.strip, cells[usual:]))
    return f"expected {usual} cells, one for each column; got {len(cells)}" if is_more else ""


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
            line = self._readline(_AT_ONCE)


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
