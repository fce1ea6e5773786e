"""Pets as rows of the database."""

from msgspec import UNSET

from petstore.databases.contract import Row, Value
from petstore.domain.names import search_key
from petstore.pets.model import NewPet, Pet

VALUES = ("name", "category_id", "status")
"""The columns that a client gives, in the order of ``values_of``."""

COLUMNS = f"id, {', '.join(VALUES)}"
"""The columns of ``pet_of``."""


def pet_of(row: Row) -> Pet:
    """Return the pet in a row of ``COLUMNS``."""
    pet_id, name, category_id, status = row
    return Pet(pet_id, name, category_id, UNSET if status is None else status)


def values_of(pet: NewPet | Pet) -> tuple[Value, ...]:
    """Return the values of ``VALUES``."""
    return (pet.name, pet.category_id, None if pet.status is UNSET else pet.status)


def new_row_of(new: NewPet) -> tuple[Value, ...]:
    """Return the values of ``VALUES``, and the key of the name."""
    return (*values_of(new), search_key(new.name))
