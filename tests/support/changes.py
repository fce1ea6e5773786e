"""The units of work that change the store, at one moment."""

from collections.abc import Callable
from functools import partial

from petstore.categories import store as categories
from petstore.categories.model import Category, CategoryPatch
from petstore.databases.contract import Unit
from petstore.pets import store as pets
from support.manual_clock import ManualClock

NOW = ManualClock().now

create_pet = partial(pets.create_pet, now=NOW)
create_pets = partial(pets.create_pets, now=NOW)
create_category = partial(categories.create_category, now=NOW)


def update_category(
    category_id: int, patch: CategoryPatch, check: Callable[[object], None]
) -> Unit[Category]:
    """Change a category."""
    return categories.update_category(category_id, patch, NOW, check)


def delete_category(category_id: int, check: Callable[[object], None]) -> Unit[None]:
    """Delete a category."""
    return categories.delete_category(category_id, NOW, check)


def without_event(unit: Unit[Category]) -> Unit[None]:
    """Do what a unit of one statement and its event does, but for the event."""
    rows = yield next(unit)
    assert rows
