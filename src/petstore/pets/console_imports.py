"""Imports of the console: the rows of a file that a person sent, added in batches.

All the rows are in the database from the start (``import_preparation.py``). A unit of work takes
the next batch, adds its pets and notes the progress, so nothing is added twice or lost, even if
several requests run units of the same import at once, and wherever they stop.

The rows of a file are stored in batches too: a unit for all of them would keep others waiting. An
import without any row is still being stored, and nobody sees it.

Rows of a category that there is not wait among the refused ones until somebody decides about it.
"""

from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from petstore.clock import Milliseconds
from petstore.databases import schema
from petstore.databases.contract import Reader, Row, Statement, Unit, Value
from petstore.databases.pages import found
from petstore.domain.decoding import integer_in
from petstore.domain.names import name_key
from petstore.errors import Conflict
from petstore.events.model import SERVICE, Author
from petstore.pets.columns import Columns
from petstore.pets.files import CsvLayout, FileRow
from petstore.pets.imports import pets_of, refuse_unknown
from petstore.pets.model import NewPet, Pet
from petstore.pets.rows import NameKeys
from petstore.pets.store import create_pets

MAX_IMPORTS = 5
"""How many imports a key has; the oldest that has nothing to add makes room for a new one."""

IMPORTS_KEPT = schema.IMPORTS_KEPT

MAX_ROWS = 20_000
"""How many rows a file may have."""

ROWS_AT_ONCE = 100
"""How many pets a unit of work adds: the event loop is busy for some milliseconds with them."""

UNDECIDED = "categoryId: not decided"
"""The reason of a row that waits until somebody decides about its category."""

_LEFT_OUT = "categoryId: left out, because there was no such category"
_MAX_FILE_NAME = 200
_COLUMNS = (
    "id, digest, file, columns, fields, delimiter, undecided, waiting, added, refused, first_id,"
    " last_id, created_at, finished_at, undoable, undone, stayed"
)
_STORED = "waiting + added + refused > 0"
_SELECT = f"SELECT {_COLUMNS} FROM console_imports"  # noqa: S608 - only names

_encode = msgspec.json.Encoder().encode
_decode_rows = msgspec.json.Decoder(list[FileRow]).decode
_decode_texts = msgspec.json.Decoder(list[str]).decode


class UndecidedCategory(NamedTuple):
    """A category that some rows have, and that there is not: its name or number, as in the file."""

    text: str
    rows: int

    @property
    def is_name(self) -> bool:
        """Whether it is a name."""
        return integer_in(self.text) is None

    @property
    def key(self) -> str:
        """What is the same for each text that means the category."""
        return category_key(self.text)


_decode_pets = msgspec.json.Decoder(list[Pet]).decode
_decode_undecided = msgspec.json.Decoder(list[UndecidedCategory]).decode


class ConsoleImport(NamedTuple):
    """An import of a key.

    ``waiting`` animals are still to be added, and ``others`` are rows that cannot be, or not yet:
    those of ``undecided`` categories are among them. The ids of the ``added`` animals are from
    ``first_id`` to ``last_id``; somebody else may have ids in between.

    An undo has deleted ``undone`` of them, and left ``stayed``. It can still look at ``undoable``.
    """

    id: int
    digest: bytes
    file: str
    layout: CsvLayout
    undecided: Sequence[UndecidedCategory]
    waiting: int
    added: int
    others: int
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
        return self.waiting + self.added + self.others

    @property
    def has_columns(self) -> bool:
        """Whether it is known which columns are the fields; else somebody chooses them."""
        return any(self.layout.columns.fields)

    @property
    def refused(self) -> int:
        """How many rows are refused."""
        undecided = sum(category.rows for category in self.undecided)
        return self.others - undecided if self.has_columns else 0

    @property
    def is_open(self) -> bool:
        """Whether animals may still be added, perhaps after a decision about their category."""
        return bool(self.waiting or self.undecided)


def category_key(text: str) -> str:
    """Return what is the same for each text of a cell that means a category."""
    number = integer_in(text)
    return name_key(text) if number is None else str(number)


def begin_import(
    key_id: int, name: str, digest: bytes, layout: CsvLayout, *, now: Milliseconds
) -> Unit[int]:
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
    yield from _least_needed(key_id, digest)
    created = yield _change(
        "insert_console_import",
        "INSERT INTO console_imports"
        " (key_id, digest, file, columns, fields, delimiter, waiting, refused, created_at)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, 0, ?7) RETURNING id",
        key_id,
        digest,
        name.replace("\0", "")[-_MAX_FILE_NAME:],
        _encode(layout.columns.names).decode(),
        _encode(layout.columns.fields).decode(),
        layout.delimiter,
        now,
    )
    import_id: int = created[0][0]
    return import_id


