"""Imports in the database: the rows of a file, and how far they are.

All rows are there before the first one is added. A unit of work adds some pets and notes how far
it is, so that kills lose and double nothing, and neither do two runs at once.
"""

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from typing import NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from petstore.categories.model import CategoryCreate
from petstore.categories.store import (
    create_category,
    id_of_category,
    ids_of_categories,
    lock_categories,
    names_of_categories,
)
from petstore.clock import HOUR, Milliseconds, utc
from petstore.databases.contract import Reader, Row, Statement, T, Unit, Value, placeholder_list
from petstore.databases.pages import LAST_ID, Page, found
from petstore.domain.decoding import convert, integer_in
from petstore.domain.fields import INT64_MAX
from petstore.domain.names import name_key
from petstore.domain.words import NameKeys, keys_of_each
from petstore.errors import CategoryNameTaken, ImportClosed, InvalidBody, TooManyImports
from petstore.events.model import Author
from petstore.events.store import Change
from petstore.imports.columns import Layout, Words, id_of_row, pet_of_row
from petstore.imports.model import (
    MAX_LISTED,
    MAX_UNFINISHED,
    ROWS_AT_ONCE,
    Import,
    ImportPreview,
    ImportSettings,
    ImportState,
    KeptPet,
    shown_name,
)
from petstore.imports.reading import Row as FileRow
from petstore.pets.model import NewPet, Pet
from petstore.pets.store import create_pets, delete_untouched
from petstore.time_slices import TimeSlices

_COLUMNS = (
    "id, file_name, settings, found, records, start, done, added, deleted, kept, kept_pets,"
    " run_request, undo_request, created_at"
)
_SELECT = f"SELECT {_COLUMNS} FROM imports"  # noqa: S608 - only names
_OWN = "id = ?1 AND caller_id = ?2 AND records > 0"
_UNFINISHED = "done < records AND undo_request IS NULL"
_LEFT_BEHIND: Milliseconds = HOUR
_LONGEST = 255

_encode = msgspec.json.Encoder().encode
_rows_in = msgspec.json.Decoder(list[FileRow]).decode
_places_in = msgspec.json.Decoder(list[int]).decode
_pets_in = msgspec.json.Decoder(list[Pet]).decode
_kept_in = msgspec.json.Decoder(list[KeptPet]).decode
_settings_in = msgspec.json.Decoder(ImportSettings).decode
_preview_in = msgspec.json.Decoder(ImportPreview).decode


class StoredImport(NamedTuple):
    """An import as it is in the database."""

    id: int
    file_name: str
    settings: ImportSettings
    preview: ImportPreview
    records: int
    start: int
    done: int
    added: int
    deleted: int
    kept: int
    kept_pets: list[KeptPet]
    run_request: str | None
    undo_request: str | None
    created_at: Milliseconds

    @property
    def state(self) -> ImportState:
        """What can be done with it."""
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
        """The import as the interface has it."""
        settings, layout = self.settings, self.settings.layout
        return Import(
            id=self.id,
            file_name=self.file_name,
            encoding=settings.encoding,
            state=self.state,
            rows=self.records - self.start,
            waiting=self.waiting,
            added=self.added,
            refused=self.done - self.start - self.added,
            deleted=self.deleted,
            kept=self.kept,
            kept_pets=self.kept_pets,
            columns=layout.columns,
            has_header=layout.header_line is not None,
            header_line=_given(layout.header_line),
            mapping=layout.mapping,
            default_status=_given(settings.default_status),
            default_category_id=_given(settings.default_category),
            unknown_categories=settings.unknown_categories,
            values=settings.values,
            notes=settings.notes,
            created_at=utc(self.created_at),
            preview=self.preview if self.state == "open" else UNSET,
        )


class Prepared(NamedTuple):
    """The next rows of an import, with what is known of them before a unit of work adds them."""

    rows: list[FileRow]
    categories: dict[str, int]
    names: Mapping[str, NameKeys]


def _given(value: T | None) -> T | UnsetType:
    return UNSET if value is None else value


