"""The rows of a file, from its content alone: CSV in any usual encoding, and workbooks.

``reading.py`` runs this module as a process of its own, which limits its memory and time.
"""

import csv
import io
import json
import os
import re
import resource
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from typing import Any, NamedTuple

from python_calamine import CalamineError, CalamineWorkbook, PasswordError
from python_calamine import SheetTypeEnum as SheetType
from python_calamine import SheetVisibleEnum as Visibility

MAX_ROWS = 20_000
"""Rows of a file that are not blank."""

MAX_COLUMNS = 256
"""Cells of a row."""

MAX_ROW_TEXT = 65_536
"""Characters of a row."""

MAX_TEXT = 32 * 2**20
"""Characters of all rows: a workbook repeats a text without storing it twice."""

MEMORY = 200 * 2**20
"""Bytes that the process may use."""

SECONDS = 5
"""Seconds of a processor that the process may use."""

_SAVE_AS = "save it as an Excel workbook (.xlsx) or as “CSV UTF-8”, and choose that file"
_OPEN_AND_SAVE = f"Open it in the program that made it, {_SAVE_AS}."
_OTHER_FILES = {
    b"%PDF": "a PDF",
    b"\x89PNG": "a picture",
    b"\xff\xd8\xff": "a picture",
    b"GIF8": "a picture",
    b"{\\rtf": "a text document",
}
_WORKBOOKS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
_HTML = re.compile(r"<(!doctype|\?xml|html|head|meta|body|table|style)\b", re.IGNORECASE)
_JSON = re.compile(r"\[\s*[\[{]|\{\s*\"")
_UTF8_LETTER = re.compile(
    rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}"
)
# What no text in Windows-1252 has: four special letters in a row, as in Cyrillic or Chinese; signs
# within a word, as in Polish; and capitals after small letters, as on old Macintoshes.
_NOT_WINDOWS_1252 = re.compile(
    r"[¡-ÿ]{4}|ƒ"
    r"|[^\W\d_][‚„…†‡ˆ‰‹›•˜™€¡¢£¤¥¦§¨©«¬®¯±²³¶¸¹»¼½¾¿×÷][^\W\d_]"
    r"|[a-z][ŠŒŽŸ]|[A-Z][ŠŒŽŸ][a-z]"
)
_SEPARATORS = ",;\t|"
_SAMPLE = 65_536
_SEPARATOR_LINE = re.compile('"?sep=(.)"?\n', re.IGNORECASE)
_LONG = 10**15


class Unreadable(Exception):
    """A file cannot be read; the message tells a clerk why, and what to do."""


class Row(NamedTuple):
    """A row as ``petstore.imports.reading`` knows it."""

    line: int
    cells: list[str]
    problem: str = ""


class Source(NamedTuple):
    """What a file is, and its rows, which are read as they are asked for."""

    encoding: str
    separator: str
    notes: list[str]
    rows: Iterator[Row]


def open_source(content: bytes) -> Source:
    """Return what a file is, by its content.

    Raises:
        Unreadable: it is no table that can be read. The rows raise it as well.
    """
    if content.startswith(_WORKBOOKS):
        return _open_workbook(content)
    for start, kind in _OTHER_FILES.items():
        if content.startswith(start):
            msg = f"This is {kind}, not a table. Choose an Excel workbook or a CSV file."
            raise Unreadable(msg)
    text, encoding = _decoded(content)
    text = io.StringIO(text, newline=None).getvalue()  # line ends of any kind become \n
    start = text[:_SAMPLE].lstrip()
    if not start.strip(f"{_SEPARATORS} \n"):
        msg = "The file is empty. Choose one that has a row for each pet."
        raise Unreadable(msg)
    if _HTML.match(start):
        msg = "This is a web page, even if its name ends in .xls. Open it in Excel or LibreOffice, "
        raise Unreadable(msg + f"{_SAVE_AS}.")
    if _JSON.match(start):
        msg = f"This is data for programs (JSON), not a table. {_OPEN_AND_SAVE}"
        raise Unreadable(msg)
    named = _SEPARATOR_LINE.match(text)
    separator = named[1] if named else _likely_separator(text)
    if separator not in _SEPARATORS[:-1]:
        msg = (
            f"The columns of this file are divided by “{separator}”. Open it in a spreadsheet"
            f" with “{separator}” as the separator, {_SAVE_AS}."
        )
        raise Unreadable(msg)
    rows = _csv_rows(text, separator, 2 if named else 1)
    return Source(encoding, separator, [], _bounded(rows))