def add_rows(import_id: int, key_id: int, start: int, rows: list[FileRow]) -> Unit[int]:
    """Store rows of a file, the first of which has the number ``start``; return their size.

    Raises:
        NotFound: the import is gone.
    """
    yield from locked_import(import_id, key_id)
    waiting, encoded = len(pets_of(rows)), _encode(rows)
    yield _change(
        "insert_console_import_batch",
        "INSERT INTO console_import_batches (import_id, start, waiting, refused, rows)"
        " VALUES (?1, ?2, ?3, ?4, ?5)",
        *(import_id, start, waiting, len(rows) - waiting, encoded.decode()),
    )
    return len(encoded)


def complete_import(
    import_id: int, key_id: int, digest: bytes, undecided: Sequence[UndecidedCategory]
) -> Unit[None]:
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
    least_needed = yield from _least_needed(key_id, digest)
    if least_needed is not None:
        yield _delete(least_needed)
    yield _change(
        "complete_console_import",
        "UPDATE console_imports SET undecided = ?2, (waiting, refused) ="
        " (SELECT CAST(sum(waiting) AS BIGINT), CAST(sum(refused) AS BIGINT)"
        " FROM console_import_batches WHERE import_id = ?1) WHERE id = ?1",
        *(import_id, _encode(undecided).decode()),
    )


