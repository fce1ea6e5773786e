"""CSV files that people send to the console, read in slices that let others in."""

from collections.abc import AsyncIterator
from hashlib import sha256
from typing import BinaryIO, NamedTuple

from petstore.errors import InvalidBody
from petstore.store.pet_files import (
    Delimiter,
    FileRow,
    RowLimits,
    cells_of,
    read_columns,
    read_csv,
)
from petstore.store.time_slices import TimeSlices

MAX_ROWS = 20_000
"""How many rows a file may have."""

MAX_LINES = 100_000
"""How many lines a file may have: a row can have several, and some are blank."""

ROW_LIMITS = RowLimits(characters=16_384, cells=256)
"""How large a row may be."""

BATCH = 200
"""How many rows a batch has at most; it has fewer if they are long."""

_BATCH_CHARACTERS = 65_536
_PIECE = 65_536
_MAX_FILE_NAME = 200
_SAMPLE = 1024
# Every page of an import reads the names of the columns.
_MAX_HEADER = 10_000


class ImportFile(NamedTuple):
    """A CSV file that a person sent, read as far as its header.

    Commas or semicolons, as spreadsheets of many countries save them, divide its cells.
    """

    name: str
    digest: bytes
    columns: list[str]
    delimiter: Delimiter
    content: BinaryIO


async def open_import_file(name: str, content: BinaryIO) -> ImportFile:
    """Return a CSV file, ready to be read.

    Raises:
        InvalidBody: it is not a table of pets in UTF-8, or has too many lines.
    """
    digest = await _digest(content)
    content.seek(0)
    start = content.read(_SAMPLE)
    _require_text(start)
    content.seek(0)
    delimiter = _delimiter_of(content.readline(ROW_LIMITS.characters))
    content.seek(0)
    columns = read_columns(content, delimiter, ROW_LIMITS)
    if sum(map(len, columns)) + len(columns) > _MAX_HEADER:
        msg = f"line 1: expected names of columns with at most {_MAX_HEADER:,} characters together"
        raise InvalidBody(msg)
    if len(columns) > ROW_LIMITS.cells:
        msg = f"line 1: expected at most {ROW_LIMITS.cells} columns, got {len(columns):,}"
        raise InvalidBody(msg)
    _require_utf8(1, columns, columns)
    name = name.replace("\0", "")[-_MAX_FILE_NAME:]
    return ImportFile(name, digest, columns, delimiter, content)


async def read_batches(file: ImportFile) -> AsyncIterator[list[FileRow]]:
    """Yield the rows of a file in batches.

    Raises:
        InvalidBody: a row is not UTF-8, or there are no rows or too many.
    """
    slices = TimeSlices()
    batch: list[FileRow] = []
    count = size = 0
    file.content.seek(0)
    for row in read_csv(file.content, file.delimiter, ROW_LIMITS):
        await slices.rest()
        if row is None:
            continue
        _require_utf8_in(row, file)
        count += 1
        if count > MAX_ROWS:
            msg = (
                f"expected at most {MAX_ROWS:,} rows; divide the file, or use the command"
                " petstore pets import"
            )
            raise InvalidBody(msg)
        batch.append(row)
        size += len(row.text)
        if len(batch) == BATCH or size >= _BATCH_CHARACTERS:
            yield batch
            batch, size = [], 0
    if not count:
        msg = "line 2: expected a row for each animal; the file has the names of the columns alone"
        raise InvalidBody(msg)
    if batch:
        yield batch


async def _digest(content: BinaryIO) -> bytes:
    """Return the digest of a file.

    Raises:
        InvalidBody: it is blank, or has too many lines.
    """
    slices = TimeSlices()
    digest, lines, is_blank = sha256(), 0, True
    content.seek(0)
    while piece := content.read(_PIECE):
        digest.update(piece)
        lines += piece.count(b"\n")
        is_blank = is_blank and not piece.strip()
        await slices.rest()
    if is_blank:
        msg = "expected a CSV file; this one is empty"
        raise InvalidBody(msg)
    if lines > MAX_LINES:
        msg = f"expected at most {MAX_LINES:,} lines, got {lines:,}; remove the blank ones"
        raise InvalidBody(msg)
    return digest.digest()


def _delimiter_of(first_line: bytes) -> Delimiter:
    return ";" if b";" in first_line and b"," not in first_line else ","


def _require_text(start: bytes) -> None:
    # Text in UTF-8 has none; workbooks, archives, pictures and UTF-16 have some early.
    if b"\0" in start:
        msg = "expected a CSV file in UTF-8, which is text; save the spreadsheet as “CSV UTF-8”"
        raise InvalidBody(msg)


def _require_utf8_in(row: FileRow, file: ImportFile) -> None:
    if row.pet is None and not _is_utf8(row.text):
        _require_utf8(row.line, file.columns, cells_of(row.text, file.delimiter))


def _require_utf8(line: int, columns: list[str], cells: list[str]) -> None:
    for number, cell in enumerate(cells):
        if not _is_utf8(cell):
            # What is not CSV is one cell, wherever the fault is.
            is_known = len(cells) > 1 and number < len(columns)
            place = f"line {line}" + (f", column {columns[number]}" if is_known else "")
            msg = f"{place}: expected UTF-8; save the spreadsheet as “CSV UTF-8”"
            raise InvalidBody(msg)


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