def _decoded(content: bytes) -> tuple[str, str]:
    """Return the text of a file, and the name of its encoding."""
    utf16 = _utf16_of(content)
    if utf16 is None and b"\0" in content:
        msg = f"This is not a table that can be read. {_OPEN_AND_SAVE}"
        raise Unreadable(msg)
    encoding = utf16 or "utf-8-sig"
    try:
        return content.decode(encoding), "UTF-16" if utf16 else "UTF-8"
    except UnicodeDecodeError as error:
        if utf16:
            msg = f"The file is damaged: its text breaks off or has gaps. {_OPEN_AND_SAVE}"
            raise Unreadable(msg) from None
        first_fault = error.start
    without_faults = content.decode("utf-8", "ignore").encode()
    if len(_UTF8_LETTER.findall(content)) >= len(content) - len(without_faults):
        # UTF-8, with some letters pasted in that are not: the rows that need them are refused.
        return content.decode("utf-8-sig", "replace"), "UTF-8"
    text = content.decode("cp1252", "replace")
    foreign = _NOT_WINDOWS_1252.search(text)
    if foreign or "\ufffd" in text:
        place = min(foreign.start() if foreign else len(text), text.find("\ufffd") % len(text))
        before = content[: max(place, first_fault)]
        line = 1 + (before.count(b"\n") or before.count(b"\r"))
        msg = (
            f"Some letters in line {line} cannot be read for sure: the file is neither in UTF-8 nor in"
            f" Windows-1252 (Western European). {_OPEN_AND_SAVE}"
        )
        raise Unreadable(msg)
    return text, "Windows-1252"


