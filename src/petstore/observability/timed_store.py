"""A store that is timed, statement by statement."""

from collections.abc import Callable
from time import perf_counter

from petstore.databases.contract import Row, Statement, Store, T, Unit
from petstore.errors import Unavailable
from petstore.observability.figures import QUERIES, TRANSACTIONS, Labels, Spread, observe
from petstore.observability.observed_units import observed


class TimedStore:
    """Times the statements and transactions of ``store``, and counts what it could not do.

    ``queries``, ``transactions`` and ``errors`` are where they are noted, by ``name`` and by the
    name of the statement.
    """

    def __init__(
        self,
        store: Store,
        name: str,
        queries: dict[Labels, Spread],
        transactions: dict[Labels, Spread],
        errors: dict[Labels, float],
    ) -> None:
        self._store = store
        self._name = name
        self._queries = queries
        self._transaction = transactions[(name,)]
        self._errors = errors
        errors[(name,)] = 0  # Prometheus sees no rise in what was not there before
        self.migrate, self.open, self.close = store.migrate, store.open, store.close
        self.version = store.version

    async def check(self) -> None:
        """Return if the database is there and can be read.

        Raises:
            Unavailable: it is not, or can not.
        """
        try:
            await self._store.check()
        except Unavailable:
            self._errors[(self._name,)] += 1
            raise

    async def read(self, statement: Statement) -> list[Row]:
        """Run one SELECT on what has been committed.

        Raises:
            Unavailable: the database is out of reach or failing.
        """
        started = perf_counter()
        try:
            return await self._store.read(statement)
        except Unavailable:
            self._errors[(self._name,)] += 1
            raise
        finally:
            seconds = perf_counter() - started
            observe(self._queries[self._name, statement.name], QUERIES, seconds)

    async def write(self, unit: Unit[T]) -> T:
        """Run a unit of work in a transaction and return its result once it is durable.

        Raises:
            Unavailable: the database is out of reach, full or failing; not acknowledged.
            PetstoreError: what the unit itself raised; it changed nothing.
        """
        started = perf_counter()
        try:
            return await self._store.write(observed(unit, self._begin))
        except Unavailable:
            self._errors[(self._name,)] += 1
            raise
        finally:
            observe(self._transaction, TRANSACTIONS, perf_counter() - started)

    def _begin(self, statement: Statement) -> Callable[[], None]:
        spread = self._queries[self._name, statement.name]
        started = perf_counter()
        return lambda: observe(spread, QUERIES, perf_counter() - started)