class CategoryIds:
    """The ids of registered categories by ``name_key``, of names and of numbers."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.known: dict[str, int] = {}

    async def find(self, rows: Sequence[FileRow], layout: Layout) -> dict[str, int]:
        """Return the ids of those categories of rows that are registered, and perhaps of others."""
        ids, place = self.known, layout.mapping.category_id
        cells = (row.cells[place] for row in rows if place is not UNSET and place < len(row.cells))
        words = {" ".join(cell.splitlines()) for cell in cells}
        new = [word for word in words if word and name_key(word) not in ids]
        names = [word for word in new if integer_in(word) is None]
        for name, number in (await ids_of_categories(self._reader, names)).items():
            ids[name_key(name)] = number
        numbers = {integer_in(word) for word in new}
        some = {each for each in numbers if each is not None and abs(each) <= INT64_MAX}
        registered = await names_of_categories(self._reader, some)
        ids |= {str(each): each for each in registered}
        return dict(ids)


# A file on its way into the database


def begin(
    caller_id: int, digest: bytes, file_name: str, settings: ImportSettings, now: Milliseconds
) -> Unit[int]:
    """Begin to store a file, and return the id of its import. Nobody sees it before ``complete``.

    Raises:
        TooManyImports: the caller has ``MAX_UNFINISHED``.
    """
    yield _lock_caller(caller_id)
    yield _change(
        "delete_unstored_imports",
        f"DELETE FROM imports WHERE caller_id = ?1 AND records = 0 AND {_UNFINISHED}"  # noqa: S608
        " AND touched_at < ?2",
        *(caller_id, now - _LEFT_BEHIND),
    )
    _require_room((yield _count_unfinished(caller_id)))
    rows = yield _change(
        "insert_import",
        "INSERT INTO imports (caller_id, digest, file_name, settings, done, created_at, touched_at)"
        " VALUES (?1, ?2, ?3, ?4, -1, ?5, ?5) RETURNING id",
        *(caller_id, digest, shown_name(file_name), _encode(settings).decode(), now),
    )
    import_id: int = rows[0][0]
    return import_id


def _count_unfinished(caller_id: int) -> Statement:
    return Statement(
        f"SELECT count(*) FROM imports WHERE caller_id = ?1 AND {_UNFINISHED}",  # noqa: S608
        (caller_id,),
        name="count_unfinished_imports",
    )


def _require_room(counts: Sequence[Row]) -> None:
    if counts[0][0] >= MAX_UNFINISHED:
        msg = f"you have {MAX_UNFINISHED} unfinished imports, the maximum; run or delete one first"
        raise TooManyImports(msg)


def add_batches(import_id: int, first: int, rows: Sequence[FileRow]) -> Unit[None]:
    """Store rows of a file, the first of which has this number."""
    for start in range(0, len(rows), ROWS_AT_ONCE):
        some = _encode(rows[start : start + ROWS_AT_ONCE]).decode()
        yield _change(
            "insert_import_batch",
            "INSERT INTO import_batches (import_id, first, records) VALUES (?1, ?2, ?3)",
            *(import_id, first + start, some),
        )


def complete(
    import_id: int, caller_id: int, records: int, start: int, preview: ImportPreview
) -> Unit[StoredImport]:
    """Show an import whose rows are all stored; one of the same file is returned in its place."""
    yield _lock_caller(caller_id)  # so of two requests at once, the second sees the first
    same = yield Statement(
        f"{_SELECT} WHERE caller_id = ?2 AND records > 0 AND undo_request IS NULL"  # noqa: S608
        " AND digest = (SELECT digest FROM imports WHERE id = ?1) ORDER BY id LIMIT 1",
        (import_id, caller_id),
        name="select_same_import",
    )
    if same:
        yield from discard(import_id)
        return _import_of(same[0])
    rows = yield _change(
        "complete_import",
        "UPDATE imports SET records = ?1, start = ?2, done = ?2, found = ?3 WHERE id = ?4"  # noqa: S608
        f" RETURNING {_COLUMNS}",
        *(records, start, _encode(preview).decode(), import_id),
    )
    return _import_of(rows[0])


def discard(import_id: int) -> Unit[None]:
    """Delete an import with its rows."""
    yield _change("delete_import", "DELETE FROM imports WHERE id = ?1", import_id)


# Reading


async def find_same(reader: Reader, caller_id: int, digest: bytes) -> StoredImport | None:
    """Return the import of the same file that the caller has and has not undone.

    Raises:
        TooManyImports: there is none, and the caller has ``MAX_UNFINISHED``.
    """
    rows = await reader.read(
        Statement(
            f"{_SELECT} WHERE caller_id = ?1 AND digest = ?2 AND records > 0"
            " AND undo_request IS NULL ORDER BY id LIMIT 1",
            (caller_id, digest),
            name="select_import_of_file",
        )
    )
    if rows:
        return _import_of(rows[0])
    _require_room(await reader.read(_count_unfinished(caller_id)))
    return None


async def get_import(reader: Reader, import_id: int, caller_id: int) -> StoredImport:
    """Return an import of a caller, or raise ``NotFound``."""
    sql = f"{_SELECT} WHERE {_OWN}"
    rows = await reader.read(Statement(sql, (import_id, caller_id), name="select_import"))
    return found(rows, _import_of, "import", import_id)


async def list_imports(
    reader: Reader, caller_id: int, before: int | None, limit: int
) -> Page[Import]:
    """Return the last ``limit`` imports of a caller with an id below ``before``, newest first."""
    rows = await reader.read(
        Statement(
            f"{_SELECT} WHERE caller_id = ?1 AND id < ?2 AND records > 0 ORDER BY id DESC LIMIT ?3",
            (caller_id, LAST_ID if before is None else before, limit + 1),
            name="select_imports",
        )
    )
    imports = [_import_of(row).shown for row in rows[:limit]]
    return Page(imports, imports[-1].id if len(rows) > limit else None)


async def read_batches(
    reader: Reader, import_id: int, at: int = 0
) -> AsyncIterator[tuple[int, list[FileRow], list[int]]]:
    """Yield the batches of an import: the number of the first row, the rows, and those refused."""
    first = at - at % ROWS_AT_ONCE - 1
    while batches := await reader.read(
        Statement(
            "SELECT first, records, refused FROM import_batches"
            " WHERE import_id = ?1 AND first > ?2 ORDER BY first LIMIT 1",
            (import_id, first),
            name="select_import_batch",
        )
    ):
        first, records, refused = batches[0]
        yield first, _rows_in(records), _places_in(refused)


async def names_here(reader: Reader, names: Collection[str]) -> set[str]:
    """Return those of the search keys of names that pets in the store have."""
    if not names:
        return set()
    values = ", ".join(f"(?{number})" for number in range(1, len(names) + 1))
    rows = await reader.read(
        Statement(
            f"SELECT column1 FROM (VALUES {values}) AS names"  # noqa: S608 - only numbers
            " WHERE EXISTS (SELECT 1 FROM pets WHERE name_key = column1)",
            tuple(names),
            name="select_names_here",
        )
    )
    return {row[0] for row in rows}


async def judge_now(
    reader: Reader, rows: Sequence[FileRow], settings: ImportSettings, categories: CategoryIds
) -> list[NewPet | list[str]]:
    """Return what a run would do with each row now: its pet, or every reason that it has none."""
    ids = await categories.find(rows, settings.layout)
    if settings.unknown_categories == "create":
        words = Words().count(rows, settings.layout).categories
        ids |= {name_key(word): 0 for word in words if can_create(word, ids)}
    select = _select_here(rows, settings)
    here = set() if select is None else {row[0] for row in await reader.read(select)}
    return judge(rows, settings, ids, here)


def judge(
    rows: Sequence[FileRow],
    settings: ImportSettings,
    categories: dict[str, int],
    here: Collection[int],
) -> list[NewPet | list[str]]:
    """Return the pet of each row, or every reason that it has none."""
    choices, layout = settings.choices(categories), settings.layout
    judged: list[NewPet | list[str]] = []
    for row in rows:
        pet, row_id = pet_of_row(row, layout, choices), id_of_row(row, layout)
        if row_id is not None and row_id in here:
            others = [] if isinstance(pet, NewPet) else pet
            pet = [f"It is already in the store, as pet {row_id}.", *others]
        judged.append(pet)
    return judged


async def prepare(reader: Reader, present: StoredImport, categories: CategoryIds) -> Prepared:
    """Return the next rows of an import, up to the end of their batch."""
    layout = present.settings.layout
    async for first, rows, _ in read_batches(reader, present.id, present.done):
        following = rows[present.done - first :]
        ids = await categories.find(following, layout)
        place = layout.mapping.name
        cells = [] if place is UNSET else [row.cells[place : place + 1] for row in following]
        names = await keys_of_each(text for each in cells for text in each if len(text) <= _LONGEST)
        return Prepared(following, ids, names)
    return Prepared([], {}, {})


async def refused_rows(
    reader: Reader, present: StoredImport
) -> AsyncIterator[tuple[FileRow, list[str]]]:
    """Yield each refused row, and every reason that holds now.

    Before the first run these are the rows that would be refused.
    """
    categories, slices, settings = CategoryIds(reader), TimeSlices(), present.settings
    async for first, records, places in read_batches(reader, present.id, present.start):
        rows = [records[place] for place in places]
        if present.state == "open":
            rows = records[max(0, present.start - first) :]
        judged = await judge_now(reader, rows, settings, categories)
        for row, pet in zip(rows, judged, strict=True):
            await slices.rest()
            if not isinstance(pet, NewPet):
                yield row, pet
            elif present.state != "open":
                yield row, ["Nothing is wrong with it now: send it again."]


async def count_next_pets(reader: Reader, import_id: int) -> int:
    """Return how many pets an undo can look at in one unit of work."""
    rows = await reader.read(_next_pets(import_id))
    return len(_pets_in(rows[0][1])) if rows else 0


# Changes


def shown(unit: Unit[StoredImport]) -> Unit[Import]:
    """Return a unit of work whose result is the import as the interface has it."""
    return (yield from unit).shown


def change_settings(
    import_id: int,
    caller_id: int,
    settings: ImportSettings,
    start: int,
    preview: ImportPreview,
    now: Milliseconds,
    check: Callable[[Import], None],
) -> Unit[StoredImport]:
    """Change how a file is read, while nothing is added.

    Raises:
        NotFound: the caller has no such import.
        ImportClosed: it has been run.
    """
    present = yield from current(import_id, caller_id)
    check(present.shown)
    require_open(present)
    rows = yield _change(
        "update_import_settings",
        "UPDATE imports SET settings = ?1, found = ?2, start = ?3, done = ?3, touched_at = ?4"  # noqa: S608
        f" WHERE id = ?5 RETURNING {_COLUMNS}",
        *(_encode(settings).decode(), _encode(preview).decode(), start, now, import_id),
    )
    return _import_of(rows[0])


def require_open(present: StoredImport) -> None:
    """Refuse to change the settings of an import that has been run or undone.

    Raises:
        ImportClosed: it has.
    """
    if present.run_request is not None or present.undo_request is not None:
        msg = f"import {present.id} is {present.state}: its settings can no longer change"
        raise ImportClosed(msg)


def add_rows(
    present: StoredImport,
    caller_id: int,
    prepared: Prepared,
    count: int,
    *,
    now: Milliseconds,
    by: Author,
) -> Unit[StoredImport]:
    """Add the pets of the next ``count`` rows of an import; return the import as it is then.

    Nothing happens if somebody else has added these rows, or has changed or undone the import.

    Raises:
        NotFound: the import is gone.
    """
    locked = yield from current(present.id, caller_id)
    if locked.undo_request is not None:
        return locked
    if (locked.done, locked.settings) != (present.done, present.settings):
        return locked
    settings, rows = locked.settings, prepared.rows[:count]
    by = by._replace(request_id=locked.run_request or by.request_id)
    categories = dict(prepared.categories)
    if settings.unknown_categories == "create":
        yield from _create_categories(rows, settings, categories, now, by)
    select = _select_here(rows, settings)
    here = set() if select is None else {row[0] for row in (yield select)}
    judged = judge(rows, settings, categories, here)
    wanted = {pet.category_id for pet in judged if isinstance(pet, NewPet)}
    registered = yield from lock_categories(wanted)
    news = [
        pet if isinstance(pet, NewPet) and pet.category_id in registered else None for pet in judged
    ]
    created = yield from create_pets(
        Change(now, by), [pet for pet in news if pet is not None], known=prepared.names
    )
    first = locked.done - locked.done % ROWS_AT_ONCE
    ((refused, pets),) = yield Statement(
        "SELECT refused, pets FROM import_batches WHERE import_id = ?1 AND first = ?2",
        (locked.id, first),
        name="select_import_outcome",
    )
    places = [locked.done - first + place for place, pet in enumerate(news) if pet is None]
    yield _change(
        "update_import_batch",
        "UPDATE import_batches SET refused = ?1, pets = ?2 WHERE import_id = ?3 AND first = ?4",
        _encode(_places_in(refused) + places).decode(),
        _encode(_pets_in(pets) + created).decode(),
        *(locked.id, first),
    )
    changed = yield _change(
        "update_import",
        "UPDATE imports SET done = done + ?1, added = added + ?2, run_request = ?3,"  # noqa: S608
        f" touched_at = ?4 WHERE id = ?5 RETURNING {_COLUMNS}",
        *(len(rows), len(created), by.request_id or "", now, locked.id),
    )
    return _import_of(changed[0])


def undo_rows(
    import_id: int, caller_id: int, count: int, *, now: Milliseconds, by: Author
) -> Unit[StoredImport]:
    """Delete at most ``count`` of the pets that an import added and that are as they were.

    Rows that are waiting are not added any more.

    Raises:
        NotFound: the caller has no such import.
    """
    locked = yield from current(import_id, caller_id)
    by = by._replace(request_id=locked.undo_request or by.request_id)
    batches = yield _next_pets(import_id)
    pets = _pets_in(batches[0][1]) if batches else []
    some = pets[:count]
    kept = (yield from delete_untouched(Change(now, by), some)) if some else {}
    if batches:
        yield _change(
            "update_undone_batch",
            "UPDATE import_batches SET pets = ?1 WHERE import_id = ?2 AND first = ?3",
            *(_encode(pets[count:]).decode(), import_id, batches[0][0]),
        )
    shown = [KeptPet(pet.id, pet.name, kept[pet.id]) for pet in some if pet.id in kept]
    changed = yield _change(
        "update_undone_import",
        "UPDATE imports SET deleted = deleted + ?1, kept = kept + ?2, kept_pets = ?3,"  # noqa: S608
        f" undo_request = ?4, touched_at = ?5 WHERE id = ?6 RETURNING {_COLUMNS}",
        *(len(some) - len(kept), len(kept)),
        _encode((locked.kept_pets + shown)[:MAX_LISTED]).decode(),
        *(by.request_id or "", now, import_id),
    )
    return _import_of(changed[0])


def delete_import(import_id: int, caller_id: int, check: Callable[[Import], None]) -> Unit[None]:
    """Delete an import that passes ``check``. The pets that it added stay.

    Raises:
        NotFound: the caller has no such import.
    """
    present = yield from current(import_id, caller_id)
    check(present.shown)
    yield from discard(import_id)


def can_create(word: str, ids: Collection[str]) -> bool:
    """Return whether a word whose key is not in ``ids`` can be the name of a category."""
    if name_key(word) in ids or integer_in(word) is not None:
        return False
    try:
        convert({"name": word}, CategoryCreate, InvalidBody)
    except InvalidBody:
        return False
    return True


def _create_categories(
    rows: Sequence[FileRow],
    settings: ImportSettings,
    ids: dict[str, int],
    now: Milliseconds,
    by: Author,
) -> Unit[None]:
    """Add the categories of rows that are not registered, and their ``ids``."""
    for word in Words().count(rows, settings.layout).categories:
        if not can_create(word, ids):
            continue
        try:
            category = yield from create_category(Change(now, by), CategoryCreate(word))
            ids[name_key(word)] = category.id
        except CategoryNameTaken:  # just now
            ids[name_key(word)] = yield from id_of_category(word)


def _select_here(rows: Sequence[FileRow], settings: ImportSettings) -> Statement | None:
    ids = [number for row in rows if (number := id_of_row(row, settings.layout)) is not None]
    if not ids:
        return None
    sql = f"SELECT id FROM pets WHERE id IN ({placeholder_list(1, ids)})"  # noqa: S608
    return Statement(sql, ids, name="select_pets_here")


def _next_pets(import_id: int) -> Statement:
    return Statement(
        "SELECT first, pets FROM import_batches WHERE import_id = ?1 AND pets <> '[]'"
        " ORDER BY first LIMIT 1",
        (import_id,),
        name="select_import_pets",
    )


def current(import_id: int, caller_id: int) -> Unit[StoredImport]:
    """Return an import of a caller, and lock its row: its units of work follow one another."""
    sql = f"{_SELECT} WHERE {_OWN} /*pg FOR UPDATE */"
    rows = yield Statement(sql, (import_id, caller_id), name="lock_import")
    return found(rows, _import_of, "import", import_id)


def _lock_caller(caller_id: int) -> Statement:
    sql = "SELECT id FROM callers WHERE id = ?1 /*pg FOR NO KEY UPDATE */"
    return Statement(sql, (caller_id,), name="lock_key")


def _change(name: str, sql: str, *parameters: Value) -> Statement:
    """Return a statement that changes imports: no cached page shows them."""
    return Statement(sql, parameters, name=name)


def _import_of(row: Row) -> StoredImport:
    import_id, file_name, settings, preview, *rest = row
    rest[6] = _kept_in(rest[6])
    return StoredImport(import_id, file_name, _settings_in(settings), _preview_in(preview), *rest)
