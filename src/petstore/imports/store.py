"""Imports in the database: the rows of a file, and how far they are."""

from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import msgspec
from msgspec import UNSET
from msgspec.structs import asdict

from petstore.categories.model import CategoryCreate
from petstore.categories.store import (
    create_category,
    id_of_category,
    ids_of_categories,
    list_categories,
    lock_categories,
)
from petstore.clock import Milliseconds, utc
from petstore.databases.contract import Reader, Row, Statement, Unit, Value, found, placeholder_list
from petstore.databases.pages import Page, read_page
from petstore.domain.decoding import integer_in
from petstore.domain.fields import INT64_MAX
from petstore.domain.names import name_key
from petstore.errors import CategoryNameTaken, ImportClosed, TooManyImports
from petstore.events.model import Author
from petstore.events.store import Change
from petstore.imports.columns import (
    Cells,
    ImportSettings,
    can_be_category,
    cells_of,
    pet_of,
    rows_below,
)
from petstore.imports.model import (
    MAX_LISTED,
    MAX_UNFINISHED,
    Import,
    ImportPreview,
    ImportState,
    KeptPet,
)
from petstore.imports.reading import ROWS_AT_ONCE, decode_rows
from petstore.imports.reading import Row as FileRow
from petstore.pets.model import NewPet, Pet
from petstore.pets.store import PETS_BY_WORD, create_pets, delete_untouched
from petstore.time_slices import TimeSlices

_encode = msgspec.json.Encoder().encode
_places_in = msgspec.json.Decoder(list[int]).decode
_pets_in = msgspec.json.Decoder(list[Pet]).decode
_kept_in = msgspec.json.Decoder(list[KeptPet]).decode
_settings_in = msgspec.json.Decoder(ImportSettings).decode
_preview_in = msgspec.json.Decoder(ImportPreview).decode


class StoredImport(NamedTuple):
    id: int
    caller_id: int
    file_name: str
    settings: ImportSettings
    preview: ImportPreview
    records: int
    start: int
    done: int
    created_at: Milliseconds
    added: int = 0
    deleted: int = 0
    kept: int = 0
    kept_pets: Sequence[KeptPet] = ()
    run_request: str | None = None
    undo_request: str | None = None

    @property
    def state(self) -> ImportState:
        if self.undo_request is not None:
            return "undone"
        if self.done == self.records:
            return "finished"
        return "open" if self.run_request is None else "running"

    @property
    def waiting(self) -> int:
        """How many rows, or pets of an undo, are still to be looked at."""
        if self.state == "undone":
            return self.added - self.deleted - self.kept
        return self.records - self.done

    @property
    def shown(self) -> Import:
        settings = asdict(self.settings)
        del settings["last_from"]
        return Import(
            id=self.id,
            file_name=self.file_name,
            state=self.state,
            rows=self.records - self.start,
            waiting=self.waiting,
            added=self.added,
            refused=self.done - self.start - self.added,
            deleted=self.deleted,
            kept=self.kept,
            kept_pets=[*self.kept_pets],
            has_header=self.settings.header_line is not UNSET,
            created_at=utc(self.created_at),
            preview=self.preview if self.state == "open" else UNSET,
            **settings,
        )


_COLUMNS = ", ".join(StoredImport._fields)
_SELECT = f"SELECT {_COLUMNS} FROM imports"  # noqa: S608 - only names
_OWN = "id = ?1 AND caller_id = ?2"


Batches: TypeAlias = AsyncIterator[tuple[list[FileRow], list[int]]]
"""The rows of an import by batches, and the places of those that were refused."""


class Prepared(NamedTuple):
    rows: list[Cells]
    categories: dict[str, int]


# Reading


async def get_import(reader: Reader, import_id: int, caller_id: int) -> StoredImport:
    rows = await reader.read(_sql("select_import", f"{_SELECT} WHERE {_OWN}", import_id, caller_id))
    return found(rows, _import_of, "import", import_id)


async def list_imports(
    reader: Reader, caller_id: int, before: int | None, limit: int
) -> Page[Import]:
    return await read_page(
        *(reader, "select_imports", _SELECT, {"caller_id": caller_id}, before, limit),
        lambda row: _import_of(row).shown,
        newest_first=True,
    )


