"""Imports of the console: the rows of a file that a person sent, added in batches.

All the rows are in the database from the start. A unit of work takes the next batch, adds its pets
and notes the progress, so nothing is added twice or lost, even if several requests run units of
the same import at once, and wherever they stop.
"""

import csv
import io
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Literal, NamedTuple

import msgspec

from petstore.clock import DAY, Milliseconds
from petstore.databases.contract import Reader, Row, Statement, Unit
from petstore.errors import Conflict, InvalidBody, UnknownCategory
from petstore.store.categories import ids_of_categories, require_category
from petstore.store.pages import found
from petstore.store.pet_files import (
    Delimiter,
    FileRow,
    cells_of,
    csv_row,
    read_columns,
    read_rows,
)
from petstore.store.pets import create_pets
from petstore.store.retention import prune_by_age

MAX_ROWS = 20_000
"""How many rows a file may have."""

MAX_IMPORTS = 5
"""How many imports a key has; the oldest that has nothing to add makes room for a new one."""

IMPORTS_KEPT: Milliseconds = DAY
"""How long an import is kept, finished or not."""

# The event loop is busy for some milliseconds with so many.
BATCH = 200

_MAX_FILE_NAME = 200
_SAMPLE = 1024
# Every page of an import reads the names of the columns.
_MAX_HEADER = 10_000
_COLUMNS = (
    "id, digest, file, columns, delimiter, waiting, added, refused, first_id, last_id, created_at,"
    " finished_at"
)
_SELECT = f"SELECT {_COLUMNS} FROM console_imports"  # noqa: S608 - only names

_encode = msgspec.json.Encoder().encode
_decode_rows = msgspec.json.Decoder(list[FileRow]).decode
_decode_columns = msgspec.json.Decoder(list[str]).decode


class ImportFile(NamedTuple):
    """A CSV file that a person sent: its name, its digest, its columns and its rows.

    The texts of the rows have commas, whatever the ``delimiter`` of the file.
    """

    name: str
    digest: bytes
    columns: list[str]
    rows: list[FileRow]
    delimiter: Delimiter = ","


class ConsoleImport(NamedTuple):
    """An import of a key.

    ``waiting`` animals are still to be added. The ids of those that were ``added`` are from
    ``first_id`` to ``last_id``; somebody else may have ids in between.
    """

    id: int
    digest: bytes
    file: str
    columns: list[str]
    delimiter: Delimiter
    waiting: int
    added: int
    refused: int
    first_id: int | None
    last_id: int | None
    created_at: Milliseconds
    finished_at: Milliseconds | None

    @property
    def total(self) -> int:
        """How many rows the file has."""
        return self.waiting + self.added + self.refused


async def read_import_file(name: str, content: bytes) -> ImportFile:
    """Return a CSV file with its rows. A thread reads it, since 8 MiB can take some seconds.

    Its cells are divided by commas, or by semicolons, as spreadsheets of many countries save them.

    Raises:
        InvalidBody: it is not a table of pets in UTF-8, or has no rows or too many.
    """
    import asyncio  # here, so that `petstore --help` is instant

    return await asyncio.to_thread(_read_file, name, content)


async def find_named_categories(store: Reader, file: ImportFile) -> ImportFile:
    """Return a file with the pets whose categories are names of registered ones, ignoring case.

    Raises:
        Unavailable: the database is unreachable.
    """
    import asyncio  # here, so that `petstore --help` is instant

    cells = await asyncio.to_thread(_cells_with_names, file)
    ids = await ids_of_categories(store, {each["categoryId"] for each in cells.values()})
    return file._replace(rows=await asyncio.to_thread(_named_rows, file.rows, cells, ids))


def create_import(key_id: int, file: ImportFile, *, now: Milliseconds) -> Unit[int]:
    """Store a file of a key to be imported, and return the id of the import.

    An import of the same file that has added nothing yet is replaced.

    Raises:
        Conflict: the key has ``MAX_IMPORTS`` that all have rows to add.
    """
    # So two requests at once cannot both create the last one.
    yield Statement(
        "SELECT id FROM api_keys WHERE id = ?1 /*pg FOR NO KEY UPDATE */",
        (key_id,),
        name="lock_key",
    )
    yield Statement(
        "DELETE FROM console_imports WHERE key_id = ?1 AND digest = ?2 AND added = 0",
        (key_id, file.digest),
        name="delete_same_console_import",
        affects_pages=False,
    )
    yield from _make_room(key_id)
    pets = sum(row.pet is not None for row in file.rows)
    created = yield Statement(
        "INSERT INTO console_imports"
        " (key_id, digest, file, columns, delimiter, waiting, refused, created_at)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) /*pg RETURNING id */",
        (
            key_id,
            file.digest,
            file.name,
            _encode(file.columns).decode(),
            file.delimiter,
            pets,
            len(file.rows) - pets,
            now,
        ),
        gives_id=True,
        name="insert_console_import",
        affects_pages=False,
    )
    import_id: int = created[0][0]
    for start in range(0, len(file.rows), BATCH):
        rows = file.rows[start : start + BATCH]
        refused = sum(row.pet is None for row in rows)
        yield Statement(
            "INSERT INTO console_import_batches (import_id, start, waiting, refused, rows)"
            " VALUES (?1, ?2, ?3, ?4, ?5)",
            (import_id, start, len(rows) - refused, refused, _encode(rows).decode()),
            name="insert_console_import_batch",
            affects_pages=False,
        )
    return import_id


