"""Animals in SQL."""

from collections.abc import Iterable, Sequence
from itertools import chain, islice

from msgspec import UNSET

from petstore.databases.contract import Row, Statement, Unit, Value
from petstore.databases.pages import select_page
from petstore.domain.pets import Inventory, NewPet, Pet, PetFilter, PetStatus

_SELECT = "SELECT id, name, category_id, status FROM pets"
_INSERT = "INSERT INTO pets (name, category_id, status) VALUES"
_ROWS_AT_ONCE = 100

SELECT_INVENTORY = Statement(
    "SELECT status, CAST(sum(pets) AS BIGINT) FROM inventory GROUP BY status",
    name="select_inventory",
)


def add_pet(new: NewPet) -> Unit[Pet]:
    """Add an animal and return it with the id it was given."""
    sql = f"{_INSERT} (?1, ?2, ?3) /*pg RETURNING id */"
    ((pet_id,),) = yield Statement(sql, _values(new), gives_id=True, name="insert_pet")
    return Pet(pet_id, new.name, new.categoryId, new.status)


def add_pets(news: Iterable[NewPet]) -> Unit[None]:
    """Add many animals in the order given, a hundred in each trip to the database."""
    rows = map(_values, news)
    while some := list(islice(rows, _ROWS_AT_ONCE)):
        places = ", ".join(f"(?{n}, ?{n + 1}, ?{n + 2})" for n in range(1, 3 * len(some), 3))
        yield Statement(f"{_INSERT} {places}", tuple(chain.from_iterable(some)), name="insert_pets")


def select_pet(pet_id: int) -> Statement:
    """Return the SELECT of one animal."""
    return Statement(f"{_SELECT} WHERE id = ?1", (pet_id,), name="select_pet")


def hold_pet(pet_id: int) -> Statement:
    """Return the SELECT of one animal that nobody else changes until the unit of work ends."""
    return Statement(f"{_SELECT} WHERE id = ?1 /*pg FOR UPDATE */", (pet_id,), name="lock_pet")


def select_pets(wanted: PetFilter, after: int | None, count: int) -> Statement:
    """Return the SELECT of the first ``count`` animals with an id above ``after``, by id."""
    filters = {"status": wanted.status, "category_id": wanted.category_id, "id": wanted.ids}
    return select_page("select_pets", _SELECT, filters, after, count)


def select_pet_of_category(category_id: int) -> Statement:
    """Return the SELECT of the first animal of a category, if it has any."""
    return Statement(
        "SELECT id FROM pets WHERE category_id = ?1 ORDER BY id LIMIT 1",
        (category_id,),
        name="select_pet_of_category",
    )


def update_pet(pet: Pet) -> Statement:
    """Return the UPDATE that makes an animal what ``pet`` is."""
    return Statement(
        "UPDATE pets SET name = ?1, category_id = ?2, status = ?3 WHERE id = ?4",
        (*_values(pet), pet.id),
        name="update_pet",
    )


def move_pet(pet_id: int, status: PetStatus, after: PetStatus | None = None) -> Statement:
    """Return the UPDATE of an animal's status, only where it is now ``after`` if that is given."""
    if after is None:
        return Statement(
            "UPDATE pets SET status = ?1 WHERE id = ?2 RETURNING id",
            (status, pet_id),
            name="update_pet_status",
        )
    return Statement(
        "UPDATE pets SET status = ?1 WHERE id = ?2 AND status = ?3 RETURNING id",
        (status, pet_id, after),
        name="update_pet_status",
    )


def free_pets(pet_ids: Sequence[int]) -> Statement:
    """Return the UPDATE that makes many animals available."""
    places = ", ".join(f"?{n}" for n in range(1, len(pet_ids) + 1))
    return Statement(
        f"UPDATE pets SET status = 'available' WHERE id IN ({places})",  # noqa: S608 - only names
        pet_ids,
        name="release_pets",
    )


def delete_pet(pet_id: int) -> Statement:
    """Return the DELETE of one animal."""
    return Statement("DELETE FROM pets WHERE id = ?1", (pet_id,), name="delete_pet")


def pet_of(row: Row) -> Pet:
    """Return the animal in a row of the SELECTs above."""
    pet_id, name, category_id, status = row
    return Pet(pet_id, name, category_id, UNSET if status is None else status)


def inventory_of(rows: list[Row]) -> Inventory:
    """Return the counts in the rows of ``SELECT_INVENTORY``."""
    return Inventory(**dict(rows))


def _values(pet: NewPet | Pet) -> tuple[Value, ...]:
    return (pet.name, pet.categoryId, None if pet.status is UNSET else pet.status)
