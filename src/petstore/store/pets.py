"""List, add, change and delete pets."""

from collections.abc import Callable, Iterable
from itertools import chain, islice

from msgspec import UNSET
from msgspec.structs import astuple

from petstore.clock import Milliseconds
from petstore.databases.contract import Reader, Row, Statement, Unit, Value, placeholders
from petstore.domain.names import search_key
from petstore.domain.pets import Inventory, NewPet, Pet, PetFilter, PetPatch, patched, status_after
from petstore.errors import PetReserved
from petstore.store.categories import require_category
from petstore.store.orders import free_if_lapsed
from petstore.store.pages import Page, found, read_page

_COLUMNS = ("name", "category_id", "status")
_SELECT = f"SELECT id, {', '.join(_COLUMNS)} FROM pets"  # noqa: S608 - only names
_INSERT = f"INSERT INTO pets ({', '.join(_COLUMNS)}, name_key) VALUES"
_WIDTH = len(_COLUMNS)
_INSERT_ONE = f"{_INSERT} {placeholders(_WIDTH + 1)} /*pg RETURNING id */"
_UPDATE = (
    f"UPDATE pets SET ({', '.join(_COLUMNS)}) = {placeholders(_WIDTH)} WHERE id = ?{_WIDTH + 1}"  # noqa: S608
)
_ROWS_AT_ONCE = 100


async def list_pets(
    store: Reader,
    wanted: PetFilter,
    after: int | None,
    limit: int,
    *,
    newest_first: bool = False,
) -> Page[Pet]:
    """Return the first ``limit`` pets with an id above ``after``, by ascending id.

    With ``newest_first`` these are the pets with an id below ``after``, by descending id.
    """
    filters = {"status": wanted.status, "category_id": wanted.category_id, "id": wanted.ids}
    return await read_page(
        store, "select_pets", _SELECT, filters, after, limit, pet_of, newest_first=newest_first
    )


async def get_pet(store: Reader, pet_id: int) -> Pet:
    """Return one pet, or raise ``NotFound``."""
    select = Statement(f"{_SELECT} WHERE id = ?1", (pet_id,), name="select_pet")
    return found(await store.read(select), pet_of, "pet", pet_id)


async def get_inventory(store: Reader) -> Inventory:
    """Return the number of pets by status."""
    select = Statement(
        "SELECT status, CAST(sum(pets) AS BIGINT) FROM inventory GROUP BY status",
        name="select_inventory",
    )
    return Inventory(**dict(await store.read(select)))


def create_pet(new: NewPet, *, strict_categories: bool = False) -> Unit[Pet]:
    """Add a pet and return it.

    Raises:
        UnknownCategory: categories are strict, and the pet's is not registered.
    """
    if strict_categories:
        yield from require_category(new.categoryId)
    ((pet_id,),) = yield Statement(_INSERT_ONE, _new_row(new), gives_id=True, name="insert_pet")
    return Pet(pet_id, *astuple(new))


def create_pets(news: Iterable[NewPet]) -> Unit[None]:
    """Add many pets in the order given, a hundred in each statement."""
    rows = map(_new_row, news)
    while batch := list(islice(rows, _ROWS_AT_ONCE)):
        values = tuple(chain.from_iterable(batch))
        yield Statement(
            f"{_INSERT} {placeholders(_WIDTH + 1, len(batch))}", values, name="insert_pets"
        )


def update_pet(
    pet_id: int,
    patch: PetPatch,
    now: Milliseconds,
    check: Callable[[Pet], None],
    *,
    strict_categories: bool,
) -> Unit[Pet]:
    """Change a pet that passes ``check`` as it is at ``now``, and return it.

    Raises:
        NotFound: no pet has this id.
        IllegalTransition: the new status cannot follow the present one.
        PetReserved: an open order reserves the pet, and its status would change.
        UnknownCategory: categories are strict, and the new one is not registered.
    """
    pet = yield from _locked(pet_id, now)
    check(pet)
    if status_after(pet, patch) != pet.status:
        yield from _require_no_order(pet_id)
    changed = patched(pet, patch)
    if strict_categories and changed.categoryId != pet.categoryId:
        yield from require_category(changed.categoryId)
    if changed != pet:
        yield Statement(_UPDATE, (*_values(changed), pet_id), name="update_pet")
    if changed.name != pet.name:
        # The database has cleared the key of the old name: an older version would not know it.
        yield Statement(
            "UPDATE pets SET name_key = ?1 WHERE id = ?2",
            (search_key(changed.name), pet_id),
            name="update_pet_name_key",
        )
    return changed


def delete_pet(pet_id: int, now: Milliseconds, check: Callable[[Pet], None]) -> Unit[None]:
    """Delete a pet that passes ``check`` as it is at ``now``.

    Raises:
        NotFound: no pet has this id.
        PetReserved: an open order reserves it.
    """
    check((yield from _locked(pet_id, now)))
    yield from _require_no_order(pet_id)
    yield Statement("DELETE FROM pets WHERE id = ?1", (pet_id,), name="delete_pet")


def _locked(pet_id: int, now: Milliseconds) -> Unit[Pet]:
    """Return a pet as it is at ``now``, and lock its row."""
    yield from free_if_lapsed(pet_id, now)
    sql = f"{_SELECT} WHERE id = ?1 /*pg FOR UPDATE */"
    rows = yield Statement(sql, (pet_id,), name="lock_pet")
    return found(rows, pet_of, "pet", pet_id)


def _require_no_order(pet_id: int) -> Unit[None]:
    rows = yield Statement(
        "SELECT id, status FROM orders WHERE pet_id = ?1 AND status IN ('placed', 'approved')",
        (pet_id,),
        name="select_open_order",
    )
    for order_id, status in rows:
        msg = f"order {order_id}, which is {status}, holds pet {pet_id}"
        raise PetReserved(msg)


def pet_of(row: Row) -> Pet:
    """Return the pet in a row: its id, name, category and status."""
    pet_id, name, category_id, status = row
    return Pet(pet_id, name, category_id, UNSET if status is None else status)


def _new_row(new: NewPet) -> tuple[Value, ...]:
    return (*_values(new), search_key(new.name))


def _values(pet: NewPet | Pet) -> tuple[Value, ...]:
    return (pet.name, pet.categoryId, None if pet.status is UNSET else pet.status)
