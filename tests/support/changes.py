"""The units of work that change the store, at one moment."""

from collections.abc import Iterable
from typing import Any

from petstore.categories import store as categories
from petstore.categories.model import Category, CategoryCreate, CategoryPatch
from petstore.databases.contract import Unit
from petstore.events.store import Change
from petstore.pets import store as pets
from petstore.pets.model import NewPet, Pet
from support.manual_clock import ManualClock

NOW = ManualClock().now


def create_pet(new: NewPet, now: int = NOW, **others: Any) -> Unit[Pet]:
    return pets.create_pet(Change(now, **others), new)


def create_pets(news: Iterable[NewPet], now: int = NOW, **others: Any) -> Unit[list[Pet]]:
    return pets.create_pets(Change(now, **others), news)


def create_category(new: CategoryCreate, now: int = NOW, **others: Any) -> Unit[Category]:
    return categories.create_category(Change(now, **others), new)


def update_category(category_id: int, patch: CategoryPatch) -> Unit[Category]:
    return categories.update_category(Change(NOW), category_id, patch)


def delete_category(category_id: int) -> Unit[None]:
    return categories.delete_category(Change(NOW), category_id)


def without_event(unit: Unit[Category]) -> Unit[None]:
    """Do what a unit of one statement and its event does, but for the event."""
    rows = yield next(unit)
    assert rows
