"""Animals in SQL."""

from collections.abc import Iterable

from msgspec import UNSET

from petstore.domain.pets import NewPet, Pet, PetFilter
from petstore.storage.contract import Row, Statement, Unit, Value

_COLUMNS = "id, name, category_id, status"
_INSERT = "INSERT INTO pets (name, category_id, status) VALUES (?1, ?2, ?3)"


def add_pet(new: NewPet) -> Unit[Pet]:
    """Add an animal and return it with the id it was given."""
    ((pet_id,),) = yield Statement(f"{_INSERT} RETURNING id", _values(new))
    return Pet(pet_id, new.name, new.categoryId, new.status)


def add_pets(news: Iterable[NewPet]) -> Unit[None]:
    """Add many animals in the order given."""
    for new in news:
        yield Statement(_INSERT, _values(new))


def select_pet(pet_id: int) -> Statement:
    """Return the SELECT of one animal."""
    return Statement(f"SELECT {_COLUMNS} FROM pets WHERE id = ?1", (pet_id,))  # noqa: S608


def select_pets(wanted: PetFilter, after: int | None, count: int) -> Statement:
    """Return the SELECT of the first ``count`` animals with an id above ``after``, by id."""
    parameters: list[Value] = []

    def bind(value: Value) -> str:
        parameters.append(value)
        return f"?{len(parameters)}"

    conditions = []
    if after is not None:
        conditions.append(f"id > {bind(after)}")
    if wanted.status is not None:
        conditions.append(f"status = {bind(wanted.status)}")
    if wanted.category_id is not None:
        conditions.append(f"category_id = {bind(wanted.category_id)}")
    if wanted.ids is not None:
        conditions.append(f"id IN ({', '.join(map(bind, wanted.ids))})")
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    limit = bind(count)
    return Statement(
        f"SELECT {_COLUMNS} FROM pets{where} ORDER BY id LIMIT {limit}",  # noqa: S608 - only names
        parameters,
    )


def pet_of(row: Row) -> Pet:
    """Return the animal in a row of ``select_pet`` or ``select_pets``."""
    pet_id, name, category_id, status = row
    return Pet(pet_id, name, category_id, UNSET if status is None else status)


def _values(new: NewPet) -> tuple[Value, ...]:
    return (new.name, new.categoryId, None if new.status is UNSET else new.status)
