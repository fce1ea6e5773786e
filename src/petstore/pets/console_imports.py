"""Imports of the console: the rows of a file that a person sent, added in batches.

All the rows are in the database from the start. A unit of work takes the next batch, adds its pets
and notes the progress, so nothing is added twice or lost, even if several requests run units of
the same import at once, and wherever they stop.

The rows of a file are stored in batches too: a unit for all of them would keep others waiting. An
import without any row is still being stored, and nobody sees it.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import BinaryIO, Literal, NamedTuple

import msgspec

from petstore.categories.store import ids_of_categories
from petstore.clock import Clock, Milliseconds
from petstore.databases import schema
from petstore.databases.contract import Reader, Row, Statement, Store, Unit, Value
from petstore.databases.pages import found
from petstore.errors import Conflict, InvalidBody, NotFound, PetstoreError
from petstore.events.model import SERVICE, Author
from petstore.pets.files import (
    NOT_UTF8,
    Delimiter,
    FileLimits,
    FileRow,
    ImportFile,
    cells_of,
    csv_row,
    is_utf8,
    open_import_file,
)
from petstore.pets.imports import ImportRun, pets_of, refuse_unknown
from petstore.pets.model import Pet
from petstore.pets.store import create_pets
from petstore.time_slices import TimeSlices

MAX_IMPORTS = 5
"""How many imports a key has; the oldest that has nothing to add makes room for a new one."""

IMPORTS_KEPT = schema.IMPORTS_KEPT

MAX_ROWS = 20_000
"""How many rows a file may have."""

LIMITS = FileLimits(lines=100_000, characters=16_384, cells=256)
"""A row can have several lines, and some lines are blank."""

BATCH = 200
"""How many rows a batch has at most; it has fewer if they are long."""

ROWS_AT_ONCE = 100
"""How many pets a unit of work adds: the event loop is busy for some milliseconds with them."""

_BATCH_CHARACTERS = 65_536
_MAX_FILE_NAME = 200
# As JSON, the text of a file is seldom twice as large, but control characters are six times.
_MAX_STORED = 24 * 2**20
_COLUMNS = (
    "id, digest, file, columns, delimiter, waiting, added, refused, first_id, last_id, created_at,"
    " finished_at, undoable, undone, stayed"
)
_STORED = "waiting + added + refused > 0"
_SELECT = f"SELECT {_COLUMNS} FROM console_imports"  # noqa: S608 - only names

_encode = msgspec.json.Encoder().encode
_decode_rows = msgspec.json.Decoder(list[FileRow]).decode
_decode_columns = msgspec.json.Decoder(list[str]).decode
_decode_pets = msgspec.json.Decoder(list[Pet]).decode


class ConsoleImport(NamedTuple):
    """An import of a key.

    ``waiting`` animals are still to be added. The ids of those that were ``added`` are from
    ``first_id`` to ``last_id``; somebody else may have ids in between.

    An undo has deleted ``undone`` of them, and left ``stayed``. It can still look at ``undoable``.
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
    undoable: int
    undone: int
    stayed: int

    @property
    def total(self) -> int:
        """How many rows the file has."""
        return self.waiting + self.added + self.refused


async def store_import(
    store: Store,
    key_id: int,
    name: str,
    content: BinaryIO,
    clock: Clock,
    *,
    named_categories: bool,
    strict_categories: bool,
) -> int:
    """Store a CSV file of a key to be imported, and return the id of the import.

    An import of the same file that has added nothing yet is replaced. With ``named_categories``, a
    category may be the name of a registered one, ignoring case. With ``strict_categories``, a pet
    of a category that is not registered is refused.

    Raises:
        InvalidBody: it is no table of pets in UTF-8, or has no rows, or too many.
        Conflict: the key has ``MAX_IMPORTS`` that all have rows to add, or sent another file while
            this one was being stored.
        Unavailable: the database is unreachable.
    """
    file = await asyncio.to_thread(open_import_file, content, limits=LIMITS)
    _require_utf8(1, file.columns, file.columns)
    import_id = await store.write(begin_import(key_id, name, file, now=clock()))
    add = partial(_add_rows, import_id, key_id, strict_categories=strict_categories)
    try:
        await _store_rows(store, file, add, named_categories=named_categories)
        await store.write(_complete_import(import_id, key_id, file.digest))
    except NotFound:
        msg = "another file was sent at the same time; send this one again"
        raise Conflict(msg) from None
    except PetstoreError:
        with suppress(PetstoreError):
            await store.write(delete_import(import_id, key_id))
        raise
    return import_id


