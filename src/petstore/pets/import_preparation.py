"""Files on their way to an import of the console: their rows are read, checked and stored.

A person chooses columns, and decides about categories that there are not.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from typing import BinaryIO

from petstore.categories.store import ids_of_categories, names_of_categories, unknown_category
from petstore.clock import Clock
from petstore.databases.contract import Store
from petstore.errors import Conflict, InvalidBody, NotFound, PetstoreError
from petstore.pets.columns import Columns
from petstore.pets.console_imports import (
    MAX_ROWS,
    UNDECIDED,
    ConsoleImport,
    UndecidedCategory,
    add_rows,
    batches_of_others,
    begin_import,
    category_key,
    complete_import,
    decide_batch,
    read_batches,
    stop_import,
)
from petstore.pets.files import (
    NOT_UTF8,
    CsvLayout,
    FileLimits,
    FileRow,
    ImportFile,
    cells_of,
    is_utf8,
    open_import_file,
)
from petstore.pets.imports import ImportRun
from petstore.time_slices import TimeSlices

LIMITS = FileLimits(lines=100_000, characters=16_384, cells=256)
"""A row can have several lines, and some lines are blank."""

BATCH = 200
"""How many rows a batch has at most; it has fewer if they are long."""

MAX_UNDECIDED = 20
"""How many categories of a file a person decides about; rows of further ones are refused."""

_BATCH_CHARACTERS = 65_536
_MAX_CATEGORY_NAME = 100
# As JSON, the text of a file is seldom twice as large, but control characters are six times.
_MAX_STORED = 24 * 2**20


async def store_import(
    store: Store,
    key_id: int,
    name: str,
    content: BinaryIO,
    clock: Clock,
    *,
    named_categories: bool,
) -> int:
    """Store a CSV file of a key to be imported, and return the id of the import.

    An import of the same file that has added nothing yet is replaced. With ``named_categories``, a
    category may be the name of a registered one, ignoring case, and rows of a category that there
    is not wait for a decision; else they are refused. All rows wait if it is not sure which columns
    are the fields.

    Raises:
        InvalidBody: it is no table in UTF-8, or has no rows, or too many.
        Conflict: the key has ``MAX_IMPORTS`` that all have rows to add, or sent another file while
            this one was being stored.
        Unavailable: the database is unreachable.
    """
    file = await asyncio.to_thread(open_import_file, content, limits=LIMITS)
    names = file.layout.columns.names
    _require_utf8(1, names, names)
    preparation = _Preparation(store, file.layout, named_categories=named_categories)
    return await preparation.run(key_id, name, file.digest, _batches_of(file), clock)


async def choose_columns(
    store: Store,
    key_id: int,
    chosen_for: ConsoleImport,
    columns: Columns,
    clock: Clock,
    *,
    named_categories: bool,
) -> int:
    """Replace an import that has added nothing by one with other columns, and return its id.

    Raises:
        Conflict: the key sent another file meanwhile.
        Unavailable: the database is unreachable.
    """
    layout = chosen_for.layout._replace(columns=columns)

    async def read_again() -> AsyncIterator[list[FileRow]]:
        async for rows in read_batches(store, chosen_for.id):
            yield [layout.read(row) for row in rows]

    preparation = _Preparation(store, layout, named_categories=named_categories)
    return await preparation.run(key_id, chosen_for.file, chosen_for.digest, read_again(), clock)


async def decide_categories(
    store: Store, key_id: int, import_id: int, decisions: Mapping[str, int | None], clock: Clock
) -> None:
    """Give the rows of undecided categories those that a person decided on, or refuse them.

    ``decisions`` has ids by the keys of the categories, ``None`` for rows that are left out. If it
    is interrupted, the other rows stay undecided.

    Raises:
        NotFound: the import is gone.
        Unavailable: the database is unreachable.
    """
    slices = TimeSlices()
    for start in await batches_of_others(store, import_id):
        await slices.rest()
        await store.write(decide_batch(import_id, key_id, start, decisions, now=clock()))


class _Preparation:
    """The rows of a file, while they are checked and stored."""

    def __init__(self, store: Store, layout: CsvLayout, *, named_categories: bool) -> None:
        self._store, self._layout, self._named_categories = store, layout, named_categories
        self._undecided: dict[str, UndecidedCategory] = {}

    async def run(
        self,
        key_id: int,
        name: str,
        digest: bytes,
        batches: AsyncIterator[list[FileRow]],
        clock: Clock,
    ) -> int:
        """Store the rows, and return the id of their import.

        Raises:
            PetstoreError: what ``store_import`` raises.
        """
        store = self._store
        import_id = await store.write(begin_import(key_id, name, digest, self._layout, now=clock()))
        try:
            await self._store_rows(import_id, key_id, batches)
            undecided = list(self._undecided.values())
            await store.write(complete_import(import_id, key_id, digest, undecided))
        except NotFound:
            msg = "another file was sent at the same time; send this one again"
            raise Conflict(msg) from None
        except PetstoreError:
            with suppress(PetstoreError):
                await store.write(stop_import(import_id, key_id, now=clock()))
            raise
        return import_id

    async def _store_rows(
        self, import_id: int, key_id: int, batches: AsyncIterator[list[FileRow]]
    ) -> None:
        start, size, slices = 0, 0, TimeSlices()
        async for rows in batches:
            await slices.rest()
            await self._check_categories(rows, slices)
            if rows:
                size += await self._store.write(add_rows(import_id, key_id, start, rows))
            if size > _MAX_STORED:
                msg = "expected text; the file has too many control characters"
                raise InvalidBody(msg)
            start += len(rows)

    async def _check_categories(self, rows: list[FileRow], slices: TimeSlices) -> None:
        """Replace the rows whose categories are names, and those whose categories there are not."""
        names = self._layout.category_names(rows) if self._named_categories else {}
        ids = await ids_of_categories(self._store, set(names.values()))
        self._layout.name_categories(rows, names, ids)
        unknown = {place: name for place, name in names.items() if name not in ids}
        found = ((place, self._layout.category_number(row)) for place, row in enumerate(rows))
        numbers = {place: number for place, number in found if number is not None}
        registered = await names_of_categories(self._store, set(numbers.values()))
        for place, number in numbers.items():
            if number not in registered:
                reason = unknown_category(number).message
                rows[place] = self._layout.of_no_category(rows[place], reason)
                unknown[place] = str(number)
        if self._named_categories:
            for place, text in sorted(unknown.items()):
                await slices.rest()
                rows[place] = self._undecided_row(rows[place], text)

    def _undecided_row(self, row: FileRow, text: str) -> FileRow:
        """Return a refused row that waits for a decision, if that alone keeps it from being added.

        A file with thousands of categories asks nobody about each of them.
        """
        # A name may be four times as long until it is composed.
        if len(text) > 4 * _MAX_CATEGORY_NAME or self._layout.with_category(row, 1).pet is None:
            return row
        key = category_key(text)
        if key not in self._undecided:
            is_full = len(self._undecided) == MAX_UNDECIDED
            if is_full or len(text) > _MAX_CATEGORY_NAME or not {"\0", "\r", "\n"}.isdisjoint(text):
                return row
            self._undecided[key] = UndecidedCategory(text, 0)
        known = self._undecided[key]
        self._undecided[key] = known._replace(rows=known.rows + 1)
        return row.refused(UNDECIDED)


async def _batches_of(file: ImportFile) -> AsyncIterator[list[FileRow]]:
    """Yield the rows of a file in batches.

    Raises:
        InvalidBody: it is not in UTF-8, or has no rows, or too many.
    """
    run, layout = ImportRun(file), file.layout
    for rows in run.batches(BATCH, _BATCH_CHARACTERS):
        for row in rows:
            if row.reason == NOT_UTF8:
                _require_utf8(row.line, layout.columns.names, cells_of(row.text, layout.delimiter))
        if run.done + len(rows) > MAX_ROWS:
            msg = (
                f"expected at most {MAX_ROWS:,} rows; divide the file, or use the command"
                " petstore pets import"
            )
            raise InvalidBody(msg)
        yield rows
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
