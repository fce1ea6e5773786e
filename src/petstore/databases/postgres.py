"""The store on a PostgreSQL server, which many processes may share.

Only prepared statements and the timeout of reads outlive a transaction. Without those two, a pooler
may stand in between.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import lru_cache, partial
from itertools import chain
from typing import Any, Generic

import asyncpg  # type: ignore[import-untyped]
from msgspec import Struct
from msgspec.structs import replace

from petstore.clock import SECOND, Milliseconds
from petstore.coalescing import Batcher
from petstore.databases.contract import (
    Row,
    Schema,
    Statement,
    T,
    Unit,
    Value,
    as_unavailable,
    unavailable,
)
from petstore.databases.migrations.postgres import inspect, migrate
from petstore.databases.postgres_connection import (
    CONNECTION_ERRORS,
    ERRORS,
    Connection,
    PostgresPool,
    connect,
)
from petstore.errors import InternalError

_PING = Statement("SELECT revision FROM api_key_revision", name="ping")
_SNAPSHOT = Statement("SELECT CAST(pg_current_snapshot() AS TEXT)", name="select_snapshot")
_MIGRATION_SECONDS = 60
_CALLS_AT_ONCE = 4096
_UNITS_AT_ONCE = 100
_SQL_AT_ONCE = 1024
_ROWS_AT_ONCE = 256
_ONE_ID = "= ?1"
# The SELECT within keeps the plan: without it, the server would plan for the ids of each query.
_MANY_IDS = "= ANY(CAST((SELECT string_to_array(?1, ' ')) AS BIGINT[]))"
_TAKING_IDS = 0.8  # the part of the timeout of a change that taking its ids may need


class Deferred(Struct, gc=False):
    """Statements that waited, as one in PostgreSQL's form; withdrawn once no caller waits."""

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
        self._send(None)

    async def defer(self, next_id: Callable[[str], Awaitable[int]]) -> None:
        while (statement := self.statement) and (statement.returns_id or self._may_wait(statement)):
            rows: list[Row] = []
            if statement.returns_id:
                rows = [(await next_id(statement.returns_id),)]
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
        """Run all that waits, then ``statement``, which may not, and continue with the next one."""
        await self.run_deferred(connection)
        try:
            rows = await fetch(connection, statement)
        except asyncpg.UniqueViolationError as error:
            if statement.if_taken is None:
                raise
            raise statement.if_taken() from error
        self._send(rows)

    def _may_wait(self, statement: Statement) -> bool:
        # The order in which the parts of one statement run is not defined.
        return statement.deferrable and all(each.name != statement.name for each in self._waiting)

    def _send(self, rows: list[Row] | None) -> None:
        try:
            self.statement = next(self._unit) if rows is None else self._unit.send(rows)
        except StopIteration as finished:
            self.statement, self.result = None, finished.value