async def read_batches(reader: Reader, import_id: int, at: int = 0) -> Batches:
    sql = "SELECT records, refused FROM import_batches WHERE import_id = ?1 AND first = ?2"
    first = at - at % ROWS_AT_ONCE
    while batches := await reader.read(_sql("select_import_batch", sql, import_id, first)):
        records, refused = batches[0]
        yield decode_rows(records), _places_in(refused)
        first += ROWS_AT_ONCE


async def read_batch(reader: Reader, import_id: int, at: int = 0) -> list[FileRow]:
    async for rows, _ in read_batches(reader, import_id, at):
        return rows
    return []


async def names_here(reader: Reader, names: Collection[str]) -> set[str]:
    """Return which of the terms of whole names pets in the store have."""
    if not names:
        return set()
    values = ", ".join(f"(?{number})" for number in range(1, len(names) + 1))
    sql = (
        f"SELECT column1 FROM (VALUES {values}) AS names"  # noqa: S608 - only numbers
        " WHERE EXISTS (SELECT 1 FROM pet_words WHERE"
        f" /*sqlite*/ {PETS_BY_WORD.matches('column1')} /*end*/ /*pg term = column1 */)"
    )
    return {row[0] for row in await reader.read(_sql("select_names_here", sql, *names))}


async def find_categories(reader: Reader, rows: Iterable[Cells]) -> dict[str, int]:
    """Return the ids of the registered categories of a batch, by ``name_key``."""
    words = {row.category for row in rows} - {""}
    numbers = {word: number for word in words if (number := integer_in(word)) is not None}
    ids = await ids_of_categories(reader, {*map(name_key, words - numbers.keys())})
    if some := [number for number in numbers.values() if abs(number) <= INT64_MAX]:
        page = await list_categories(reader, None, len(some), some)
        ids |= {str(each.id): each.id for each in page.items}
    return ids


async def judge_now(
    reader: Reader, rows: Sequence[Cells], settings: ImportSettings, known: Mapping[str, int]
) -> list[NewPet | list[str]]:
    """Return what a run would do with each row now: its pet, or every reason that it has none."""
    ids = settings.category_ids(known)
    if settings.unknown_categories == "create":
        ids |= dict.fromkeys(new_categories(rows, ids), 0)
    return _judge(rows, settings, ids, await reader.read(_select_here(rows)))


def _judge(
    rows: Iterable[Cells], settings: ImportSettings, ids: dict[str, int], here: Sequence[Row]
) -> list[NewPet | list[str]]:
    choices, judged = settings.choices(ids), list[NewPet | list[str]]()
    ids_here = {each[0] for each in here}
    for row in rows:
        pet = pet_of(row, choices)
        if row.id in ids_here:
            others = [] if isinstance(pet, NewPet) else pet
            pet = [f"It is already in the store, as pet {row.id}.", *others]
        judged.append(pet)
    return judged


async def prepare(reader: Reader, present: StoredImport) -> Prepared:
    """Return the next rows of an import, up to the end of their batch."""
    batch = await read_batch(reader, present.id, present.done)
    rows = cells_of(batch[present.done % ROWS_AT_ONCE :], present.settings)
    return Prepared(rows, await find_categories(reader, rows))


async def refused_rows(
    reader: Reader, present: StoredImport
) -> AsyncIterator[tuple[FileRow, list[str]]]:
    """Yield each row that is or would be refused, and every reason that holds now."""
    slices, settings = TimeSlices(), present.settings
    is_open = present.state == "open"
    async for batch, places in read_batches(reader, present.id):
        rows = rows_below(batch, settings) if is_open else [batch[place] for place in places]
        cells = cells_of(rows, settings)
        judged = await judge_now(reader, cells, settings, await find_categories(reader, cells))
        for row, pet in zip(rows, judged, strict=True):
            await slices.rest()
            if not isinstance(pet, NewPet):
                yield row, pet
            elif not is_open:
                yield row, ["Nothing is wrong with it now: send it again."]


async def count_next_pets(reader: Reader, import_id: int) -> int:
    """Return how many pets an undo can look at in one unit of work."""
    rows = await reader.read(_next_pets(import_id))
    return len(_pets_in(rows[0][1])) if rows else 0


# Changes