def begin_import(key_id: int, name: str, file: ImportFile, *, now: Milliseconds) -> Unit[int]:
    """Begin to store a file, and return the id of its import.

    A file of the key that was not stored as a whole makes room.

    Raises:
        Conflict: the key has ``MAX_IMPORTS`` that all have rows to add.
    """
    yield _lock_key(key_id)
    yield _change(
        "delete_unstored_console_imports",
        f"DELETE FROM console_imports WHERE key_id = ?1 AND NOT ({_STORED})",  # noqa: S608
        key_id,
    )
    yield from _least_needed(key_id)
    created = yield _change(
        "insert_console_import",
        "INSERT INTO console_imports"
        " (key_id, digest, file, columns, delimiter, waiting, refused, created_at)"
        " VALUES (?1, ?2, ?3, ?4, ?5, 0, 0, ?6) RETURNING id",
        key_id,
        file.digest,
        name.replace("\0", "")[-_MAX_FILE_NAME:],
        _encode(file.columns).decode(),
        file.delimiter,
        now,
    )
    import_id: int = created[0][0]
    return import_id


def add_batch(
    import_id: int,
    key_id: int,
    *,
    now: Milliseconds,
    limit: int,
    strict_categories: bool,
    by: Author = SERVICE,
) -> Unit[ConsoleImport]:
    """Add at most ``limit`` pets of the next batch of an import; return the import as it is then.

    Nothing happens if it is finished.

    Raises:
        NotFound: the key has no such import.
    """
    present = yield from locked_import(import_id, key_id)
    batches = yield Statement(
        "SELECT start, rows, added FROM console_import_batches"
        " WHERE import_id = ?1 AND waiting > 0 ORDER BY start LIMIT 1",
        (import_id,),
        name="select_next_console_import_batch",
    )
    if not batches:
        return present
    start, text, added = batches[0]
    rows, others = _divided(_decode_rows(text), limit)
    left = present.waiting - len(pets_of(rows))
    if strict_categories:
        rows = yield from refuse_unknown(rows)
    created = yield from create_pets(pets_of(rows), now=now, by=by)
    others = [row for row in rows if row.pet is None] + others
    waiting = len(pets_of(others))
    yield _change(
        "update_console_import_batch",
        "UPDATE console_import_batches SET waiting = ?1, refused = ?2, rows = ?3, added = ?4"
        " WHERE import_id = ?5 AND start = ?6",
        *(waiting, len(others) - waiting, _encode(others).decode()),
        *(_encode(_decode_pets(added) + created).decode(), import_id, start),
    )
    ids = [pet.id for pet in created]
    changed = yield _change(
        "update_console_import",
        "UPDATE console_imports SET waiting = ?1, added = ?2, refused = ?3, first_id = ?4,"  # noqa: S608
        " last_id = ?5, finished_at = ?6, undoable = undoable + ?8"
        f" WHERE id = ?7 RETURNING {_COLUMNS}",
        left,
        present.added + len(ids),
        present.total - left - present.added - len(ids),
        present.first_id or min(ids, default=None),
        max(ids, default=present.last_id),
        None if left else now,
        import_id,
        len(ids),
    )
    return _import_of(changed[0])


def stop_import(import_id: int, key_id: int, *, now: Milliseconds) -> Unit[ConsoleImport]:
    """Add no more rows of an import, and return it as it was. It is deleted if it added nothing.

    Raises:
        NotFound: the key has no such import.
    """
    present = yield from locked_import(import_id, key_id)
    if not present.added:
        yield _delete(import_id)
    elif present.waiting:
        yield from stopped(import_id, now)
    return present


def stopped(import_id: int, now: Milliseconds) -> Unit[None]:
    """Stop an import whose row is locked."""
    yield _change(
        "stop_console_import_batches",
        "UPDATE console_import_batches SET waiting = 0 WHERE import_id = ?1 AND waiting > 0",
        import_id,
    )
    yield _change(
        "stop_console_import",
        "UPDATE console_imports SET waiting = 0, finished_at = ?1 WHERE id = ?2",
        *(now, import_id),
    )


def delete_import(import_id: int, key_id: int) -> Unit[ConsoleImport]:
    """Delete an import and return it. The pets that it has added stay.

    Raises:
        NotFound: the key has no such import.
    """
    present = yield from locked_import(import_id, key_id)
    yield _delete(import_id)
    return present