class PostgresStore:
    """A read or a change that takes longer than ``timeout`` is refused."""

    def __init__(self, url: str, timeout: Milliseconds = 1500, connections: int = 10) -> None:
        self._timeout = seconds = timeout / SECOND
        self.connections = connections
        self._versions = Batcher[None, str](self._read_versions, _CALLS_AT_ONCE, connections)
        # It ends before the changes that wait for it: otherwise a next one would join this one.
        self._ids = Batcher[str, int](self._next_ids, _CALLS_AT_ONCE, 1, seconds * _TAKING_IDS)
        self._deferred: Callable[[str], Batcher[Deferred, None]] = lru_cache(_SQL_AT_ONCE)(
            lambda sql: Batcher(partial(self._run_together, sql), _UNITS_AT_ONCE)
        )
        self._rows: Callable[[str], Batcher[Value, list[Row]]] = lru_cache(_SQL_AT_ONCE)(
            lambda sql: Batcher(
                partial(self._read_by_ids, sql), _ROWS_AT_ONCE, connections, seconds
            )
        )
        self._units = 0
        self._has_no_unit = asyncio.Event()
        self._has_no_unit.set()
        self._connect = partial(connect, url, seconds, timeout)
        # What a stopped process has locked is free before those who wait for it get a 503.
        self._begin = (
            "BEGIN ISOLATION LEVEL READ COMMITTED;"
            f" SET LOCAL statement_timeout = {timeout};"
            f" SET LOCAL idle_in_transaction_session_timeout = {timeout * 2 // 3}"
        )

    def migrate(self) -> None:
        self._run_alone(migrate, _MIGRATION_SECONDS)

    def schema(self) -> Schema:
        return self._run_alone(inspect, self._timeout)

    def _run_alone(
        self, action: Callable[[Connection], Coroutine[Any, Any, T]], seconds: float
    ) -> T:
        async def run() -> T:
            with as_unavailable(ERRORS):
                async with asyncio.timeout(seconds):
                    connection = await self._connect()
                    try:
                        return await action(connection)
                    finally:
                        connection.terminate()

        return asyncio.run(run())

    async def open(self) -> None:
        """Get ready to connect. The server may come later: until then, everything is refused."""
        self._pool = PostgresPool(self._connect, self.connections)

    @property
    def connections_in_use(self) -> int:
        return self._pool.in_use

    async def close(self) -> None:
        await self._has_no_unit.wait()  # those that have no connection yet, too
        await self._pool.close()

    async def check(self) -> None:
        await self.read(_PING)

    async def version(self) -> str:
        return await self._versions.call(None)

    async def _read_versions(self, calls: Sequence[None]) -> list[str]:
        ((snapshot,),) = await self.read(_SNAPSHOT)
        return [snapshot] * len(calls)

    async def read(self, statement: Statement) -> list[Row]:
        """Run one SELECT on committed data; once more if the connection was lost."""
        if not statement.sql.startswith("SELECT"):
            raise InternalError("only a unit of work may change the database")
        try:
            if statement.by_id:
                return await self._rows(statement.sql).call(statement.parameters[0])
            async with asyncio.timeout(self._timeout):
                return await self._read(statement)
        except ERRORS as error:
            raise unavailable(error) from error

    async def _read_by_ids(self, sql: str, ids: Sequence[Value]) -> list[list[Row]]:
        if len(ids) == 1:
            return [await self._read(Statement(sql, ids, name="select_by_id"))]
        select = sql.removesuffix(_ONE_ID) + _MANY_IDS
        joined = " ".join(map(str, ids))
        found = await self._read(Statement(select, (joined,), name="select_by_ids"))
        rows = {row[0]: [row] for row in found}
        return [rows.get(each, []) for each in ids]

    async def _read(self, statement: Statement) -> list[Row]:
        try:
            return await self._fetch(statement)
        except CONNECTION_ERRORS:
            return await self._fetch(statement)

    async def _fetch(self, statement: Statement) -> list[Row]:
        async with self._pool.acquire() as connection:
            return await fetch(connection, statement)

    async def write(self, unit: Unit[T]) -> T:
        self._units += 1
        self._has_no_unit.clear()
        try:
            async with asyncio.timeout(self._timeout):
                work = UnitInProgress(unit)
                await work.defer(self._ids.call)
                if work.statement is not None:
                    await self._transact(work)
                elif deferred := work.take_deferred():
                    try:  # together with others that have the same SQL
                        await self._deferred(deferred.sql).call(deferred)
                    finally:
                        deferred.is_withdrawn = True  # in vain if it has run
                return work.result
        except ERRORS as error:
            raise unavailable(error) from error
        finally:
            self._units -= 1
            if not self._units:
                self._has_no_unit.set()

    async def _run_together(self, sql: str, batch: Sequence[Deferred]) -> list[Exception | None]:
        """Run ``sql`` for each unit of a batch, in one transaction: the driver pipelines them."""
        wanted = [each.parameters for each in batch if not each.is_withdrawn]
        try:
            if wanted:
                async with asyncio.timeout(self._timeout), self._pool.acquire() as connection:
                    await connection.executemany(sql, wanted)
        except Exception as error:  # noqa: BLE001 - it concerns the callers
            if len(batch) == 1 or isinstance(error, CONNECTION_ERRORS):
                return [error] * len(batch)
            # One of them is at fault. It must not fail the others.
            return [(await self._run_together(sql, [each]))[0] for each in batch]
        return [None] * len(batch)

    async def _transact(self, work: UnitInProgress[Any]) -> None:
        async with self._pool.acquire(self._begin) as connection:
            try:
                while (statement := work.statement) is not None:
                    await work.run(connection, statement)
                    await work.defer(partial(_next_id, connection))
                await work.run_deferred(connection)
            except Exception as error:
                if not isinstance(error, CONNECTION_ERRORS):
                    await connection.execute("ROLLBACK")
                raise
            # A transaction that has failed ends in a ROLLBACK even here.
            if await connection.execute("COMMIT") != "COMMIT":
                msg = "a unit of work continued after one of its statements had failed"
                raise InternalError(msg)

    async def _next_ids(self, tables: Sequence[str]) -> list[int]:
        return [new_id for (new_id,) in await self._read(_select_next_ids(tables))]


async def _next_id(connection: Connection, table: str) -> int:
    ((new_id,),) = await fetch(connection, _select_next_ids([table]))
    return int(new_id)


def _select_next_ids(tables: Sequence[str]) -> Statement:
    sql = (
        "SELECT nextval(pg_get_serial_sequence(each, 'id'))"
        " FROM unnest(string_to_array(?1, ' ')) AS tables(each)"
    )
    return Statement(sql, (" ".join(tables),), name="select_next_ids")


_PARAMETER = re.compile(r"\?(\d+)")
_POSTGRES_ONLY = re.compile(r"/\*pg (.*?) \*/")
_SQLITE_ONLY = re.compile(r"/\*sqlite\*/.*?/\*end\*/")


async def fetch(connection: Connection, statement: Statement) -> list[Row]:
    sql = postgres_sql(statement.sql)
    if statement.rows is None:
        rows = await connection.fetch(sql, *statement.parameters)
    else:
        rows = await connection.fetchmany(sql, statement.rows)
    return [tuple(row) for row in rows]


@lru_cache(maxsize=1024)
def postgres_sql(sql: str, first: int = 1) -> str:
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