def add_batch(
    import_id: int, key_id: int, *, now: Milliseconds, strict_categories: bool
) -> Unit[ConsoleImport]:
    """Add the pets of the next batch of an import, and return the import as it is then.

    Nothing happens if it is finished.

    Raises:
        NotFound: the key has no such import.
    """
    present = yield from _locked(import_id, key_id)
    batches = yield Statement(
        "SELECT start, rows FROM console_import_batches WHERE import_id = ?1 AND waiting > 0"
        " ORDER BY start LIMIT 1",
        (import_id,),
        name="select_next_console_import_batch",
    )
    if not batches:
        return present
    start, text = batches[0]
    rows = _decode_rows(text)
    waiting = sum(row.pet is not None for row in rows)
    if strict_categories:
        rows = yield from _refuse_unknown(rows)
    created = yield from create_pets((row.pet for row in rows if row.pet is not None), now=now)
    refused = [row for row in rows if row.pet is None]
    yield Statement(
        "UPDATE console_import_batches SET waiting = 0, refused = ?1, rows = ?2"
        " WHERE import_id = ?3 AND start = ?4",
        (len(refused), _encode(refused).decode(), import_id, start),
        name="update_console_import_batch",
        affects_pages=False,
    )
    ids = [pet.id for pet in created]
    left = present.waiting - waiting
    changed = yield Statement(
        "UPDATE console_imports SET waiting = ?1, added = ?2, refused = ?3, first_id = ?4,"  # noqa: S608
        f" last_id = ?5, finished_at = ?6 WHERE id = ?7 RETURNING {_COLUMNS}",
        (
            left,
            present.added + len(ids),
            present.refused + waiting - len(ids),
            present.first_id or min(ids, default=None),
            max(ids, default=present.last_id),
            None if left else now,
            import_id,
        ),
        name="update_console_import",
        affects_pages=False,
    )
    return _import_of(changed[0])


def delete_import(import_id: int, key_id: int) -> Unit[ConsoleImport]:
    """Delete an import and return it. The pets that it has added stay.

    Raises:
        NotFound: the key has no such import.
    """
    present = yield from _locked(import_id, key_id)
    yield _delete(import_id)
    return present


async def find_import(store: Reader, import_id: int, key_id: int) -> ConsoleImport:
    """Return an import of a key.

    Raises:
        NotFound: the key has no such import.
    """
    sql = f"{_SELECT} WHERE id = ?1 AND key_id = ?2"
    rows = await store.read(Statement(sql, (import_id, key_id), name="select_console_import"))
    return found(rows, _import_of, "import", import_id)


async def list_imports(store: Reader, key_id: int) -> list[ConsoleImport]:
    """Return the imports of a key, the newest first."""
    sql = f"{_SELECT} WHERE key_id = ?1 ORDER BY id DESC"
    rows = await store.read(Statement(sql, (key_id,), name="select_console_imports"))
    return [*map(_import_of, rows)]


async def read_batch(
    store: Reader, import_id: int, kind: Literal["waiting", "refused"], start: int = 0
) -> tuple[list[FileRow], int]:
    """Return the rows of one kind in the first batch that has some, from a row of the file on.

    The second value is where the next batch starts. There are no rows if no batch has any.
    """
    batches = await store.read(
        Statement(
            "SELECT start, rows FROM console_import_batches"  # noqa: S608 - only names
            f" WHERE import_id = ?1 AND start >= ?2 AND {kind} > 0 ORDER BY start LIMIT 1",
            (import_id, start),
            name="select_console_import_batch",
        )
    )
    rows = _decode_rows(batches[0][1]) if batches else []
    wanted = [row for row in rows if (row.pet is None) == (kind == "refused")]
    return wanted, batches[0][0] + BATCH if batches else start


def prune_imports(before: Milliseconds) -> Unit[int]:
    """Delete one import from before a moment, with its rows; return how many were deleted."""
    return prune_by_age("console_imports", "id", "created_at", before, 1)


def _read_file(name: str, content: bytes) -> ImportFile:
    _require_text(content)
    digest = sha256(content).digest()
    delimiter = _delimiter_of(content)
    if delimiter == ";":
        content = _with_commas(content)
    columns = read_columns(io.BytesIO(content))
    if sum(map(len, columns)) + len(columns) > _MAX_HEADER:
        msg = f"line 1: expected names of columns with at most {_MAX_HEADER:,} characters together"
        raise InvalidBody(msg)
    _require_utf8(1, columns, columns)
    rows: list[FileRow] = []
    for row in read_rows(io.BytesIO(content), "csv"):
        if row.pet is None:
            _require_utf8(row.line, columns, cells_of(row.text))
        if len(rows) == MAX_ROWS:
            msg = (
                f"expected at most {MAX_ROWS:,} rows; divide the file, or use the command"
                " petstore pets import"
            )
            raise InvalidBody(msg)
        rows.append(row)
    if not rows:
        msg = "line 2: expected a row for each animal; the file has the names of the columns alone"
        raise InvalidBody(msg)
    name = name.replace("\0", "")[-_MAX_FILE_NAME:]
    return ImportFile(name, digest, columns, rows, delimiter)


