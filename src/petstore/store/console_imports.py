"""Imports of the console: the rows of a file that a person sent, added in batches.

All the rows are in the database from the start. A unit of work takes the next batch, adds its pets
and notes the progress, so nothing is added twice or lost, even if several requests run units of
the same import at once, and wherever they stop.

The rows of a file are stored in batches too: a unit for all of them would keep others waiting. An
import without any row is still being stored, and nobody sees it.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Literal, NamedTuple

import msgspec

from petstore.clock import DAY, Clock, Milliseconds
from petstore.databases.contract import Reader, Row, Statement, Store, Unit
from petstore.errors import Conflict, InvalidBody, NotFound, PetstoreError, UnknownCategory
from petstore.store.categories import ids_of_categories, require_category
from petstore.store.import_files import ImportFile, read_batches
from petstore.store.pages import found
from petstore.store.pet_files import Delimiter, FileRow, cells_of, csv_row
from petstore.store.pet_imports import refuse_unknown
from petstore.store.pets import create_pets
from petstore.store.retention import prune_by_age

MAX_IMPORTS = 5
"""How many imports a key has; the oldest that has nothing to add makes room for a new one."""

IMPORTS_KEPT: Milliseconds = 7 * DAY
"""How long an import is kept, finished or not: a large one can take a key several days."""

ROWS_AT_ONCE = 100
"""How many pets a unit of work adds: the event loop is busy for some milliseconds with them."""

# As JSON, the text of a file is seldom twice as large, but control characters are six times.
_MAX_STORED = 24 * 2**20
_COLUMNS = (
    "id, digest, file, columns, delimiter, waiting, added, refused, first_id, last_id, created_at,"
    " finished_at"
)
_STORED = "waiting + added + refused > 0"
_SELECT = f"SELECT {_COLUMNS} FROM console_imports"  # noqa: S608 - only names

_encode = msgspec.json.Encoder().encode
_decode_rows = msgspec.json.Decoder(list[FileRow]).decode
_decode_columns = msgspec.json.Decoder(list[str]).decode


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


async def store_import(
    store: Store,
    key_id: int,
    file: ImportFile,
    clock: Clock,
    *,
    named_categories: bool,
    strict_categories: bool,
) -> int:
    """Store a file of a key to be imported, and return the id of the import.

    An import of the same file that has added nothing yet is replaced. With ``named_categories``, a
    category may be the name of a registered one, ignoring case. With ``strict_categories``, a pet
    of a category that is not registered is refused.

    Raises:
        InvalidBody: the file has rows that make it no table of pets, or none, or too many.
        Conflict: the key has ``MAX_IMPORTS`` that all have rows to add, or sent another file while
            this one was being stored.
        Unavailable: the database is unreachable.
    """
    import_id = await store.write(begin_import(key_id, file, now=clock()))
    start = size = 0
    try:
        async for rows in read_batches(file):
            if named_categories:
                rows = await _with_named_categories(store, file, rows)  # noqa: PLW2901
            if strict_categories:
                rows = await refuse_unknown(store, rows)  # noqa: PLW2901
            size += await store.write(_add_rows(import_id, key_id, start, rows))
            start += len(rows)
            if size > _MAX_STORED:
                msg = "expected text; the file has too many control characters"
                raise InvalidBody(msg)
        await store.write(_complete_import(import_id, key_id, file.digest))
    except NotFound:
        msg = "another file was sent at the same time; send this one again"
        raise Conflict(msg) from None
    except PetstoreError:
        with suppress(PetstoreError):
            await store.write(delete_import(import_id, key_id))
        raise
    return import_id


def begin_import(key_id: int, file: ImportFile, *, now: Milliseconds) -> Unit[int]:
    """Begin to store a file, and return the id of its import.

    A file of the key that was not stored as a whole makes room.

    Raises:
        Conflict: the key has ``MAX_IMPORTS`` that all have rows to add.
    """
    yield _lock_key(key_id)
    yield Statement(
        f"DELETE FROM console_imports WHERE key_id = ?1 AND NOT ({_STORED})",  # noqa: S608
        (key_id,),
        name="delete_unstored_console_imports",
        affects_pages=False,
    )
    yield from _least_needed(key_id)
    created = yield Statement(
        "INSERT INTO console_imports"
        " (key_id, digest, file, columns, delimiter, waiting, refused, created_at)"
        " VALUES (?1, ?2, ?3, ?4, ?5, 0, 0, ?6) /*pg RETURNING id */",
        (
            key_id,
            file.digest,
            file.name,
            _encode(file.columns).decode(),
            file.delimiter,
            now,
        ),
        gives_id=True,
        name="insert_console_import",
        affects_pages=False,
    )
    import_id: int = created[0][0]
    return import_id


def add_batch(
    import_id: int, key_id: int, *, now: Milliseconds, limit: int, strict_categories: bool
) -> Unit[ConsoleImport]:
    """Add at most ``limit`` pets of the next batch of an import; return the import as it is then.

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
    rows, others = _divided(_decode_rows(text), limit)
    waiting = sum(row.pet is not None for row in rows)
    still_waiting = sum(row.pet is not None for row in others)
    if strict_categories:
        rows = yield from _refuse_unknown(rows)
    created = yield from create_pets((row.pet for row in rows if row.pet is not None), now=now)
    refused = [row for row in rows if row.pet is None]
    yield Statement(
        "UPDATE console_import_batches SET waiting = ?1, refused = ?2, rows = ?3"
        " WHERE import_id = ?4 AND start = ?5",
        (
            still_waiting,
            len(refused) + len(others) - still_waiting,
            _encode(refused + others).decode(),
            import_id,
            start,
        ),
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
    sql = f"{_SELECT} WHERE id = ?1 AND key_id = ?2 AND {_STORED}"
    rows = await store.read(Statement(sql, (import_id, key_id), name="select_console_import"))
    return found(rows, _import_of, "import", import_id)


async def list_imports(store: Reader, key_id: int) -> list[ConsoleImport]:
    """Return the imports of a key, the newest first."""
    sql = f"{_SELECT} WHERE key_id = ?1 AND {_STORED} ORDER BY id DESC"
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
    return wanted, batches[0][0] + 1 if batches else start


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


def prune_imports(before: Milliseconds) -> Unit[int]:
    """Delete one import from before a moment, with its rows; return how many were deleted."""
    return prune_by_age("console_imports", "id", "created_at", before, 1)


def _add_rows(import_id: int, key_id: int, start: int, rows: Sequence[FileRow]) -> Unit[int]:
    """Store rows of a file, the first of which has the number ``start``; return their size.

    Raises:
        NotFound: the import is gone.
    """
    yield from _locked(import_id, key_id)
    refused = sum(row.pet is None for row in rows)
    encoded = _encode(rows)
    yield Statement(
        "INSERT INTO console_import_batches (import_id, start, waiting, refused, rows)"
        " VALUES (?1, ?2, ?3, ?4, ?5)",
        (import_id, start, len(rows) - refused, refused, encoded.decode()),
        name="insert_console_import_batch",
        affects_pages=False,
    )
    return len(encoded)


def _complete_import(import_id: int, key_id: int, digest: bytes) -> Unit[None]:
    """Show an import whose rows are all stored, in the place of one that is not needed any more.

    Raises:
        Conflict: the key has ``MAX_IMPORTS`` that all have rows to add.
        NotFound: the import is gone.
    """
    yield _lock_key(key_id)  # so two requests at once cannot both complete the last one
    yield from _locked(import_id, key_id)
    yield Statement(
        "DELETE FROM console_imports"  # noqa: S608 - only names
        f" WHERE key_id = ?1 AND digest = ?2 AND added = 0 AND {_STORED}",
        (key_id, digest),
        name="delete_same_console_import",
        affects_pages=False,
    )
    least_needed = yield from _least_needed(key_id)
    if least_needed is not None:
        yield _delete(least_needed)
    yield Statement(
        "UPDATE console_imports SET (waiting, refused) ="
        " (SELECT CAST(sum(waiting) AS BIGINT), CAST(sum(refused) AS BIGINT)"
        " FROM console_import_batches WHERE import_id = ?1) WHERE id = ?1",
        (import_id,),
        name="complete_console_import",
        affects_pages=False,
    )


async def _with_named_categories(
    store: Reader, file: ImportFile, rows: list[FileRow]
) -> list[FileRow]:
    """Return rows with the pets whose categories are names of registered ones, ignoring case."""
    cells = _cells_with_names(file, rows)
    ids = await ids_of_categories(store, {each["categoryId"] for each in cells.values()})
    return _named_rows(rows, cells, ids)


def _cells_with_names(file: ImportFile, rows: Sequence[FileRow]) -> dict[int, dict[str, str]]:
    """Return the cells of the rows whose category is no number, by their place in ``rows``."""
    found = {}
    for place, row in enumerate(rows):
        if row.reason.startswith("categoryId: "):
            values = cells_of(row.text, file.delimiter)
            cells = dict(zip(file.columns, values, strict=False))
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
