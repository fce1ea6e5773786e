"""The statements of operations, recorded without a database."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any

from petstore.databases.contract import Row, Statement, T, Unit
from petstore.errors import NotFound


class RecordingStore:
    """Records statements, and finds the ``rows`` given for the name of each, or none."""

    def __init__(self, rows: Mapping[str, list[Row]]) -> None:
        self._rows = rows
        self.statements: list[Statement] = []

    async def version(self) -> None:
        """Tell nothing: the statements of a store that cannot tell are recorded too."""

    async def read(self, statement: Statement) -> list[Row]:
        self.statements.append(statement)
        return self._rows.get(statement.name, [])

    async def write(self, unit: Unit[T]) -> T:
        """Record the statements of a unit of work, and return its result."""
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
