"""The rows of a file, from its content alone; ``reading.py`` runs this module as a process."""

import csv
import io
import os
import re
import resource
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from itertools import islice
from typing import Any, BinaryIO

from msgspec.json import encode
from msgspec.structs import replace
from python_calamine import CalamineError, CalamineWorkbook, PasswordError, SheetVisibleEnum

from petstore.errors import InvalidBody
from petstore.imports.reading import MAX_FILE, MAX_ROWS, ROWS_AT_ONCE, Row, TableHead

MAX_COLUMNS = 256
MAX_ROW_TEXT = 65_536
"""Characters of a row."""
# Characters of all rows: a workbook can repeat a text without storing it again.
_MAX_TEXT = MAX_FILE

_MEMORY, _SECONDS = 200 * 2**20, 5
_EMPTY = "The file is empty. Choose one with a row for each pet."
_SAVE_AS = "save it as an Excel workbook (.xlsx) or as “CSV UTF-8”, and choose that file."
_OPEN_AND_SAVE = f"Open it in the program that made it, {_SAVE_AS}"
_UNKNOWN = f"This file cannot be read, or it is damaged. {_OPEN_AND_SAVE}"
_NO_TABLES = (b"%PDF", b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"{\\rtf")
_WORKBOOKS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
_HTML = re.compile(r"<(!doctype|\?xml|html|head|meta|body|table|style)\b", re.IGNORECASE)
_JSON = re.compile(r"\[\s*[\[{]|\{\s*\"")
_UTF8_LETTER = re.compile(
    rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}"
)
_LETTER = rb"[A-Za-z\x8a\x8c\x8e\x9a\x9c\x9e\x9f\xc0-\xff]"
# What no text in Windows-1252 has: bytes that stand for nothing, four special letters in a row (as
# in Cyrillic or Chinese), signs within a word (as in Polish), and capitals after small letters (as
# from old Macintoshes).
_NOT_WINDOWS_1252 = re.compile(
    rb"[\x81\x83\x8d\x8f\x90\x9d]|[\xa1-\xff]{4}"
    rb"|[a-z][\x8a\x8c\x8e\x9f]|[A-Z][\x8a\x8c\x8e\x9f][a-z]|"
    + _LETTER
    + rb"[\x80\x82\x84-\x89\x8b\x95\x98\x9b\xa1-\xa8\xab\xac\xaf\xb1-\xb3\xb5\xb6\xb8\xb9\xbb-\xbf]"
    + _LETTER
)
_SEPARATORS = ",;\t|"
_SAMPLE = 65_536
_SEPARATOR_LINE = re.compile('"?sep=([,;\t|])"?\n', re.IGNORECASE)
_LOST = "\N{REPLACEMENT CHARACTER}"
_WHOLE_BELOW = 10**15


def open_table(content: bytes) -> tuple[TableHead, Iterator[Row]]:
    """Raise ``InvalidBody`` for what is no table, as reading its rows may, too."""
    if content.startswith(_NO_TABLES):
        msg = "This is a document or a picture. Choose an Excel workbook or a CSV file."
        raise InvalidBody(msg)
    is_workbook = content.startswith(_WORKBOOKS)
    head, rows = _open_workbook(content) if is_workbook else _open_text(*_decoded(content))
    return head, _bounded(rows)


def _open_text(text: str, encoding: str) -> tuple[TableHead, Iterator[Row]]:
    text = io.StringIO(text, newline=None).getvalue()  # line ends of any kind become \n
    start = text[:_SAMPLE].lstrip()
    if _HTML.match(start):
        msg = f"This is a web page, whatever its name. Open it in Excel or LibreOffice, {_SAVE_AS}"
        raise InvalidBody(msg)
    if _JSON.match(start):
        raise InvalidBody(f"This is data for programs (JSON), not a table. {_OPEN_AND_SAVE}")
    named = _SEPARATOR_LINE.match(text)
    separator = named[1] if named else _likely_separator(text)
    return TableHead(encoding), _csv_rows(text, separator, named.end() if named else 0)


def _decoded(content: bytes) -> tuple[str, str]:
    utf16 = _utf16_codec(content)
    if utf16 is None and b"\0" in content:
        raise InvalidBody(_UNKNOWN)
    try:
        return content.decode(utf16 or "utf-8-sig"), "UTF-16" if utf16 else "UTF-8"
    except UnicodeDecodeError:
        if utf16:
            raise InvalidBody(_UNKNOWN) from None
    text = content.decode("utf-8-sig", "replace")
    if _LOST * 2 not in text and text.count(_LOST) <= len(_UTF8_LETTER.findall(content)):
        return text, "UTF-8"  # with some letters that are not: rows that need them are refused
    if foreign := _NOT_WINDOWS_1252.search(content):
        before = content[: foreign.start()]
        raise InvalidBody(
            f"Some letters in line {1 + max(before.count(10), before.count(13))} cannot be read"
            f" for sure: the file is not in a usual encoding. {_OPEN_AND_SAVE}"
        )
    return content.decode("cp1252"), "Windows-1252"


