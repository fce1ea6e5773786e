"""Categories in SQL."""

from msgspec import UNSET

from petstore.databases.contract import Row, Statement, Value
from petstore.databases.pages import select_page
from petstore.domain.categories import Category, NewCategory, name_key

_SELECT = "SELECT id, name, description FROM categories"


def insert_category(new: NewCategory) -> Statement:
    """Return the INSERT of a category; its row has the id. No row if the name is taken."""
    return Statement(
        "INSERT INTO categories (name, name_key, description) VALUES (?1, ?2, ?3)"
        " ON CONFLICT (name_key) DO NOTHING RETURNING id",
        _values(new),
        name="insert_category",
    )


def select_category(category_id: int) -> Statement:
    """Return the SELECT of one category."""
    return Statement(f"{_SELECT} WHERE id = ?1", (category_id,), name="select_category")


def hold_category(category_id: int) -> Statement:
    """Return the SELECT of one category that nobody else changes until the unit of work ends.

    Nor does anybody add animals to it, where categories are strict.
    """
    return Statement(
        f"{_SELECT} WHERE id = ?1 /*pg FOR UPDATE */", (category_id,), name="lock_category"
    )


def keep_category(category_id: int) -> Statement:
    """Return the SELECT of one category that nobody deletes until the unit of work ends."""
    return Statement(
        f"{_SELECT} WHERE id = ?1 /*pg FOR KEY SHARE */", (category_id,), name="lock_category"
    )


def select_category_named(name: str) -> Statement:
    """Return the SELECT of the category that has ``name`` but for its case."""
    return Statement(
        f"{_SELECT} WHERE name_key = ?1", (name_key(name),), name="select_category_named"
    )


def select_categories(after: int | None, count: int) -> Statement:
    """Return the SELECT of the first ``count`` categories with an id above ``after``, by id."""
    return select_page("select_categories", _SELECT, {}, after, count)


def update_category(category: Category) -> Statement:
    """Return the UPDATE that makes a category what ``category`` is."""
    return Statement(
        "UPDATE categories SET name = ?1, name_key = ?2, description = ?3 WHERE id = ?4",
        (*_values(category), category.id),
        name="update_category",
    )


def delete_category(category_id: int) -> Statement:
    """Return the DELETE of one category."""
    return Statement("DELETE FROM categories WHERE id = ?1", (category_id,), name="delete_category")


def category_of(row: Row) -> Category:
    """Return the category in a row of the SELECTs above."""
    category_id, name, description = row
    return Category(category_id, name, UNSET if description is None else description)


def _values(category: NewCategory | Category) -> tuple[Value, ...]:
    description = None if category.description is UNSET else category.description
    return (category.name, name_key(category.name), description)