def _cells_with_names(file: ImportFile) -> dict[int, dict[str, str]]:
    """Return the cells of the rows whose category is no number, by their place in the file."""
    found = {}
    for place, row in enumerate(file.rows):
        if row.reason.startswith("categoryId: "):
            cells = dict(zip(file.columns, cells_of(row.text), strict=False))
            if name := cells.get("categoryId", "").strip():
                found[place] = cells | {"categoryId": name}
    return found


def _named_rows(
    rows: Sequence[FileRow], cells: Mapping[int, dict[str, str]], ids: Mapping[str, int]
) -> list[FileRow]:
    named = list(rows)
    for place, each in cells.items():
        row, name = rows[place], each["categoryId"]
        if name in ids:
            named[place] = csv_row(row.line, row.text, each | {"categoryId": str(ids[name])})
        else:
            named[place] = row._replace(reason=f"{row.reason}, or the name of a category")
    return named


def _delimiter_of(content: bytes) -> Delimiter:
    first_line = content.partition(b"\n")[0]
    return ";" if b";" in first_line and b"," not in first_line else ","


def _with_commas(content: bytes) -> bytes:
    """Return a file whose cells are divided by semicolons with commas instead, line by line.

    Raises:
        InvalidBody: it is not CSV.
    """
    # Bytes that are not UTF-8 become surrogates and come back as they were.
    encoding, errors = "utf-8-sig", "surrogateescape"
    lines = io.TextIOWrapper(io.BytesIO(content), encoding, errors, newline="\n")
    result = io.StringIO(newline="")
    reader = csv.reader(lines, delimiter=";")
    try:
        csv.writer(result, lineterminator="\n").writerows(reader)
    except csv.Error as error:
        msg = f"line {reader.line_num}: expected CSV ({error})"
        raise InvalidBody(msg) from None
    return result.getvalue().encode("utf-8", errors)


def _require_text(content: bytes) -> None:
    if not content.strip():
        msg = "expected a CSV file; this one is empty"
        raise InvalidBody(msg)
    # Text in UTF-8 has none; workbooks, archives, pictures and UTF-16 have some early.
    if b"\0" in content[:_SAMPLE]:
        msg = "expected a CSV file in UTF-8, which is text; save the spreadsheet as “CSV UTF-8”"
        raise InvalidBody(msg)


def _require_utf8(line: int, columns: list[str], cells: list[str]) -> None:
    for number, cell in enumerate(cells):
        try:
            cell.encode()
        except UnicodeEncodeError:
            # What is not CSV is one cell, wherever the fault is.
            is_known = len(cells) > 1 and number < len(columns)
            place = f"line {line}" + (f", column {columns[number]}" if is_known else "")
            msg = f"{place}: expected UTF-8; save the spreadsheet as “CSV UTF-8”"
            raise InvalidBody(msg) from None


def _make_room(key_id: int) -> Unit[None]:
    present = yield Statement(
        f"{_SELECT} WHERE key_id = ?1 ORDER BY id", (key_id,), name="select_console_imports"
    )
    if len(present) < MAX_IMPORTS:
        return
    for each in map(_import_of, present):
        if not each.waiting:  # finished, or without a row that could be added
            yield _delete(each.id)
            return
    msg = f"you have {MAX_IMPORTS} imports that are not finished; finish or discard one first"
    raise Conflict(msg)


def _refuse_unknown(rows: list[FileRow]) -> Unit[list[FileRow]]:
    """Return ``rows`` without the pets whose categories are not registered."""
    reasons = {}
    for category_id in sorted({row.pet.categoryId for row in rows if row.pet is not None}):
        try:
            yield from require_category(category_id)
        except UnknownCategory as error:
            reasons[category_id] = error.message
    return [
        row._replace(pet=None, reason=reasons[row.pet.categoryId])
        if row.pet is not None and row.pet.categoryId in reasons
        else row
        for row in rows
    ]


def _locked(import_id: int, key_id: int) -> Unit[ConsoleImport]:
    """Return an import of a key, and lock its row: batches follow one another."""
    sql = f"{_SELECT} WHERE id = ?1 AND key_id = ?2 /*pg FOR UPDATE */"
    rows = yield Statement(sql, (import_id, key_id), name="lock_console_import")
    return found(rows, _import_of, "import", import_id)


def _delete(import_id: int) -> Statement:
    return Statement(
        "DELETE FROM console_imports WHERE id = ?1",
        (import_id,),
        name="delete_console_import",
        affects_pages=False,
    )


def _import_of(row: Row) -> ConsoleImport:
    import_id, digest, file, columns, *rest = row
    return ConsoleImport(import_id, digest, file, _decode_columns(columns), *rest)
