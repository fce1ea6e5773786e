"""List, add, change and delete pets."""

from collections.abc import Iterable, Sequence
from itertools import chain, islice

from msgspec import UNSET
from msgspec.structs import astuple, replace

from petstore.categories.store import require_categories, require_category
from petstore.databases.contract import (
    Reader,
    Statement,
    Unit,
    found,
    placeholder_list,
    placeholders,
)
from petstore.databases.pages import Filter, Page, read_count, read_page
from petstore.databases.words import WordIndex
from petstore.domain.words import finds, typed_words, words_of
from petstore.errors import PetReserved
from petstore.events.model import resource_event
from petstore.events.store import Change
from petstore.orders.store import free_if_lapsed
from petstore.pets.model import (
    PETS,
    STATUSES,
    CategoryCounts,
    Inventory,
    KeptBecause,
    NewPet,
    Pet,
    PetFilter,
    PetPatch,
    patched,
    status_after,
)
from petstore.time_slices import TimeSlices

_SELECT = f"SELECT {PETS.columns} FROM pets"  # noqa: S608 - only names
_SELECT_ONE = f"{_SELECT} WHERE id = ?1"
# What a client gives.
_GIVEN = NewPet.__struct_fields__
_INSERTED = ", ".join(_GIVEN)
_WIDTH = len(_GIVEN)
_INSERT_ONE = (
    f"INSERT INTO pets ({_INSERTED}/*pg , id */) /*pg OVERRIDING SYSTEM VALUE */"  # noqa: S608
    f" VALUES ({placeholder_list(1, _GIVEN)}/*pg , ?{_WIDTH + 1} */)"
)
_UPDATE = f"UPDATE pets SET ({', '.join(_GIVEN)}) = {placeholders(_WIDTH)} WHERE id = ?{_WIDTH + 1}"  # noqa: S608
_ROWS_AT_ONCE = 100
PETS_BY_WORD = WordIndex("pet_words", "pets", PETS, lambda pet: pet.name)

MAX_CATEGORIES = 1_000
"""The most categories of an inventory."""

# On PostgreSQL each change is a row of its own, until it is summed up.
_MAX_ROWS = 100_000
_COUNTS = ", ".join(f"CAST(sum({status}) AS BIGINT)" for status in STATUSES)
_SELECT_CATEGORIES = Statement(
    f"SELECT {_COUNTS}, category_id, count(*) FROM ("  # noqa: S608 - only names and numbers
    "SELECT * FROM category_inventory ORDER BY category_id LIMIT"
    f" /*sqlite*/ {MAX_CATEGORIES} /*end*/ /*pg {_MAX_ROWS} */"
    ") AS counted GROUP BY category_id ORDER BY category_id",
    name="select_category_inventory",
)


async def list_pets(
    store: Reader, wanted: PetFilter, after: int | None, limit: int, *, newest_first: bool = False
) -> Page[Pet]:
    """Return ``limit`` pets with an id above ``after``; with ``newest_first``, below it."""
    return await read_page(
        *(store, "select_pets", _SELECT, _filters(wanted), after, limit, PETS.read),
        newest_first=newest_first,
    )


async def search_pets(
    store: Reader, text: str, wanted: PetFilter, after: int | None, limit: int
) -> Page[Pet]:
    if wanted.ids is not UNSET:
        typed, slices, pets = typed_words(text), TimeSlices(), list[Pet]()
        for pet in (await list_pets(store, wanted, after, len(wanted.ids))).items:
            if typed and finds(typed, words_of(pet.name)):
                pets.append(pet)
            await slices.rest()
        return Page(pets[:limit], pets[limit - 1].id if len(pets) > limit else None)
    admits = None if wanted == PetFilter() else wanted.admits
    return await PETS_BY_WORD.search(store, text, after, limit, admits)


async def count_pets(store: Reader, wanted: PetFilter, limit: int) -> int:
    filters = _filters(wanted)
    return await read_count(store, "count_pets", "SELECT id FROM pets", filters, limit)


async def get_pet(store: Reader, pet_id: int) -> Pet:
    select = Statement(_SELECT_ONE, (pet_id,), by_id=True, name="select_pet")
    return found(await store.read(select), PETS.read, "pet", pet_id)


async def get_inventory(store: Reader) -> Inventory:
    select = Statement(
        "SELECT status, CAST(sum(pets) AS BIGINT) FROM inventory GROUP BY status",
        name="select_inventory",
    )
    return Inventory(**dict(await store.read(select)))


async def get_inventory_by_category(store: Reader) -> Inventory:
    totals, rows = await get_inventory(store), await store.read(_SELECT_CATEGORIES)
    # Of the last category, some rows may not have been read.
    whole = rows[:-1] if sum(row[-1] for row in rows) == _MAX_ROWS else rows
    found = [CategoryCounts(*row[:3], category_id=row[3]) for row in whole if any(row[:3])]
    return replace(totals, categories=found[:MAX_CATEGORIES])


