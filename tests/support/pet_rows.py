"""The rows of pets, as tests of the databases read them."""

from petstore.databases.contract import Statement
from petstore.pets.model import PETS

_SELECT = f"SELECT {PETS.columns} FROM pets"  # noqa: S608 - only names


def select_pet(pet_id: int) -> Statement:
    return Statement(f"{_SELECT} WHERE id = ?1", (pet_id,), name="select_pet")


def select_pets(count: int, after: int = 0) -> Statement:
    sql = f"{_SELECT} WHERE id > ?1 ORDER BY id LIMIT ?2"
    return Statement(sql, (after, count), name="select_pets")
