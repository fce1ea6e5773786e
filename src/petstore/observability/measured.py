"""Parts of the service whose work is counted and timed; without metrics they are not used."""

from collections.abc import Callable
from time import perf_counter
from typing import get_args

from petstore.api.application import RequestObserver
from petstore.databases.contract import Duplicate, Row, Statement, Store, T, Unit
from petstore.domain.api_keys import ApiKey
from petstore.errors import Unavailable
from petstore.logs import RequestLine
from petstore.observability.metrics import (
    DATABASE_ERRORS,
    DECISIONS,
    EVENTS,
    METHODS,
    QUERIES,
    REQUESTS,
    SECONDS,
    TRANSACTIONS,
    observe,
)
from petstore.observability.registry import Registry
from petstore.rate_limits.contract import Decision, RateLimiter, Verdict
from petstore.store.events import recorded_types


def measure_requests(observer: RequestObserver, registry: Registry) -> RequestObserver:
    """Return ``observer`` so that requests are counted and timed too."""
    return _MeasuredRequests(observer, registry)


def measure_limiter(limiter: RateLimiter, registry: Registry) -> RateLimiter:
    """Return ``limiter`` so that its decisions are counted."""
    return _MeasuredLimiter(limiter, registry)


def measure_store(store: Store, name: str, registry: Registry) -> Store:
    """Return ``store``, the database of this ``name``, so that it is timed and errors counted."""
    return _MeasuredStore(store, name, registry)


def watch(unit: Unit[T], begin: Callable[[Statement], Callable[[], None]]) -> Unit[T]:
    """Return ``unit`` so that ``begin`` runs before each statement, and what it returned after it.

    Only the database works in between.
    """
    try:
        statement = next(unit)
        while True:
            end = begin(statement)
            rows: list[Row] = []
            duplicate = None
            try:
                rows = yield statement
            except Duplicate as error:
                duplicate = error
            finally:
                end()
            statement = unit.send(rows) if duplicate is None else unit.throw(duplicate)
    except StopIteration as finished:
        result: T = finished.value
        return result


class _MeasuredRequests:
    def __init__(self, observer: RequestObserver, registry: Registry) -> None:
        self._observer = observer
        self._requests = registry.samples(REQUESTS)
        self._seconds = registry.samples(SECONDS)
        self.close = observer.close

    def add(self, line: RequestLine) -> None:
        self._observer.add(line)
        operation = line.operation or "none"
        method = line.method if line.method in METHODS else "other"
        self._requests[operation, method, line.status][0] += 1
        observe(self._seconds[(operation,)], SECONDS, line.milliseconds / 1000)


class _MeasuredLimiter:
    def __init__(self, limiter: RateLimiter, registry: Registry) -> None:
        self._limiter = limiter
        samples = registry.samples(DECISIONS)
        self._decisions = {verdict: samples[(verdict,)] for verdict in get_args(Verdict)}
        self.look, self.look_address = limiter.look, limiter.look_address
        self.charge = limiter.charge
        self.heartbeat, self.save, self.close = limiter.heartbeat, limiter.save, limiter.close

    async def take(self, key: ApiKey) -> Decision:
        decision = await self._limiter.take(key)
        self._decisions[decision.verdict][0] += 1
        return decision

    async def take_address(self, address: str) -> Decision:
        decision = await self._limiter.take_address(address)
        self._decisions[decision.verdict][0] += 1
        return decision


class _MeasuredStore:
    def __init__(self, store: Store, name: str, registry: Registry) -> None:
        self._store = store
        self._name = name
        self._queries = registry.samples(QUERIES)
        self._transactions = registry.samples(TRANSACTIONS)[(name,)]
        self._errors = registry.samples(DATABASE_ERRORS)[(name,)]
        self._events = registry.samples(EVENTS)
        self.migrate, self.open, self.close = store.migrate, store.open, store.close
        self.version = store.version

    async def check(self) -> None:
        try:
            await self._store.check()
        except Unavailable:
            self._errors[0] += 1
            raise

    async def read(self, statement: Statement) -> list[Row]:
        started = perf_counter()
        try:
            return await self._store.read(statement)
        except Unavailable:
            self._errors[0] += 1
            raise
        finally:
            sample = self._queries[self._name, statement.name]
            observe(sample, QUERIES, perf_counter() - started)

    async def write(self, unit: Unit[T]) -> T:
        started = perf_counter()
        recorded: list[str] = []

        def begin(statement: Statement) -> Callable[[], None]:
            recorded.extend(recorded_types(statement))
            return self._begin(statement)

        try:
            result = await self._store.write(watch(unit, begin))
        except Unavailable:
            self._errors[0] += 1
            raise
        finally:
            observe(self._transactions, TRANSACTIONS, perf_counter() - started)
        for kind in recorded:
            self._events[(kind,)][0] += 1
        return result

    def _begin(self, statement: Statement) -> Callable[[], None]:
        sample = self._queries[self._name, statement.name]
        started = perf_counter()
        return lambda: observe(sample, QUERIES, perf_counter() - started)