def create_pet(change: Change, new: NewPet) -> Unit[Pet]:
    if change.strict_categories:
        yield from require_category(new.category_id)
    values = PETS.values(new, _GIVEN)
    ((pet_id,),) = yield Statement(_INSERT_ONE, values, returns_id="pets", name="insert_pet")
    yield PETS_BY_WORD.add([pet_id])
    pet = Pet(pet_id, *astuple(new))
    yield change.record(resource_event("pet.created", pet))
    return pet


def create_pets(change: Change, news: Iterable[NewPet]) -> Unit[list[Pet]]:
    """Add pets in order, a hundred a statement."""
    if change.strict_categories:
        news = list(news)
        yield from require_categories([new.category_id for new in news])
    rest = iter(news)
    created: list[Pet] = []
    while batch := list(islice(rest, _ROWS_AT_ONCE)):
        values = [*chain.from_iterable(PETS.values(new, _GIVEN) for new in batch)]
        sql = (
            f"INSERT INTO pets ({_INSERTED}) VALUES {placeholders(_WIDTH, len(batch))}"  # noqa: S608
            f" RETURNING {PETS.columns}"
        )
        pets = [*map(PETS.read, sorted((yield Statement(sql, values, name="insert_pets"))))]
        yield PETS_BY_WORD.add([pet.id for pet in pets])
        yield change.record(*(resource_event("pet.created", pet) for pet in pets))
        created += pets
    return created


def update_pet(change: Change, pet_id: int, patch: PetPatch) -> Unit[Pet]:
    pet = yield from _locked(change, pet_id)
    if status_after(pet, patch) != pet.status:
        yield from _require_no_order(pet_id)
    changed = patched(pet, patch)
    if change.strict_categories and changed.category_id != pet.category_id:
        yield from require_category(changed.category_id)
    if changed != pet:
        values = (*PETS.values(changed, _GIVEN), pet_id)
        yield Statement(_UPDATE, values, deferrable=True, name="update_pet")
        if changed.name != pet.name:
            yield from PETS_BY_WORD.replace(pet_id, pet.name, changed.name)
        yield change.record(resource_event("pet.updated", changed, pet))
    return changed


def delete_pet(change: Change, pet_id: int) -> Unit[None]:
    pet = yield from _locked(change, pet_id)
    yield from _require_no_order(pet_id)
    sql = "DELETE FROM pets WHERE id = ?1"
    yield Statement(sql, (pet_id,), deferrable=True, name="delete_pet")
    yield from PETS_BY_WORD.replace(pet_id, pet.name, "")
    yield change.record(resource_event("pet.deleted", pet))


def delete_untouched(change: Change, pets: Sequence[Pet]) -> Unit[dict[int, KeptBecause]]:
    ids, places = [pet.id for pet in pets], placeholder_list(1, pets)
    rows = yield Statement(
        f"{_SELECT} WHERE id IN ({places}) ORDER BY id /*pg FOR UPDATE */", ids, name="lock_pets"
    )
    # Only now: on PostgreSQL this sees every order that was placed before the locks.
    orders = f"SELECT DISTINCT pet_id FROM orders WHERE pet_id IN ({places})"  # noqa: S608
    ordered = {row[0] for row in (yield Statement(orders, ids, name="select_ordered_pets"))}
    present = {pet.id: pet for pet in map(PETS.read, rows)}
    kept: dict[int, KeptBecause] = {}
    for pet in pets:
        if pet.id not in present:
            kept[pet.id] = "deleted"
        elif pet.id in ordered:
            kept[pet.id] = "ordered"
        elif present[pet.id] != pet:
            kept[pet.id] = "changed"
    gone = [pet for pet in pets if pet.id not in kept]
    if gone:
        sql = f"DELETE FROM pets WHERE id IN ({placeholder_list(1, gone)})"  # noqa: S608
        yield Statement(sql, [pet.id for pet in gone], name="delete_pets")
        for pet in gone:
            yield from PETS_BY_WORD.replace(pet.id, pet.name, "")
        yield change.record(*(resource_event("pet.deleted", pet) for pet in gone))
    return kept


def _filters(wanted: PetFilter) -> dict[str, Filter]:
    status: Filter = wanted.status
    if status is UNSET and wanted.has_status is not UNSET:
        status = STATUSES if wanted.has_status else None
    return {"category_id": wanted.category_id, "status": status, "id": wanted.ids}


def _locked(change: Change, pet_id: int) -> Unit[Pet]:
    yield from free_if_lapsed(pet_id, change.now)
    sql = f"{_SELECT} WHERE id = ?1 /*pg FOR UPDATE */"
    rows = yield Statement(sql, (pet_id,), name="lock_pet")
    pet = found(rows, PETS.read, "pet", pet_id)
    change.check(pet)
    return pet


def _require_no_order(pet_id: int) -> Unit[None]:
    rows = yield Statement(
        "SELECT id, status FROM orders WHERE pet_id = ?1 AND status IN ('placed', 'approved')",
        (pet_id,),
        name="select_open_order",
    )
    for order_id, status in rows:
        raise PetReserved(f"order {order_id} is {status} and reserves pet {pet_id}")
