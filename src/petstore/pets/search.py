"""Search pets by the beginning of their names, along the index of their keys.

The service writes the key of a name with the name (``petstore.domain.names``). Where a process of
an older version wrote an animal, the key is missing; ``fill_name_keys`` fills it in.
"""

import asyncio
import logging
from functools import partial
from typing import NamedTuple

from msgspec import UNSET

from petstore.chores import PeriodicTask
from petstore.databases.contract import Reader, Statement, Store, Unit, placeholders
from petstore.databases.planner import SHORT, in_short, unplanned
from petstore.domain.cursors import NamePosition
from petstore.domain.names import end_of_prefix, search_key
from petstore.pets.model import Pet, PetFilter
from petstore.pets.rows import COLUMNS, pet_of
from petstore.pets.store import list_pets

MAX_SCANNED = 2_000
"""The most animals that one page of a search looks at."""

# Without a collation, SQLite would look up the key alone, and pass over the ids one by one.
_AFTER = (
    "/*sqlite*/ (name_key, id) > (?2, ?3 COLLATE BINARY) /*end*/"
    f" /*pg (name_key, id) > ({unplanned(2, str)}, ?3) */"
)
_BEFORE_END = f" AND name_key < /*sqlite*/ ?4 /*end*/ /*pg {unplanned(4, str)} */"
_ORDER = "ORDER BY name_key, id"
_CHUNK = 200
_MAX_IDS = 100
_BATCH = 100
_PAUSE_SECONDS = 0.005
_LOG = logging.getLogger(__name__)


class PetsByName(NamedTuple):
    """Pets by name and then id, and the position that the next page starts after.

    ``next_after`` is ``None`` on the last page.
    """

    items: list[Pet]
    next_after: NamePosition | None


async def search_pets(
    store: Reader, prefix: str, wanted: PetFilter, after: NamePosition | None, limit: int
) -> PetsByName:
    """Return the first ``limit`` pets behind ``after`` whose names begin with ``prefix``.

    Case does not matter. With filters, one page looks at ``MAX_SCANNED`` animals at most. So it may
    have fewer than ``limit``, even none, while there is a next one.
    """
    if wanted.ids is not UNSET:
        return await _search_ids(store, prefix, wanted, after, limit)
    # One more than the page holds shows whether there is a next one.
    size = limit + 1 if wanted == PetFilter() else _CHUNK
    found: list[Pet] = []
    scanned = 0
    while True:
        rows = await store.read(_select_by_name(prefix, after, size))
        for *row, key in rows:
            pet = pet_of(tuple(row))
            if wanted.admits(pet):
                if len(found) == limit:
                    return PetsByName(found, after)
                found.append(pet)
            after = NamePosition(key, pet.id)
        scanned += len(rows)
        if len(rows) < size:
            return PetsByName(found, None)
        if scanned >= MAX_SCANNED:
            return PetsByName(found, after)


async def _search_ids(
    store: Reader, prefix: str, wanted: PetFilter, after: NamePosition | None, limit: int
) -> PetsByName:
    """Search the pets with the wanted ids: they are read at once, and sorted here."""
    key = search_key(prefix)
    pets = (await list_pets(store, wanted, None, _MAX_IDS)).items
    by_position = {NamePosition(search_key(pet.name), pet.id): pet for pet in pets}
    positions = sorted(
        position
        for position in by_position
        if position.key.startswith(key) and (after is None or position > after)
    )
    next_after = positions[limit - 1] if len(positions) > limit else None
    return PetsByName([by_position[position] for position in positions[:limit]], next_after)


def _select_by_name(prefix: str, after: NamePosition | None, limit: int) -> Statement:
    """Return the SELECT of pets by name, ``after`` a position: each row has its key at the end."""
    first = search_key(prefix)
    if after is None or after.key < first:
        after = NamePosition(first, 0)
    end = end_of_prefix(first)
    conditions = f"{_AFTER}{_BEFORE_END if end else ''}"
    sql = f"SELECT {COLUMNS}, name_key FROM pets WHERE {conditions} {_ORDER}"  # noqa: S608
    return Statement(
        f"{in_short(sql) if limit <= SHORT + 1 else sql} LIMIT ?1",
        (limit, *after, end) if end else (limit, *after),
        name="search_pets",
    )


def filling_name_keys(store: Store) -> PeriodicTask:
    """Return what fills in the keys that older versions leave out."""
    return PeriodicTask(
        partial(fill_name_keys, store), 1, "animals not prepared for searches by name"
    )


async def fill_name_keys(store: Store) -> None:
    """Fill in the keys that are missing, a few at a time: no request waits for long.

    Any number of processes may do so at once.

    Raises:
        Unavailable: the database is unreachable, full or failing.
    """
    if not await store.read(_select_without_key(0, 1)):
        return
    ids = await store.write(_fill_batch(0))
    if len(ids) < _BATCH:  # what a process of an older version has just written
        return
    _LOG.info("preparing animals for searches by name; until this ends, a search may miss some")
    filled = len(ids)
    while len(ids) == _BATCH:
        await asyncio.sleep(_PAUSE_SECONDS)
        ids = await store.write(_fill_batch(ids[-1]))
        filled += len(ids)
    _LOG.info("prepared %d animals for searches by name", filled)


def _fill_batch(after: int) -> Unit[list[int]]:
    """Fill in the keys of some pets with an id above ``after``; return their ids, ascending."""
    # What another process is changing has its key by then, or gets it the next time.
    rows = yield _select_without_key(after, _BATCH, "/*pg FOR UPDATE SKIP LOCKED */")
    if rows:
        # As text: PostgreSQL takes parameters in VALUES for text.
        values = [value for pet_id, name in rows for value in (str(pet_id), search_key(name))]
        yield Statement(
            f"WITH filled (id, name_key) AS (VALUES {placeholders(2, len(rows))})"  # noqa: S608
            " UPDATE pets SET name_key = filled.name_key FROM filled"
            " WHERE pets.id = CAST(filled.id AS BIGINT)",
            values,
            name="fill_name_keys",
        )
    return [pet_id for pet_id, _ in rows]


def _select_without_key(after: int, limit: int, lock: str = "") -> Statement:
    return Statement(
        "SELECT id, name FROM pets WHERE name_key IS NULL AND id > ?1"  # noqa: S608 - a comment
        f" ORDER BY name_key, id LIMIT ?2 {lock}",
        (after, limit),
        name="select_pets_without_key",
    )
