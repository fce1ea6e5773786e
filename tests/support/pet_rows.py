"""The rows of animals, as tests of the databases read them."""

from msgspec import UNSET

from petstore.databases.contract import Row, Statement
from petstore.pets.model import Pet

_SELECT = "SELECT id, name, category_id, status FROM pets"


def select_pet(pet_id: int) -> Statement:
    """Return the SELECT of one animal."""
    return Statement(f"{_SELECT} WHERE id = ?1", (pet_id,), name="select_pet")


def select_pets(count: int, after: int = 0) -> Statement:
    """Return the SELECT of the first ``count`` animals with an id above ``after``."""
    sql = f"{_SELECT} WHERE id > ?1 ORDER BY id LIMIT ?2"
    return Statement(sql, (after, count), name="select_pets")


def pet_of(row: Row) -> Pet:
    """Return the animal in a row."""
    pet_id, name, category_id, status = row
    return Pet(pet_id, name, category_id, UNSET if status is None else status)