async def find_import(store: Reader, import_id: int, key_id: int) -> ConsoleImport:
    """Return an import of a key.

    Raises:
        NotFound: the key has no such import.
    """
    sql = f"{_SELECT} WHERE id = ?1 AND key_id = ?2 AND {_STORED}"
    rows = await store.read(Statement(sql, (import_id, key_id), name="select_console_import"))
    return found(rows, _import_of, "import", import_id)


async def list_imports(store: Reader, key_id: int) -> list[ConsoleImport]:
    """Return the imports of a key, the newest first."""
    sql = f"{_SELECT} WHERE key_id = ?1 AND {_STORED} ORDER BY id DESC"
    rows = await store.read(Statement(sql, (key_id,), name="select_console_imports"))
    return [*map(_import_of, rows)]


async def read_rows(
    store: Reader, import_id: int, kind: Literal["waiting", "refused"], limit: int = MAX_ROWS
) -> AsyncIterator[FileRow]:
    """Yield the first ``limit`` rows of one kind, batch by batch."""
    start = -1
    sql = (
        "SELECT start, rows FROM console_import_batches"  # noqa: S608 - only names
        f" WHERE import_id = ?1 AND start > ?2 AND {kind} > 0 ORDER BY start LIMIT 1"
    )
    while limit > 0:
        select = Statement(sql, (import_id, start), name="select_console_import_batch")
        batches = await store.read(select)
        if not batches:
            return
        start, text = batches[0]
        rows = [row for row in _decode_rows(text) if (row.pet is None) == (kind == "refused")]
        for row in rows[:limit]:
            yield row
        limit -= len(rows)


async def count_next_batch(store: Reader, import_id: int) -> int:
    """Return how many pets of an import ``add_batch`` can add next."""
    counts = await store.read(
        Statement(
            "SELECT waiting FROM console_import_batches WHERE import_id = ?1 AND waiting > 0"
            " ORDER BY start LIMIT 1",
            (import_id,),
            name="count_next_console_import_batch",
        )
    )
    return counts[0][0] if counts else 0


async def _store_rows(
    store: Store,
    file: ImportFile,
    add: Callable[[int, list[FileRow]], Unit[int]],
    *,
    named_categories: bool,
) -> None:
    """Store the rows of a file in batches. ``add`` makes the unit that stores one.

    Raises:
        InvalidBody: the file is no table of pets in UTF-8, or has no rows, or too many.
    """
    run, size, slices = ImportRun(file), 0, TimeSlices()
    for rows in run.batches(BATCH, _BATCH_CHARACTERS):
        await slices.rest()
        for row in rows:
            if row.reason == NOT_UTF8:
                _require_utf8(row.line, file.columns, cells_of(row.text, file.delimiter))
        if run.done + len(rows) > MAX_ROWS:
            msg = (
                f"expected at most {MAX_ROWS:,} rows; divide the file, or use the command"
                " petstore pets import"
            )
            raise InvalidBody(msg)
        if named_categories:
            await _name_categories(store, file, rows)
        if rows:
            size += await store.write(add(run.done, rows))
        if size > _MAX_STORED:
            msg = "expected text; the file has too many control characters"
            raise InvalidBody(msg)
    if not run.done:
        msg = "line 2: expected a row for each animal; the file has the names of the columns alone"
        raise InvalidBody(msg)


def _require_utf8(line: int, columns: Sequence[str], cells: Sequence[str]) -> None:
    for number, cell in enumerate(cells):
        if not is_utf8(cell):
            # What is not CSV is one cell, wherever the fault is.
            is_known = len(cells) > 1 and number < len(columns)
            place = f"line {line}" + (f", column {columns[number]}" if is_known else "")
            msg = f"{place}: expected UTF-8; save the spreadsheet as “CSV UTF-8”"
            raise InvalidBody(msg)


async def _name_categories(store: Reader, file: ImportFile, rows: list[FileRow]) -> None:
    """Replace rows whose categories are names: of registered ones, ignoring case, or of none."""
    named = {}  # the cells of such rows, by their place
    for place, row in enumerate(rows):
        if row.reason.startswith("categoryId: "):
            cells = dict(zip(file.columns, cells_of(row.text, file.delimiter), strict=False))
            if name := cells.get("categoryId", "").strip():
                named[place] = cells | {"categoryId": name}
    ids = await ids_of_categories(store, {cells["categoryId"] for cells in named.values()})
    for place, cells in named.items():
        row, name = rows[place], cells["categoryId"]
        if name in ids:
            rows[place] = csv_row(row.line, row.text, cells | {"categoryId": str(ids[name])})
        else:
            rows[place] = row.refused(f"{row.reason}, or the name of a category")