def _utf16_codec(content: bytes) -> str | None:
    """Return the codec of UTF-16. Without a mark, nearly all zeros are at even or at odd places."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    few, many = sorted((content[place::2].count(0), place) for place in (0, 1))
    if many[0] < len(content) / 20 or few[0] > many[0] / 20:
        return None
    return "utf-16-le" if many[1] else "utf-16-be"


def _likely_separator(text: str) -> str:
    """Return what divides the most rows at the start into equally many cells."""
    lines = text[:_SAMPLE].split("\n")[:50]

    def likelihood(separator: str) -> tuple[int, int]:
        rows = csv.reader(lines, delimiter=separator, skipinitialspace=True)
        widths = Counter(len(row) for row in rows if len(row) > 1)
        [(width, count)] = widths.most_common(1) or [(1, 0)]
        return count, width

    return max(_SEPARATORS, key=likelihood)


def _csv_rows(text: str, separator: str, start: int) -> Iterator[Row]:
    lines = io.StringIO(text, newline="\n")
    lines.seek(start)
    rows = csv.reader(lines, delimiter=separator, skipinitialspace=True, strict=True)
    first, before = (2 if start else 1), 0
    while True:
        try:
            for cells in rows:
                if any(cells):
                    yield Row(before + first, cells)
                before = rows.line_num
        except csv.Error as error:
            line, before = before + first, before + 1
            # The quote has taken in other rows, or it is in the last row and has no end.
            if rows.line_num > before or "expected after" not in str(error):
                raise InvalidBody(
                    f'Line {line} has a cell that does not end: close the quotation mark (") there,'
                    " or delete it, and choose the file again."
                ) from None
            yield Row(line, [], 'A quotation mark (") stands where no cell begins or ends.')
        else:
            return


def _open_workbook(content: bytes) -> tuple[TableHead, Iterator[Row]]:
    try:
        workbook = CalamineWorkbook.from_filelike(io.BytesIO(content))
        names = [
            sheet.name
            for sheet in workbook.sheets_metadata
            if sheet.visible == SheetVisibleEnum.Visible
        ]
        sheets = [workbook.get_sheet_by_name(name) for name in names]
    except (CalamineError, OSError) as error:
        if isinstance(error, PasswordError) or _ENCRYPTED in content:
            msg = "The workbook is protected with a password. Save a copy without one."
            raise InvalidBody(msg) from None
        raise InvalidBody(_UNKNOWN) from None
    filled = [(sheet, sheet.start) for sheet in sheets if sheet.start]
    if not filled:
        raise InvalidBody(_EMPTY)
    (first, (top, _)), *others = filled
    note = (
        f"Only the sheet “{first.name}” is read. To import one of the others, move it to the front:"
        f" {', '.join(f'“{sheet.name}”' for sheet, _ in others)}."
    )
    kind = "OpenDocument" if b"opendocument.spreadsheet" in content[:200] else "Excel"
    cells = enumerate(first.iter_rows(), top + 1)
    rows = (Row(line, [*map(_cell_text, row)]) for line, row in cells)
    return TableHead(kind, notes=[note] if others else []), rows


def _cell_text(value: Any) -> str:
    if isinstance(value, float) and value.is_integer() and abs(value) < _WHOLE_BELOW:
        return str(int(value))
    if isinstance(value, datetime):
        return value.isoformat(" ").removesuffix(" 00:00:00")
    return value.isoformat() if isinstance(value, date) else str(value)


def _bounded(rows: Iterator[Row]) -> Iterator[Row]:
    """Yield the rows that are not blank, their cells without the spaces around them."""
    count = size = 0
    for row in rows:
        cells = [cell.strip().replace("\0", _LOST) for cell in row.cells]
        if not (any(cells) or row.problem):
            continue
        while len(cells) > MAX_COLUMNS and not cells[-1]:
            cells.pop()
        length = sum(map(len, cells))
        count, size = count + 1, size + length
        msg = ""
        if len(cells) > MAX_COLUMNS:
            msg = (
                f"Line {row.line} has {len(cells):,} cells; at most {MAX_COLUMNS} are read. Delete"
                " the columns that you do not need."
            )
        elif count > MAX_ROWS or size > _MAX_TEXT:
            msg = f"The file has more than {MAX_ROWS:,} rows, or too much text. Divide it."
        if msg:
            raise InvalidBody(msg)
        if length > MAX_ROW_TEXT:
            problem = f"The row has more than {MAX_ROW_TEXT:,} characters."
            yield Row(row.line, [cell[:100] for cell in cells], problem)
        else:
            yield replace(row, cells=cells)
    if not count:
        raise InvalidBody(_EMPTY)


def write_rows(content: bytes, batches: BinaryIO) -> TableHead:
    """Write the rows of a file as JSON, a batch a line, and return what the file is."""
    last_from = filled_before = count = 0
    try:
        head, rows = open_table(content)
        while batch := [*islice(rows, ROWS_AT_ONCE)]:
            for row in batch:
                filled = sum(map(bool, row.cells))
                if filled >= filled_before:
                    last_from = row.line
                filled_before = filled
            count += len(batch)
            batches.write(encode(batch) + b"\n")
    except InvalidBody as error:
        return TableHead(problem=error.message)
    return replace(head, last_from=last_from, rows=count)


def main(arguments: Sequence[str]) -> None:
    """Read a file from standard input, and write its rows into an open one, by its descriptor."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.nice(10)
    try:
        with os.fdopen(int(arguments[0]), "wb") as batches:
            head = write_rows(sys.stdin.buffer.read(), batches)
    except OSError:
        sys.exit(os.EX_IOERR)
    sys.stdout.buffer.write(encode(head))


if __name__ == "__main__":
    main(sys.argv[1:])
