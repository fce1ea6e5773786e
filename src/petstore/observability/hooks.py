"""The hooks of the service: what metrics and traces learn, and where they learn it."""

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any, Protocol, TypeAlias

from petstore.databases.contract import Row, Statement, Store, T, Unit
from petstore.http.messages import Request
from petstore.interface.operation import Services
from petstore.logs import RequestLine

End: TypeAlias = Callable[[object], None]
"""Notes the end of some work, with its result or the error that it raised."""


class StoreObserver(Protocol):
    """Notes the work of a database as it begins. The function that it returns notes the end."""

    def read(self, statement: Statement) -> End: ...

    def write(self) -> tuple[Callable[[Statement], End], End]:
        """Note a transaction; the first function notes each of its statements."""


class Observer(Protocol):
    """Metrics or traces. It learns of each part as the service is put together."""

    def requested(self, request: Request) -> None: ...

    def responded(self, line: RequestLine) -> None:
        """Note that a request has its response, in the task of ``requested``."""

    def database(self, store: Store) -> StoreObserver: ...

    def running(self, services: Services) -> AbstractAsyncContextManager[None]:
        """Report until the block ends. The database is open."""


Observers: TypeAlias = Sequence[Observer]


def observed_store(store: Store, observers: Observers) -> Store:
    for observer in [each.database(store) for each in observers]:
        store = _ObservedStore(store, observer)
    return store


def watch(unit: Unit[T], begin: Callable[[Statement], End]) -> Unit[T]:
    """``begin`` runs before each statement, and what it returned after it."""
    try:
        statement = next(unit)
        while True:
            end = begin(statement)
            rows: list[Row] = []
            try:
                rows = yield statement
            finally:
                end(rows)
            statement = unit.send(rows)
    except StopIteration as finished:
        result: T = finished.value
        return result


class _ObservedStore:
    def __init__(self, store: Store, observer: StoreObserver) -> None:
        self._store = store
        self._observer = observer
        self.migrate, self.schema = store.migrate, store.schema
        self.open, self.close = store.open, store.close
        self.version, self.check = store.version, store.check

    def read(self, statement: Statement) -> Coroutine[Any, Any, list[Row]]:
        return _observed(partial(self._observer.read, statement), self._store.read(statement))

    async def write(self, unit: Unit[T]) -> T:
        begin, end = self._observer.write()
        return await _observed(lambda: end, self._store.write(watch(unit, begin)))


async def _observed(begin: Callable[[], End], call: Awaitable[T]) -> T:
    end = begin()
    try:
        result = await call
    except BaseException as error:
        end(error)
        raise
    end(result)
    return result
