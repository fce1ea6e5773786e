"""List, add, change and delete animals."""

from collections.abc import Callable

from petstore.clock import Milliseconds
from petstore.databases import pets
from petstore.databases.categories import keep_category
from petstore.databases.contract import Reader, Row, Store, Unit
from petstore.databases.orders import order_of, select_open_order
from petstore.domain.pets import Inventory, NewPet, Pet, PetFilter, PetPatch, patched, status_after
from petstore.errors import NotFound, PetReserved, UnknownCategory
from petstore.store.lapses import free_if_lapsed
from petstore.store.pages import Page, page_of


async def list_pets(store: Reader, wanted: PetFilter, after: int | None, limit: int) -> Page[Pet]:
    """Return the first ``limit`` animals with an id above ``after``, by ascending id."""
    rows = await store.read(pets.select_pets(wanted, after, limit + 1))
    return page_of(rows, limit, pets.pet_of)


async def get_pet(store: Store, pet_id: int) -> Pet:
    """Return one animal.

    Raises:
        NotFound: there is none with this id.
    """
    return _found(await store.read(pets.select_pet(pet_id)), pet_id)


async def get_inventory(store: Store) -> Inventory:
    """Return how many animals there are of each status."""
    return pets.inventory_of(await store.read(pets.SELECT_INVENTORY))


def create_pet(new: NewPet, *, strict_categories: bool) -> Unit[Pet]:
    """Add an animal and return it.

    Raises:
        UnknownCategory: its category is not registered, and must be.
    """
    if strict_categories:
        yield from _require_category(new.categoryId)
    return (yield from pets.add_pet(new))


def update_pet(
    pet_id: int,
    patch: PetPatch,
    now: Milliseconds,
    check: Callable[[Pet], None],
    *,
    strict_categories: bool,
) -> Unit[Pet]:
    """Change an animal that passes ``check`` as it is at ``now``, and return it.

    Raises:
        NotFound: there is none with this id.
        IllegalTransition: its status cannot follow the present one.
        PetReserved: an open order holds it, and its status would change.
        UnknownCategory: its new category is not registered, and must be.
        PetstoreError: what ``check`` raises.
    """
    pet = yield from _held(pet_id, now)
    check(pet)
    if status_after(pet, patch) != pet.status:
        yield from _require_free(pet_id)
    changed = patched(pet, patch)
    if strict_categories and changed.categoryId != pet.categoryId:
        yield from _require_category(changed.categoryId)
    if changed != pet:
        yield pets.update_pet(changed)
    return changed


def delete_pet(pet_id: int, now: Milliseconds, check: Callable[[Pet], None]) -> Unit[None]:
    """Delete an animal that passes ``check`` as it is at ``now``.

    Raises:
        NotFound: there is none with this id.
        PetReserved: an open order holds it.
        PetstoreError: what ``check`` raises.
    """
    check((yield from _held(pet_id, now)))
    yield from _require_free(pet_id)
    yield pets.delete_pet(pet_id)


def unknown_category(category_id: int) -> UnknownCategory:
    """Return the refusal of an animal whose category is not registered."""
    msg = f"categoryId: expected a registered category; there is no category {category_id}"
    return UnknownCategory(msg)


def _held(pet_id: int, now: Milliseconds) -> Unit[Pet]:
    yield from free_if_lapsed(pet_id, now)
    return _found((yield pets.hold_pet(pet_id)), pet_id)


def _require_free(pet_id: int) -> Unit[None]:
    rows = yield select_open_order(pet_id)
    if rows:
        order = order_of(rows[0])
        msg = f"order {order.id}, which is {order.status}, holds pet {pet_id}"
        raise PetReserved(msg)


def _require_category(category_id: int) -> Unit[None]:
    if not (yield keep_category(category_id)):
        raise unknown_category(category_id)


def _found(rows: list[Row], pet_id: int) -> Pet:
    if not rows:
        msg = f"there is no pet {pet_id}"
        raise NotFound(msg)
    return pets.pet_of(rows[0])
