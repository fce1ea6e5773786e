"""List, add, change and delete categories."""

from collections.abc import Collection, Sequence
from functools import partial

from msgspec import UNSET, UnsetType
from msgspec.structs import astuple

from petstore.categories.model import CATEGORIES, Category, CategoryCreate, CategoryPatch
from petstore.databases.contract import (
    Reader,
    Statement,
    Unit,
    found,
    placeholder_list,
    placeholders,
)
from petstore.databases.pages import Page, read_page
from petstore.domain.decoding import at_places
from petstore.domain.fields import merged
from petstore.domain.names import name_key
from petstore.errors import CategoryInUse, CategoryNameTaken, UnknownCategory
from petstore.events.model import resource_event
from petstore.events.store import Change

_SELECT = f"SELECT {CATEGORIES.columns} FROM categories"  # noqa: S608 - only names
_GIVEN = CategoryCreate.__struct_fields__
_WIDTH = len(_GIVEN)


async def list_categories(
    store: Reader, after: int | None, limit: int, ids: list[int] | UnsetType = UNSET
) -> Page[Category]:
    filters = {"id": ids}
    return await read_page(
        store, "select_categories", _SELECT, filters, after, limit, CATEGORIES.read
    )


async def find_named(reader: Reader, name: str) -> list[Category]:
    return [CATEGORIES.read(row) for row in await reader.read(_named(name))]


async def get_category(store: Reader, category_id: int) -> Category:
    select = Statement(
        f"{_SELECT} WHERE id = ?1", (category_id,), by_id=True, name="select_category"
    )
    return found(await store.read(select), CATEGORIES.read, "category", category_id)


async def ids_of_categories(reader: Reader, keys: Collection[str]) -> dict[str, int]:
    """Return the ids of at most a hundred categories by the ``name_key`` of their names."""
    if not keys:
        return {}
    sql = f"SELECT name_key, id FROM categories WHERE name_key IN {placeholders(len(keys))}"  # noqa: S608
    return dict(await reader.read(Statement(sql, tuple(keys), name="select_category_ids")))


def id_of_category(name: str) -> Unit[int]:
    category_id: int = (yield _named(name))[0][0]
    return category_id


def create_category(change: Change, new: CategoryCreate) -> Unit[Category]:
    insert = Statement(
        f"INSERT INTO categories ({', '.join(_GIVEN)}, name_key)"  # noqa: S608 - only names
        f" VALUES {placeholders(_WIDTH + 1)} ON CONFLICT (name_key) DO NOTHING RETURNING id",
        (*CATEGORIES.values(new, _GIVEN), name_key(new.name)),
        name="insert_category",
    )
    while not (rows := (yield insert)):
        yield from _require_free_name(new.name)
    category = Category(rows[0][0], *astuple(new))
    yield change.record(resource_event("category.created", category))
    return category


def update_category(change: Change, category_id: int, patch: CategoryPatch) -> Unit[Category]:
    category = yield from _locked(change, category_id)
    changed = merged(category, patch)
    if patch.name is not UNSET and name_key(patch.name) != name_key(category.name):
        yield from _require_free_name(patch.name)
    if changed == category:
        return category
    taken = f"name: another category has just got the name {changed.name!r}"
    yield Statement(
        f"UPDATE categories SET ({', '.join(_GIVEN)}, name_key)"  # noqa: S608 - only names
        f" = {placeholders(_WIDTH + 1)} WHERE id = ?{_WIDTH + 2}",
        (*CATEGORIES.values(changed, _GIVEN), name_key(changed.name), category_id),
        if_taken=partial(CategoryNameTaken, taken),
        name="update_category",
    )
    yield change.record(resource_event("category.updated", changed, category))
    return changed


def delete_category(change: Change, category_id: int) -> Unit[None]:
    category = yield from _locked(change, category_id)
    pets = yield Statement(
        "SELECT id FROM pets WHERE category_id = ?1 ORDER BY id LIMIT 1",
        (category_id,),
        name="select_pet_of_category",
    )
    if pets:
        raise CategoryInUse(f"category {category_id} is not empty (for example, pet {pets[0][0]})")
    yield Statement("DELETE FROM categories WHERE id = ?1", (category_id,), name="delete_category")
    yield change.record(resource_event("category.deleted", category))


def require_category(category_id: int) -> Unit[None]:
    """Keep a category from being deleted until the unit of work ends."""
    if not (yield from lock_categories({category_id})):
        raise unknown_category(category_id)


def require_categories(ids: Sequence[int]) -> Unit[None]:
    registered = yield from lock_categories(set(ids))
    unknown = [
        (place, unknown_category(category_id).message)
        for place, category_id in enumerate(ids)
        if category_id not in registered
    ]
    if unknown:
        raise UnknownCategory(at_places(unknown))


def lock_categories(ids: Collection[int]) -> Unit[set[int]]:
    """Keep categories from being deleted until the unit of work ends; return which there are."""
    some = placeholder_list(1, ids)
    sql = f"SELECT id FROM categories WHERE id IN ({some}) ORDER BY id /*pg FOR KEY SHARE */"  # noqa: S608
    rows = yield Statement(sql, tuple(ids), name="lock_categories")
    return {category_id for (category_id,) in rows}


def unknown_category(category_id: int, field: str = "categoryId") -> UnknownCategory:
    msg = f"{field}: expected a registered category; there is no category {category_id}"
    return UnknownCategory(msg)


def _locked(change: Change, category_id: int) -> Unit[Category]:
    sql = f"{_SELECT} WHERE id = ?1 /*pg FOR UPDATE */"
    rows = yield Statement(sql, (category_id,), name="lock_category")
    category = found(rows, CATEGORIES.read, "category", category_id)
    change.check(category)
    return category


def _require_free_name(name: str) -> Unit[None]:
    rows = yield _named(name)
    if rows:
        taken = CATEGORIES.read(rows[0])
        raise CategoryNameTaken(f"name: category {taken.id} already has the name {taken.name!r}")


def _named(name: str) -> Statement:
    sql = f"{_SELECT} WHERE name_key = ?1"
    return Statement(sql, (name_key(name),), name="select_category_named")