def _add_rows(
    import_id: int, key_id: int, start: int, rows: list[FileRow], *, strict_categories: bool
) -> Unit[int]:
    """Store rows of a file, the first of which has the number ``start``; return their size.

    Raises:
        NotFound: the import is gone.
    """
    yield from locked_import(import_id, key_id)
    if strict_categories:
        rows = yield from refuse_unknown(rows)
    waiting, encoded = len(pets_of(rows)), _encode(rows)
    yield _change(
        "insert_console_import_batch",
        "INSERT INTO console_import_batches (import_id, start, waiting, refused, rows)"
        " VALUES (?1, ?2, ?3, ?4, ?5)",
        *(import_id, start, waiting, len(rows) - waiting, encoded.decode()),
    )
    return len(encoded)


def _complete_import(import_id: int, key_id: int, digest: bytes) -> Unit[None]:
    """Show an import whose rows are all stored, in the place of one that is not needed any more.

    Raises:
        Conflict: the key has ``MAX_IMPORTS`` that all have rows to add.
        NotFound: the import is gone.
    """
    yield _lock_key(key_id)  # so two requests at once cannot both complete the last one
    yield from locked_import(import_id, key_id)
    yield _change(
        "delete_same_console_import",
        "DELETE FROM console_imports"  # noqa: S608 - only names
        f" WHERE key_id = ?1 AND digest = ?2 AND added = 0 AND {_STORED}",
        *(key_id, digest),
    )
    least_needed = yield from _least_needed(key_id)
    if least_needed is not None:
        yield _delete(least_needed)
    yield _change(
        "complete_console_import",
        "UPDATE console_imports SET (waiting, refused) ="
        " (SELECT CAST(sum(waiting) AS BIGINT), CAST(sum(refused) AS BIGINT)"
        " FROM console_import_batches WHERE import_id = ?1) WHERE id = ?1",
        import_id,
    )


def _divided(rows: list[FileRow], limit: int) -> tuple[list[FileRow], list[FileRow]]:
    """Return the rows up to the pet with the number ``limit``, and the others."""
    pets = 0
    for place, row in enumerate(rows):
        if pets == limit:
            return rows[:place], rows[place:]
        pets += row.pet is not None
    return rows, []


def _lock_key(key_id: int) -> Statement:
    sql = "SELECT id FROM api_keys WHERE id = ?1 /*pg FOR NO KEY UPDATE */"
    return Statement(sql, (key_id,), name="lock_key")


def _least_needed(key_id: int) -> Unit[int | None]:
    """Return the import that makes room for another one, ``None`` if there is room.

    Raises:
        Conflict: there is none.
    """
    sql = f"{_SELECT} WHERE key_id = ?1 AND {_STORED} ORDER BY id"
    present = yield Statement(sql, (key_id,), name="select_console_imports")
    if len(present) < MAX_IMPORTS:
        return None
    for each in map(_import_of, present):
        if not each.waiting:  # finished, or without a row that could be added
            return each.id
    msg = f"you have {MAX_IMPORTS} imports that are not finished; finish or discard one first"
    raise Conflict(msg)


def locked_import(import_id: int, key_id: int) -> Unit[ConsoleImport]:
    """Return an import of a key, and lock its row: batches follow one another."""
    sql = f"{_SELECT} WHERE id = ?1 AND key_id = ?2 /*pg FOR UPDATE */"
    rows = yield Statement(sql, (import_id, key_id), name="lock_console_import")
    return found(rows, _import_of, "import", import_id)


def _delete(import_id: int) -> Statement:
    return _change("delete_console_import", "DELETE FROM console_imports WHERE id = ?1", import_id)


def _change(name: str, sql: str, *parameters: Value) -> Statement:
    """Return a statement that changes imports: no page of a list shows them."""
    return Statement(sql, parameters, name=name)


def _import_of(row: Row) -> ConsoleImport:
    import_id, digest, file, columns, *rest = row
    return ConsoleImport(import_id, digest, file, _decode_columns(columns), *rest)
