"""How a file is read, and what a run of its import would do."""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any, TypeVar

from msgspec import UNSET, UnsetType
from msgspec.structs import astuple, replace

from petstore.databases.contract import Reader
from petstore.domain.fields import given_fields
from petstore.domain.names import name_key
from petstore.domain.words import whole_term
from petstore.errors import InvalidBody
from petstore.imports.columns import (
    ImportMapping,
    ImportMappingPatch,
    ImportSettings,
    Meaning,
    can_be_category,
    cells_of,
    meaning_of,
    rows_below,
    understood,
    word_key,
)
from petstore.imports.model import (
    MAX_LISTED,
    MAX_ROWS,
    MAX_WORD,
    ImportPatch,
    ImportPreview,
    ImportWord,
)
from petstore.imports.reading import Row, decode_rows
from petstore.imports.store import judge_now, names_here
from petstore.pets.model import STATUSES, NewPet
from petstore.time_slices import TimeSlices

T = TypeVar("T")


async def in_order(lines: Iterable[bytes]) -> AsyncIterator[list[Row]]:
    for line in lines:
        yield decode_rows(line)


def patched(settings: ImportSettings, patch: ImportPatch, rows: Sequence[Row]) -> ImportSettings:
    """Return settings changed by a patch, for a file whose first rows are these."""
    changes = {name: _without(value) for name, value in given_fields(patch).items()}
    has_header, mapping = changes.pop("has_header", UNSET), changes.pop("mapping", UNSET)
    if has_header is not UNSET or mapping is not UNSET:
        if has_header is UNSET:
            has_header = settings.header_line is not UNSET
        if mapping is not UNSET:
            mapping = _changed_mapping(settings, mapping)
        settings = understood(settings, rows, has_header=has_header, mapping=mapping)
    if "values" in changes:
        changes["values"] = _changed("values", settings.values, changes["values"], word_key)
    if "categories" in changes:
        given = changes["categories"]
        changes["categories"] = _changed("categories", settings.categories, given, name_key)
    return replace(settings, **changes)


def _without(value: Any) -> Any:
    """Return the value of a field without null, which removes it."""
    return UNSET if value is None else value


def _changed_mapping(settings: ImportSettings, patch: ImportMappingPatch) -> ImportMapping:
    given = {field: _without(place) for field, place in given_fields(patch).items()}
    mapping = replace(settings.mapping, **given)
    places = [place for place in astuple(mapping) if place is not UNSET]
    if any(place >= len(settings.columns) for place in places):
        msg = f"mapping: expected places of columns, from 0 to {len(settings.columns) - 1}"
        raise InvalidBody(msg)
    if len({*places}) < len(places):
        msg = "mapping: expected another column for each field"
        raise InvalidBody(msg)
    return mapping


def _changed(
    field: str, meanings: dict[str, T], patch: dict[str, T | None], key_of: Callable[[str], str]
) -> dict[str, T]:
    keys = {*map(key_of, patch)}
    kept = {word: meaning for word, meaning in meanings.items() if key_of(word) not in keys}
    changed = kept | {word: meaning for word, meaning in patch.items() if meaning is not None}
    if len(changed) > MAX_LISTED or any(len(word) > MAX_WORD for word in changed):
        msg = f"{field}: expected at most {MAX_LISTED} words of {MAX_WORD} characters in all"
        raise InvalidBody(msg)
    return changed


async def preview_of(
    reader: Reader, batches: AsyncIterator[Sequence[Row]], settings: ImportSettings
) -> ImportPreview:
    """Return what a run would do now."""
    slices, known, choices = TimeSlices(), dict[str, int](), settings.choices({})
    added = refused = already_here = without_category = 0
    categories, statuses, written = Counter[str](), Counter[str](), dict[tuple[str, str], str]()
    async for batch in batches:
        rows = cells_of(rows_below(batch, settings), settings)
        judged = await judge_now(reader, rows, settings, known)
        names = []
        for row, pet in zip(rows, judged, strict=True):
            await slices.rest()
            if isinstance(pet, NewPet):
                names.append(whole_term(pet.name))
            if not row.may_be_pet:
                continue
            without_category += not row.category
            key = name_key(row.category)
            if key in categories or (key not in known and can_be_category(row.category)):
                categories[key] += 1
                written.setdefault(("category", key), row.category)
            key = word_key(row.status)
            if key not in ("", *STATUSES):
                statuses[key] += 1
                written.setdefault(("status", key), row.status)
        here = await names_here(reader, {*names})
        already_here += sum(name in here for name in names)
        added, refused = added + len(names), refused + len(rows) - len(names)
    means: dict[str, Meaning | UnsetType] = {}
    mapped = settings.category_ids({})
    undecided = Counter[str]()  # these come first
    for key, count in statuses.items():
        await slices.rest()
        means[key] = meaning_of(key, choices)
        undecided[key] = count + (MAX_ROWS if means[key] is UNSET else 0)
    return ImportPreview(
        added=added,
        refused=refused,
        already_here=already_here,
        without_category=without_category,
        categories=[
            ImportWord(written["category", key][:MAX_WORD], count, UNSET, mapped.get(key, UNSET))
            for key, count in categories.most_common(MAX_LISTED)
        ],
        statuses=[
            ImportWord(written["status", key][:MAX_WORD], statuses[key], means[key])
            for key, _ in undecided.most_common(MAX_LISTED)
        ],
    )