def add_batch(
    import_id: int,
    key_id: int,
    *,
    now: Milliseconds,
    limit: int,
    by: Author = SERVICE,
    known: Mapping[str, NameKeys] | None = None,
) -> Unit[ConsoleImport]:
    """Add at most ``limit`` pets of the next batch of an import; return the import as it is then.

    ``known`` is what ``create_pets`` gets. A pet whose category was deleted meanwhile is refused.
    Nothing happens if the import is finished.

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
    rows = yield from refuse_unknown(rows)
    created = yield from create_pets(pets_of(rows), now=now, by=by, known=known)
    refused = [row for row in rows if row.pet is None]
    yield _update_batch(import_id, start, refused + others, _decode_pets(added) + created)
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
        None if left or present.undecided else now,
        import_id,
        len(ids),
    )
    return _import_of(changed[0])


async def batches_of_others(store: Reader, import_id: int) -> list[int]:
    """Return the first rows of the batches that have rows which are not waiting."""
    starts = await store.read(
        Statement(
            "SELECT start FROM console_import_batches WHERE import_id = ?1 AND refused > 0"
            " ORDER BY start",
            (import_id,),
            name="select_console_import_batches",
        )
    )
    return [start for (start,) in starts]


def decide_batch(
    import_id: int,
    key_id: int,
    start: int,
    decisions: Mapping[str, int | None],
    *,
    now: Milliseconds,
) -> Unit[None]:
    """Give rows of a batch the categories that somebody decided on, or refuse them.

    ``decisions`` has the ids of categories by the keys of undecided ones, and ``None`` for those
    whose rows are left out.

    Raises:
        NotFound: the key has no such import.
    """
    present = yield from locked_import(import_id, key_id)
    if not present.undecided:  # somebody has decided, or stopped it
        return
    ((text, added),) = yield Statement(
        "SELECT rows, added FROM console_import_batches WHERE import_id = ?1 AND start = ?2",
        (import_id, start),
        name="select_console_import_rows",
    )
    rows, decided = _decode_rows(text), Counter[str]()
    waiting = -len(pets_of(rows))
    for place, row in enumerate(rows):
        key = category_key(present.layout.category_of(row)) if row.reason == UNDECIDED else ""
        if key in decisions:
            category_id = decisions[key]
            rows[place] = (
                row.refused(_LEFT_OUT)
                if category_id is None
                else present.layout.with_category(row, category_id)
            )
            decided[key] += 1
    waiting += len(pets_of(rows))
    yield _update_batch(import_id, start, rows, _decode_pets(added))
    left = [each._replace(rows=each.rows - decided[each.key]) for each in present.undecided]
    undecided = [each for each in left if each.rows > 0]
    is_open = present.waiting + waiting or undecided or not present.added
    yield _change(
        "decide_console_import",
        "UPDATE console_imports SET waiting = waiting + ?1, refused = refused - ?1,"
        " undecided = ?2, finished_at = ?3 WHERE id = ?4",
        *(waiting, _encode(undecided).decode(), None if is_open else now, import_id),
    )


def stop_import(import_id: int, key_id: int, *, now: Milliseconds) -> Unit[ConsoleImport]:
    """Add no more rows of an import, and return it as it was. It is deleted if it added nothing.

    Raises:
        NotFound: the key has no such import.
    """
    present = yield from locked_import(import_id, key_id)
    if not present.added:
        yield _delete(import_id)
    elif present.is_open:
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
        "UPDATE console_imports SET waiting = 0, undecided = ?1, finished_at = ?2 WHERE id = ?3",
        *(_encode([]).decode(), now, import_id),
    )


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
    async for batch in read_batches(store, import_id, f"{kind} > 0"):
        rows = [row for row in batch if (row.pet is None) == (kind == "refused")]
        rows = [row for row in rows if row.reason != UNDECIDED][:limit]
        for row in rows:
            yield row
        limit -= len(rows)
        if not limit:
            return


async def read_batches(
    store: Reader, import_id: int, condition: str = "TRUE"
) -> AsyncIterator[list[FileRow]]:
    """Yield the rows of those batches that meet a ``condition`` on their counts."""
    start = -1
    sql = (
        "SELECT start, rows FROM console_import_batches"  # noqa: S608 - only names
        f" WHERE import_id = ?1 AND start > ?2 AND {condition} ORDER BY start LIMIT 1"
    )
    while batches := await store.read(
        Statement(sql, (import_id, start), name="select_console_import_batch")
    ):
        start, text = batches[0]
        yield _decode_rows(text)


async def next_pets(store: Reader, import_id: int) -> list[NewPet]:
    """Return the pets of the batch from which ``add_batch`` takes the next ones."""
    async for batch in read_batches(store, import_id, "waiting > 0"):
        return pets_of(batch)
    return []


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


def _least_needed(key_id: int, digest: bytes) -> Unit[int | None]:
    """Return the import that makes room for a file, ``None`` if there is room.

    An import of the same file that has added nothing is replaced, and takes no room.

    Raises:
        Conflict: there is none.
    """
    sql = f"{_SELECT} WHERE key_id = ?1 AND {_STORED} ORDER BY id"
    rows = yield Statement(sql, (key_id,), name="select_console_imports")
    imports = [each for each in map(_import_of, rows) if each.added or each.digest != digest]
    if len(imports) < MAX_IMPORTS:
        return None
    for each in imports:
        if not each.is_open:  # finished, or without a row that could be added
            return each.id
    msg = f"you have {MAX_IMPORTS} imports that are not finished; finish or discard one first"
    raise Conflict(msg)


def locked_import(import_id: int, key_id: int) -> Unit[ConsoleImport]:
    """Return an import of a key, and lock its row: batches follow one another."""
    sql = f"{_SELECT} WHERE id = ?1 AND key_id = ?2 /*pg FOR UPDATE */"
    rows = yield Statement(sql, (import_id, key_id), name="lock_console_import")
    return found(rows, _import_of, "import", import_id)


def _update_batch(import_id: int, start: int, rows: list[FileRow], added: list[Pet]) -> Statement:
    """Return what stores the rows of a batch that are left, and the pets that it has added."""
    waiting = len(pets_of(rows))
    return _change(
        "update_console_import_batch",
        "UPDATE console_import_batches SET waiting = ?1, refused = ?2, rows = ?3, added = ?4"
        " WHERE import_id = ?5 AND start = ?6",
        *(waiting, len(rows) - waiting, _encode(rows).decode()),
        *(_encode(added).decode(), import_id, start),
    )


def _delete(import_id: int) -> Statement:
    return _change("delete_console_import", "DELETE FROM console_imports WHERE id = ?1", import_id)


def _change(name: str, sql: str, *parameters: Value) -> Statement:
    """Return a statement that changes imports: no page of a list shows them."""
    return Statement(sql, parameters, name=name)


def _import_of(row: Row) -> ConsoleImport:
    import_id, digest, file, columns, fields, delimiter, undecided, *rest = row
    names = _decode_texts(columns)
    layout = CsvLayout(Columns(names, _decode_texts(fields)), delimiter)
    return ConsoleImport(import_id, digest, file, layout, _decode_undecided(undecided), *rest)
