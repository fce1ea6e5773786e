"""List, add, change and delete categories."""

from collections.abc import Callable

from msgspec import UNSET

from petstore.databases import categories
from petstore.databases.contract import Duplicate, Reader, Row, Store, Unit
from petstore.databases.pets import select_pet_of_category
from petstore.domain.categories import Category, CategoryPatch, NewCategory, name_key, patched
from petstore.errors import CategoryInUse, CategoryNameTaken, NotFound
from petstore.store.pages import Page, page_of


async def list_categories(store: Reader, after: int | None, limit: int) -> Page[Category]:
    """Return the first ``limit`` categories with an id above ``after``, by ascending id."""
    rows = await store.read(categories.select_categories(after, limit + 1))
    return page_of(rows, limit, categories.category_of)


async def get_category(store: Store, category_id: int) -> Category:
    """Return one category.

    Raises:
        NotFound: there is none with this id.
    """
    return _found(await store.read(categories.select_category(category_id)), category_id)


def create_category(new: NewCategory) -> Unit[Category]:
    """Add a category and return it.

    Raises:
        CategoryNameTaken: there is one of this name.
    """
    while not (rows := (yield categories.insert_category(new))):
        yield from _require_name(new.name)
    return Category(rows[0][0], new.name, new.description)


def update_category(
    category_id: int, patch: CategoryPatch, check: Callable[[Category], None]
) -> Unit[Category]:
    """Change a category that passes ``check``, and return it.

    Raises:
        NotFound: there is none with this id.
        CategoryNameTaken: there is another of this name.
        PetstoreError: what ``check`` raises.
    """
    category = yield from _held(category_id)
    check(category)
    changed = patched(category, patch)
    if patch.name is not UNSET and name_key(patch.name) != name_key(category.name):
        yield from _require_name(patch.name)
    if changed == category:
        return category
    try:
        yield categories.update_category(changed)
    except Duplicate:
        msg = f"name: another category has just been called {changed.name!r}"
        raise CategoryNameTaken(msg) from None
    return changed


def delete_category(category_id: int, check: Callable[[Category], None]) -> Unit[None]:
    """Delete a category that passes ``check``.

    Raises:
        NotFound: there is none with this id.
        CategoryInUse: an animal belongs to it.
        PetstoreError: what ``check`` raises.
    """
    check((yield from _held(category_id)))
    yield from _require_unused(category_id)
    yield categories.delete_category(category_id)


def _held(category_id: int) -> Unit[Category]:
    return _found((yield categories.hold_category(category_id)), category_id)


def _require_name(name: str) -> Unit[None]:
    rows = yield categories.select_category_named(name)
    if rows:
        taken = categories.category_of(rows[0])
        msg = f"name: category {taken.id} is called {taken.name!r}"
        raise CategoryNameTaken(msg)


def _require_unused(category_id: int) -> Unit[None]:
    rows = yield select_pet_of_category(category_id)
    if rows:
        msg = f"pet {rows[0][0]}, and perhaps others, belong to category {category_id}"
        raise CategoryInUse(msg)


def _found(rows: list[Row], category_id: int) -> Category:
    if not rows:
        msg = f"there is no category {category_id}"
        raise NotFound(msg)
    return categories.category_of(rows[0])