def _utf16_of(content: bytes) -> str | None:
    """Return the codec of UTF-16; without a mark, nearly all zero bytes are in the same places."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    even, odd = content[::2].count(0), content[1::2].count(0)
    if max(even, odd) < len(content) / 20 or min(even, odd) > max(even, odd) / 20:
        return None
    return "utf-16-le" if odd > even else "utf-16-be"


def _likely_separator(text: str) -> str:
    """Return what divides the most rows at the start into equally many cells."""
    lines = text[:_SAMPLE].split("\n")[:50]

    def likelihood(separator: str) -> tuple[int, int]:
        rows = csv.reader(lines, delimiter=separator, skipinitialspace=True)
        widths = Counter(len(row) for row in rows if len(row) > 1)
        [(width, count)] = widths.most_common(1) or [(1, 0)]
        return count, width

    try:
        return max(_SEPARATORS, key=likelihood)
    except csv.Error:  # a cell without end
        return ","


def _csv_rows(text: str, separator: str, first_line: int) -> Iterator[Row]:
    lines = io.StringIO(text, newline="\n")
    for _ in range(1, first_line):
        lines.readline()
    rows = csv.reader(lines, delimiter=separator, skipinitialspace=True, strict=True)
    while True:
        line = rows.line_num + first_line
        try:
            yield Row(line, next(rows))
        except StopIteration:
            return
        except csv.Error:
            # The quote has taken in other rows, or the rest of the file.
            if rows.line_num + first_line > line + 1 or not lines.read(1):
                msg = (
                    f'The quotation mark (") in line {line} is not closed. Close it, or delete it,'
                    " and choose the file again."
                )
                raise Unreadable(msg) from None
            lines.seek(lines.tell() - 1)
            yield Row(line, [], 'A quotation mark (") is in the wrong place.')


def _open_workbook(content: bytes) -> Source:
    try:
        workbook = CalamineWorkbook.from_filelike(io.BytesIO(content))
        visible = [
            sheet.name
            for sheet in workbook.sheets_metadata
            if sheet.visible == Visibility.Visible and sheet.typ == SheetType.WorkSheet
        ]
        sheets = [workbook.get_sheet_by_name(name) for name in visible]
    except (CalamineError, OSError, ValueError) as error:
        if isinstance(error, PasswordError) or _ENCRYPTED in content:
            msg = "The workbook is protected with a password. Save a copy without one."
        else:
            msg = f"This is not a workbook that can be read, or it is damaged. {_OPEN_AND_SAVE}"
        raise Unreadable(msg) from None
    first, *others = [sheet for sheet in sheets if sheet.start is not None] or [None]
    if first is None or first.start is None:
        msg = "The workbook is empty. Choose one that has a row for each pet."
        raise Unreadable(msg)
    others_named = ", ".join(f"“{sheet.name}”" for sheet in others if sheet)
    note = (
        f"Only the first sheet, “{first.name}”, is read. To import from {others_named}, move that"
        " sheet to the front."
    )
    rows = (
        Row(line, [*map(_cell_text, cells)])
        for line, cells in enumerate(first.iter_rows(), first.start[0] + 1)
    )
    kind = "OpenDocument" if b"opendocument.spreadsheet" in content[:200] else "Excel"
    return Source(kind, "", [note] if others else [], _bounded(rows))


def _cell_text(value: Any) -> str:
    """Return a cell as a spreadsheet shows it."""
    if isinstance(value, float) and value.is_integer() and abs(value) < _LONG:
        return str(int(value))
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return value.isoformat(" ").removesuffix(" 00:00:00")
    return value.isoformat() if isinstance(value, date) else str(value)


def _bounded(rows: Iterator[Row]) -> Iterator[Row]:
    """Yield the rows that are not blank, their cells without the spaces around them."""
    count = size = 0
    for row in rows:
        cells = [cell.strip().replace("\0", "\ufffd") for cell in row.cells]
        if not (any(cells) or row.problem):
            continue
        if len(cells) > MAX_COLUMNS:
            del cells[max(place + 1 for place, cell in enumerate(cells) if cell) :]
        count, length = count + 1, sum(map(len, cells))
        size += length
        if len(cells) > MAX_COLUMNS:
            msg = (
                f"Line {row.line} has {len(cells):,} columns; {MAX_COLUMNS} are read at most. Delete"
                " the ones that you don't need."
            )
            raise Unreadable(msg)
        if count > MAX_ROWS or size > MAX_TEXT:
            msg = f"The file has more than {MAX_ROWS:,} rows, or too much text. Divide it."
            raise Unreadable(msg)
        if length > MAX_ROW_TEXT:
            problem = f"The row has more than {MAX_ROW_TEXT:,} characters."
            yield Row(row.line, [cell[:100] for cell in cells], problem)
        else:
            yield row._replace(cells=cells)
    if not count:
        msg = "The file is empty. Choose one that has a row for each pet."
        raise Unreadable(msg)


def _write_rows(source: Source, rows: io.BufferedIOBase) -> dict[str, object]:
    """Write the rows as JSON, one a line, and return what else there is to know about the file."""
    last_from = filled_before = 0
    for row in source.rows:
        filled = sum(map(bool, row.cells))
        if filled >= filled_before:
            last_from = row.line
        filled_before = filled
        rows.write(json.dumps(row).encode() + b"\n")
    encoding, separator, notes, _ = source
    return {
        "encoding": encoding, "separator": separator, "notes": notes, "last_from": last_from
    }


def main(arguments: Sequence[str]) -> None:
    """Read a file from standard input, and write its rows into an open file, by its descriptor."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.nice(10)
    try:
        with os.fdopen(int(arguments[0]), "wb") as rows:
            result = _write_rows(open_source(sys.stdin.buffer.read()), rows)
    except Unreadable as error:
        result = {"problem": str(error)}
    json.dump(result, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1:])
