"""How a file is read, and what a run of its import would do."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from tempfile import TemporaryFile
from typing import Any, BinaryIO

from msgspec import UNSET, UnsetType
from msgspec.structs import astuple, replace

from petstore.clock import Milliseconds
from petstore.databases.contract import Reader, Store
from petstore.domain.fields import given_fields
from petstore.domain.names import name_key
from petstore.domain.words import keys_of_each
from petstore.errors import InvalidBody, PetstoreError
from petstore.imports.columns import (
    FIRST_ROWS,
    ImportMapping,
    ImportMappingPatch,
    Layout,
    Words,
    find_layout,
    status_of,
    word_key,
)
from petstore.imports.model import (
    MAX_LISTED,
    MAX_ROWS,
    MAX_WORD,
    ImportPatch,
    ImportPreview,
    ImportSettings,
    ImportWord,
    Meaning,
)
from petstore.imports.reading import Row, read_table, rows_in
from petstore.imports.store import (
    CategoryIds,
    StoredImport,
    add_batches,
    begin,
    complete,
    discard,
    judge_now,
    names_here,
    read_batches,
)
from petstore.pets.model import STATUSES, NewPet
from petstore.time_slices import TimeSlices

_STORED_AT_ONCE = 1_000


async def store_file(
    store: Store, caller_id: int, file: BinaryIO, digest: bytes, name: str, now: Milliseconds
) -> StoredImport:
    """Read a file, and store its rows in units of work so small that others write in between.

    Raises:
        InvalidBody: it cannot be read, or has no row for a pet.
        TooManyImports: the caller has ``MAX_UNFINISHED``.
        Unavailable: the database is unreachable.
    """
    with TemporaryFile() as table:
        head = await asyncio.to_thread(read_table, file, table)
        lines = rows_in(table)
        first = [*islice(lines, FIRST_ROWS)]
        layout = find_layout(first, head.last_from)
        settings = ImportSettings(head.encoding, head.notes, layout)
        start = rows_above(first, settings)
        if start == len(first):
            msg = "The file has no row for a pet."
            raise InvalidBody(msg)
        import_id = await store.write(begin(caller_id, digest, name, settings, now))
        try:
            records, slices, rows = 0, TimeSlices(), first
            while rows:
                await store.write(add_batches(import_id, records, rows))
                records, rows = records + len(rows), []
                for row in islice(lines, _STORED_AT_ONCE):
                    await slices.rest()
                    rows.append(row)
            preview = await preview_of(store, import_id, settings, start)
            return await store.write(complete(import_id, caller_id, records, start, preview))
        except BaseException:
            with suppress(PetstoreError):
                await store.write(discard(import_id))
            raise


def rows_above(rows: Iterable[Row], settings: ImportSettings) -> int:
    """Return how many rows are up to the header: it is among the first."""
    return sum(row.line <= (settings.layout.header_line or 0) for row in rows)


def patched(settings: ImportSettings, patch: ImportPatch, rows: Sequence[Row]) -> ImportSettings:
    """Return settings changed by a patch, for a file whose first rows are these.

    Raises:
        InvalidBody: the mapping names a column that there is not, or one for two fields; or too
            many words have a meaning.
    """
    changes: dict[str, Any] = {}
    if patch.has_header is not UNSET or patch.mapping is not UNSET:
        changes["layout"] = _changed_layout(settings.layout, patch, rows)
    if patch.default_status is not UNSET:
        changes["default_status"] = patch.default_status
    if patch.default_category_id is not UNSET:
        changes["default_category"] = patch.default_category_id
    if patch.unknown_categories is not UNSET:
        changes["unknown_categories"] = patch.unknown_categories
    if patch.values is not UNSET:
        changes["values"] = _changed_values(settings.values, patch.values)
    return replace(settings, **changes)


def _changed_layout(layout: Layout, patch: ImportPatch, rows: Sequence[Row]) -> Layout:
    has_header, mapping = patch.has_header, None
    if has_header is UNSET:
        has_header = layout.header_line is not None
    if patch.mapping is not UNSET:
        mapping = _changed_mapping(layout, patch.mapping)
    return find_layout(rows, layout.last_from, has_header=has_header, mapping=mapping)


def _changed_mapping(layout: Layout, patch: ImportMappingPatch) -> ImportMapping:
    given = {field: UNSET if at is None else at for field, at in given_fields(patch).items()}
    mapping = replace(layout.mapping, **given)
    places = [place for place in astuple(mapping) if place is not UNSET]
    if any(place >= len(layout.columns) for place in places):
        msg = f"mapping: expected places of columns, from 0 to {len(layout.columns) - 1}"
        raise InvalidBody(msg)
    if len({*places}) < len(places):
        msg = "mapping: expected another column for each field"
        raise InvalidBody(msg)
    return mapping


def _changed_values(
    values: Mapping[str, Meaning], patch: Mapping[str, Meaning | None]
) -> dict[str, Meaning]:
    keys = {word_key(word) for word in patch}
    kept = {word: of for word, of in values.items() if word_key(word) not in keys}
    changed = kept | {word: of for word, of in patch.items() if of is not None}
    if len(changed) > MAX_LISTED or any(len(word) > MAX_WORD for word in changed):
        msg = f"values: expected at most {MAX_LISTED} words of {MAX_WORD} characters in all"
        raise InvalidBody(msg)
    return changed


async def preview_of(
    store: Reader, import_id: int, settings: ImportSettings, start: int
) -> ImportPreview:
    """Return what a run would do now."""
    categories, slices, words = CategoryIds(store), TimeSlices(), Words()
    added = refused = already_here = 0
    async for first, records, _ in read_batches(store, import_id, start):
        await slices.rest()
        rows = records[max(0, start - first) :]
        words.count(rows, settings.layout)
        judged = await judge_now(store, rows, settings, categories)
        names = [pet.name for pet in judged if isinstance(pet, NewPet)]
        keys = await keys_of_each(names)
        here = await names_here(store, {each.name_key for each in keys.values()})
        already_here += sum(keys[name].name_key in here for name in names)
        added, refused = added + len(names), refused + len(rows) - len(names)
    unknown, undecided, choices = Counter[str](), Counter[str](), settings.choices({})
    means: dict[str, Meaning | UnsetType] = {}
    for word, count in words.categories.items():
        await slices.rest()
        if word and name_key(word) not in categories.known:
            unknown[word] = count
    for word, count in words.statuses.items():
        await slices.rest()
        if word and word_key(word) not in STATUSES:
            status = status_of(word, choices)
            means[word] = "none" if status is None else status
            undecided[word] = count + (MAX_ROWS if means[word] is UNSET else 0)  # these come first
    return ImportPreview(
        added=added,
        refused=refused,
        already_here=already_here,
        without_category=words.categories[""],
        categories=[
            ImportWord(word[:MAX_WORD], count) for word, count in unknown.most_common(MAX_LISTED)
        ],
        statuses=[
            ImportWord(word[:MAX_WORD], words.statuses[word], means[word])
            for word, _ in undecided.most_common(MAX_LISTED)
        ],
    )
