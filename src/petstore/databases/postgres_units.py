"""Units of work on PostgreSQL, in few round trips.

Statements that may wait run as one: before the next that may not, or at the end of the unit. If no
other ran before, this one is all of the transaction: it needs no BEGIN and no COMMIT, and runs
together with those of other units.
"""

import re
from collections.abc import Awaitable, Callable
from functools import lru_cache
from itertools import chain
from typing import Generic

import asyncpg  # type: ignore[import-untyped]
from msgspec import Struct
from msgspec.structs import replace

from petstore.databases.contract import Duplicate, Row, Statement, T, Unit, Value
from petstore.databases.postgres_connection import Connection

_PARAMETER = re.compile(r"\?(\d+)")
_POSTGRES_ONLY = re.compile(r"/\*pg (.*?) \*/")
_SQLITE_ONLY = re.compile(r"/\*sqlite\*/.*?/\*end\*/")


class Deferred(Struct, gc=False):
    """Statements that waited, as one: SQL in PostgreSQL's form, and its parameters.

    Once nobody waits for it any more, it ``is_withdrawn``.
    """

    sql: str
    parameters: list[Value]
    is_withdrawn: bool = False


class UnitInProgress(Generic[T]):
    """A unit of work with its next ``statement`` or, once that is ``None``, its ``result``."""

    statement: Statement | None
    result: T

    def __init__(self, unit: Unit[T]) -> None:
        self._unit = unit
        self._waiting: list[Statement] = []
        self._step(lambda: next(unit))

    async def defer(self, next_id: Callable[[str], Awaitable[int]]) -> None:
        while (statement := self.statement) and (statement.gives_id or self._may_wait(statement)):
            rows: list[Row] = []
            if statement.gives_id:
                rows = [(await next_id(statement.gives_id),)]
                statement = replace(statement, parameters=(*statement.parameters, *rows[0]))
            self._waiting.append(statement)
            self._send(rows)

    def take_deferred(self) -> Deferred | None:
        """Return all that waits, if anything does, as one statement for the caller to run."""
        if not self._waiting:
            return None
        sql = _sql_of_all(*((each.sql, len(each.parameters)) for each in self._waiting))
        parameters = [*chain.from_iterable(each.parameters for each in self._waiting)]
        self._waiting.clear()
        return Deferred(sql, parameters)

    async def run_deferred(self, connection: Connection) -> None:
        if deferred := self.take_deferred():
            await connection.fetch(deferred.sql, *deferred.parameters)

    async def run(self, connection: Connection, statement: Statement) -> None:
        """Run all that waits, then ``statement``, which may not, and go on to the next one."""
        await self.run_deferred(connection)
        try:
            rows = await fetch(connection, statement)
        except asyncpg.UniqueViolationError as error:
            reason = str(error)
            self._step(lambda: self._unit.throw(Duplicate(reason)))
        else:
            self._send(rows)

    def _may_wait(self, statement: Statement) -> bool:
        # The order in which the parts of one statement run is not defined.
        return statement.may_wait and all(each.name != statement.name for each in self._waiting)

    def _send(self, rows: list[Row]) -> None:
        self._step(lambda: self._unit.send(rows))

    def _step(self, step: Callable[[], Statement]) -> None:
        try:
            self.statement = step()
        except StopIteration as finished:
            self.statement, self.result = None, finished.value


async def fetch(connection: Connection, statement: Statement) -> list[Row]:
    rows = await connection.fetch(postgres_sql(statement.sql), *statement.parameters)
    return [tuple(row) for row in rows]


@lru_cache(maxsize=1024)
def postgres_sql(sql: str, first: int = 1) -> str:
    """Return ``sql`` in PostgreSQL's form, with the parameters from the ``first`` number on."""
    text = _POSTGRES_ONLY.sub(r"\1", _SQLITE_ONLY.sub("", sql))
    return _PARAMETER.sub(lambda number: f"${int(number[1]) + first - 1}", text)


@lru_cache(maxsize=1024)
def _sql_of_all(*statements: tuple[str, int]) -> str:
    counts = [count for _, count in statements]
    *others, last = (
        postgres_sql(sql, 1 + sum(counts[:at])) for at, (sql, _) in enumerate(statements)
    )
    named = ", ".join(f"statement_{at} AS ({sql})" for at, sql in enumerate(others))
    return f"WITH {named} {last}" if others else last
