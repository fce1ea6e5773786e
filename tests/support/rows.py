"""Statements and rows: of pets and orders, and those of any operation, recorded."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any

from msgspec.structs import replace

from petstore.databases.contract import Row, Statement, T, Unit, Value
from petstore.errors import NotFound
from petstore.orders.model import Order
from petstore.pets.model import PETS

_SELECT = f"SELECT {PETS.columns} FROM pets"  # noqa: S608 - only names


def select_pet(pet_id: int) -> Statement:
    return Statement(f"{_SELECT} WHERE id = ?1", (pet_id,), name="select_pet")


def select_pets(count: int, after: int = 0) -> Statement:
    sql = f"{_SELECT} WHERE id > ?1 ORDER BY id LIMIT ?2"
    return Statement(sql, (after, count), name="select_pets")


def order_row(
    order_id: int,
    pet_id: int,
    status: str = "placed",
    placed_at: int = 0,
    reserved_until: int | None = None,
    **others: Value,
) -> Row:
    fields: dict[str, Value] = dict(others)
    fields |= {"id": order_id, "pet_id": pet_id, "quantity": 1, "status": status}
    fields |= {"complete": status == "delivered", "placed_at": placed_at}
    fields["reserved_until"] = reserved_until
    assert fields.keys() <= {*Order.__struct_fields__}
    return tuple(fields.get(name) for name in Order.__struct_fields__)


class RecordingStore:
    """Records each run of a statement, and finds the ``rows`` given for its name, or none."""

    def __init__(self, rows: Mapping[str, list[Row]]) -> None:
        self._rows = rows
        self.statements: list[Statement] = []

    async def version(self) -> None:
        """Tell nothing: the statements of a store that cannot tell are recorded too."""

    async def read(self, statement: Statement) -> list[Row]:
        runs = [statement.parameters] if statement.rows is None else statement.rows
        self.statements += [replace(statement, parameters=each) for each in runs]
        return self._rows.get(statement.name, [])

    async def write(self, unit: Unit[T]) -> T:
        rows: Any = None
        while True:
            try:
                statement = unit.send(rows)
            except StopIteration as done:
                result: T = done.value
                return result
            rows = await self.read(statement)


def statements_of(
    operation: Callable[[Any], Coroutine[Any, Any, Any]],
    rows: Mapping[str, list[Row]] | None = None,
) -> list[Statement]:
    """Return the statements of an ``operation`` on a store, which may find nothing."""
    store = RecordingStore(rows or {})
    with suppress(NotFound):
        asyncio.run(operation(store))
    return store.statements