def find_same(caller_id: int, digest: bytes) -> Unit[StoredImport | None]:
    """Lock the caller and return their import of a file; raise ``TooManyImports`` if full."""
    lock = "SELECT id FROM callers WHERE id = ?1 /*pg FOR NO KEY UPDATE */"
    yield _sql("lock_key", lock, caller_id)
    sql = f"{_SELECT} WHERE caller_id = ?1 AND digest = ?2 ORDER BY id DESC LIMIT 1"
    rows = yield _sql("select_import_of_file", sql, caller_id, digest)
    same = _import_of(rows[0]) if rows else None
    if same is None or same.undo_request is not None:
        sql = "SELECT count(*) FROM imports WHERE caller_id = ?1 AND done < records"
        sql += " AND undo_request IS NULL"
        ((count,),) = yield _sql("count_unfinished_imports", sql, caller_id)
        if count >= MAX_UNFINISHED:
            msg = f"you have {count} unfinished imports, the maximum; run or delete one first"
            raise TooManyImports(msg)
    return same


def create_import(new: StoredImport, digest: bytes, batches: Iterable[bytes]) -> Unit[StoredImport]:
    """Store a file and its rows, JSON; if the caller has it, return the import that it has."""
    same = yield from find_same(new.caller_id, digest)
    if same is not None and same.undo_request is None:
        return same
    rows = yield _sql(
        "insert_import",
        "INSERT INTO imports (caller_id, digest, file_name, settings, preview, records, start,"
        " done, created_at, touched_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7, ?8, ?8)"
        " RETURNING id",
        *(new.caller_id, digest, new.file_name, _json(new.settings)),
        *(_json(new.preview), new.records, new.start, new.created_at),
    )
    created = new._replace(id=rows[0][0])
    for number, batch in enumerate(batches):
        sql = "INSERT INTO import_batches (import_id, first, records) VALUES (?1, ?2, ?3)"
        first = number * ROWS_AT_ONCE
        yield _sql("insert_import_batch", sql, created.id, first, batch.decode())
    return created


def current(import_id: int, caller_id: int) -> Unit[StoredImport]:
    sql = f"{_SELECT} WHERE {_OWN} /*pg FOR UPDATE */"
    rows = yield _sql("lock_import", sql, import_id, caller_id)
    return found(rows, _import_of, "import", import_id)


def change_settings(
    present: StoredImport,
    settings: ImportSettings,
    start: int,
    preview: ImportPreview,
    now: Milliseconds,
    check: Callable[[Import], None],
) -> Unit[StoredImport]:
    """Change how a file is read, while nothing is added; else raise ``ImportClosed``."""
    present = yield from current(present.id, present.caller_id)
    check(present.shown)
    if present.state != "open":
        msg = f"import {present.id} is {present.state}: its settings can no longer change"
        raise ImportClosed(msg)
    rows = yield _sql(
        "update_import_settings",
        "UPDATE imports SET settings = ?1, preview = ?2, start = ?3, done = ?3, touched_at = ?4"  # noqa: S608
        f" WHERE id = ?5 RETURNING {_COLUMNS}",
        *(_json(settings), _json(preview), start, now, present.id),
    )
    return _import_of(rows[0])


def add_rows(
    present: StoredImport, prepared: Prepared, count: int, *, now: Milliseconds, by: Author
) -> Unit[StoredImport]:
    """Add the next ``count`` rows, unless another request has; return the import."""
    locked = yield from current(present.id, present.caller_id)
    if locked.undo_request is not None or locked[:8] != present[:8]:
        return locked
    settings, rows = locked.settings, prepared.rows[:count]
    ids = settings.category_ids(prepared.categories)
    by = by._replace(request_id=locked.run_request or by.request_id)
    if settings.unknown_categories == "create":
        for key, word in new_categories(rows, ids).items():
            try:
                ids[key] = (yield from create_category(Change(now, by), CategoryCreate(word))).id
            except CategoryNameTaken:  # just now
                ids[key] = yield from id_of_category(word)
    judged = _judge(rows, settings, ids, (yield _select_here(rows)))
    wanted = {pet.category_id for pet in judged if isinstance(pet, NewPet)}
    registered = yield from lock_categories(wanted)
    news = [
        pet if isinstance(pet, NewPet) and pet.category_id in registered else None for pet in judged
    ]
    created = yield from create_pets(Change(now, by), [pet for pet in news if pet is not None])
    done = locked.done % ROWS_AT_ONCE
    batch = locked.id, locked.done - done
    sql = "SELECT refused, pets FROM import_batches WHERE import_id = ?1 AND first = ?2"
    ((refused, pets),) = yield _sql("select_import_outcome", sql, *batch)
    places = [done + place for place, pet in enumerate(news) if pet is None]
    yield _sql(
        "update_import_batch",
        "UPDATE import_batches SET refused = ?3, pets = ?4 WHERE import_id = ?1 AND first = ?2",
        *(*batch, _json(_places_in(refused) + places), _json(_pets_in(pets) + created)),
    )
    changed = yield _sql(
        "update_import",
        "UPDATE imports SET done = done + ?1, added = added + ?2, run_request = ?3,"  # noqa: S608
        f" touched_at = ?4 WHERE id = ?5 RETURNING {_COLUMNS}",
        *(len(rows), len(created), by.request_id or "", now, locked.id),
    )
    return _import_of(changed[0])


def undo_rows(
    present: StoredImport, count: int, *, now: Milliseconds, by: Author
) -> Unit[StoredImport]:
    """Delete at most ``count`` added pets that are as they were; no more rows are added."""
    locked = yield from current(present.id, present.caller_id)
    by = by._replace(request_id=locked.undo_request or by.request_id)
    batches = yield _next_pets(locked.id)
    pets = _pets_in(batches[0][1]) if batches else []
    some = pets[:count]
    kept = (yield from delete_untouched(Change(now, by), some)) if some else {}
    if batches:
        sql = "UPDATE import_batches SET pets = ?1 WHERE import_id = ?2 AND first = ?3"
        yield _sql("update_undone_batch", sql, _json(pets[count:]), locked.id, batches[0][0])
    named = [KeptPet(pet.id, pet.name, kept[pet.id]) for pet in some if pet.id in kept]
    changed = yield _sql(
        "update_undone_import",
        "UPDATE imports SET deleted = deleted + ?1, kept = kept + ?2, kept_pets = ?3,"  # noqa: S608
        f" undo_request = ?4, touched_at = ?5 WHERE id = ?6 RETURNING {_COLUMNS}",
        *(len(some) - len(kept), len(kept), _json([*locked.kept_pets, *named][:MAX_LISTED])),
        *(by.request_id or "", now, locked.id),
    )
    return _import_of(changed[0])


def delete_import(change: Change, import_id: int) -> Unit[None]:
    assert change.caller is not None  # noqa: S101 - each import belongs to one
    present = yield from current(import_id, change.caller.id)
    change.check(present.shown)
    yield _sql("delete_import", "DELETE FROM imports WHERE id = ?1", import_id)


def new_categories(rows: Iterable[Cells], ids: Collection[str]) -> dict[str, str]:
    """Return the words that can be categories and are not in ``ids``, by ``name_key``."""
    words: dict[str, str] = {}
    for row in rows:
        key = name_key(row.category)
        if row.may_be_pet and key not in ids and key not in words and can_be_category(row.category):
            words[key] = row.category
    return words


def _select_here(rows: Iterable[Cells]) -> Statement:
    ids = [row.id for row in rows if row.id is not None and abs(row.id) <= INT64_MAX]
    sql = f"SELECT id FROM pets WHERE id IN ({placeholder_list(1, ids)})"  # noqa: S608
    return _sql("select_pets_here", sql, *ids)


def _next_pets(import_id: int) -> Statement:
    sql = "SELECT first, pets FROM import_batches WHERE import_id = ?1 AND pets <> '[]'"
    return _sql("select_import_pets", f"{sql} ORDER BY first LIMIT 1", import_id)


def _sql(name: str, sql: str, *parameters: Value) -> Statement:
    return Statement(sql, parameters, name=name)


def _json(value: object) -> str:
    return _encode(value).decode()


def _import_of(row: Row) -> StoredImport:
    stored = StoredImport(*row)
    return stored._replace(
        settings=_settings_in(row[3]), preview=_preview_in(row[4]), kept_pets=_kept_in(row[12])
    )
