"""The metrics of a worker: requests, decisions, the database and what the other parts count."""

import math
import resource
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from shutil import disk_usage
from time import perf_counter
from typing import TYPE_CHECKING, cast

from petstore.clock import SECOND, Clock, Milliseconds
from petstore.databases.backups import last_backup
from petstore.databases.contract import Reader, Statement, Store
from petstore.databases.sqlite import SqliteStore
from petstore.databases.sqlite_files import database_bytes
from petstore.errors import Unavailable
from petstore.events.store import oldest_unpublished
from petstore.http.messages import Request
from petstore.interface.operation import Services
from petstore.keys.model import Environment
from petstore.limits.decide import RateLimiter
from petstore.limits.memory import MemoryLimiter
from petstore.logs import RequestLine
from petstore.observability import metrics
from petstore.observability.hooks import End
from petstore.observability.metrics import METHODS, Sample, observe
from petstore.observability.registry import Registry
from petstore.periodic_tasks import PeriodicTask
from petstore.settings import is_postgres
from petstore.webhooks.deliveries import Backlog, read_backlog
from petstore.webhooks.model import DeliveryState
from petstore.webhooks.store import active_webhooks

if TYPE_CHECKING:
    from petstore.databases.postgres import PostgresStore
    from petstore.limits.redis import RedisLimiter


_FEED_LAG_SECONDS = 1


class Metrics:
    """Reports to ``registry`` what a worker does."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._requests = registry.samples(metrics.REQUESTS)
        self._seconds = registry.samples(metrics.SECONDS)

    def requested(self, request: Request) -> None:
        """Do nothing: the line of the request has its time."""

    def responded(self, line: RequestLine) -> None:
        operation = line.operation or "none"
        method = line.method if line.method in METHODS else "other"
        self._requests[operation, method, line.status][0] += 1
        observe(self._seconds[(operation,)], metrics.SECONDS, line.milliseconds / 1000)

    def database(self, store: Store) -> "_StoreMetrics":
        registry = self._registry
        if isinstance(store, SqliteStore):
            path, folder = store.path, store.path.resolve().parent
            registry.report_shared(metrics.DATABASE_BYTES, lambda: database_bytes(path))
            registry.report_shared(metrics.DISK_SIZE, lambda: disk_usage(folder).total)
            registry.report_shared(metrics.DISK_FREE, lambda: disk_usage(folder).free)
            registry.report_shared(metrics.LAST_BACKUP, lambda: last_backup(path))
        else:
            server = cast("PostgresStore", store)
            registry.report(metrics.POOL_IN_USE, lambda: server.connections_in_use)
            registry.report(metrics.POOL_SIZE, lambda: server.connections)
        return _StoreMetrics(registry)

    def running(self, services: Services) -> AbstractAsyncContextManager[None]:
        registry, settings = self._registry, services.settings
        store, clock = services.store, services.clock
        registry.report(metrics.LONG_POLLS, lambda: services.feed.waiting)
        report_limiter(registry, services.limiter)
        report_backlog(registry, store, settings.environment, clock)
        lag = 0.0  # of the oldest committed event that has no place yet: only on PostgreSQL

        async def measure_lag() -> None:
            nonlocal lag
            recorded_at = await oldest_unpublished(store)
            lag = 0 if recorded_at is None else max(0, clock() - recorded_at) / SECOND

        registry.report_shared(metrics.FEED_LAG, lambda: lag)
        if is_postgres(settings.database):
            task = PeriodicTask(measure_lag, _FEED_LAG_SECONDS, "lag of the feed not measured")
            registry.periodic_tasks.append(task)
        return registry.running()


def report_limiter(registry: Registry, limiter: RateLimiter) -> None:
    known = cast("MemoryLimiter | RedisLimiter", limiter)
    registry.report(metrics.BANS, lambda: known.bans)
    if not isinstance(known, MemoryLimiter):
        registry.report(metrics.FALLBACKS, lambda: known.fallbacks)
        registry.report(metrics.FALLBACK_WORKERS, lambda: int(known.has_fallen_back))


class _StoreMetrics:
    def __init__(self, registry: Registry) -> None:
        self._queries = registry.samples(metrics.QUERIES)
        self._transactions = registry.samples(metrics.TRANSACTIONS)[()]
        self._errors = registry.samples(metrics.DATABASE_ERRORS)[()]

    def read(self, statement: Statement) -> End:
        """Time a query; one in a transaction never ends with an error."""
        sample = self._queries[(statement.name,)]
        started = perf_counter()

        def end(outcome: object) -> None:
            observe(sample, metrics.QUERIES, perf_counter() - started)
            self._note_failure(outcome)

        return end

    def write(self) -> tuple[Callable[[Statement], End], End]:
        started = perf_counter()

        def end(outcome: object) -> None:
            observe(self._transactions, metrics.TRANSACTIONS, perf_counter() - started)
            self._note_failure(outcome)

        return self.read, end

    def _note_failure(self, outcome: object) -> None:
        self._errors[0] += isinstance(outcome, Unavailable)


_OUTCOMES: dict[DeliveryState, str] = {
    "succeeded": "succeeded",
    "pending": "failed",
    "failed": "abandoned",
}
_BACKLOG_SECONDS = 2
_BACKLOG_LASTS: Milliseconds = 15 * SECOND


def report_attempts(registry: Registry) -> Callable[[DeliveryState, float], None]:
    counts = registry.samples(metrics.DELIVERIES)
    times = registry.samples(metrics.DELIVERY_SECONDS)[()]

    def note(state: DeliveryState, seconds: float) -> None:
        counts[_OUTCOMES[state],][0] += 1
        observe(times, metrics.DELIVERY_SECONDS, seconds)

    return note


def report_backlog(
    registry: Registry, store: Reader, environment: Environment, clock: Clock
) -> None:
    """Every process of the service does so: the one that delivers may be stuck or gone.

    If the database cannot be read any more, the age is the time since it was.
    """
    backlog, read_at = Backlog(None, 0), clock()

    async def read() -> None:
        nonlocal backlog, read_at
        now = clock()
        backlog = await read_backlog(store, await active_webhooks(store, environment, now))
        read_at = now

    def age() -> float:
        since = backlog.oldest
        if since is None and clock() - read_at > _BACKLOG_LASTS:
            since = read_at
        return 0 if since is None else max(0, clock() - since) / SECOND

    registry.report_shared(metrics.OLDEST_DELIVERY, age)
    registry.report_shared(metrics.WEBHOOKS_DISABLED, lambda: backlog.disabled)
    registry.periodic_tasks.append(PeriodicTask(read, _BACKLOG_SECONDS, "deliveries not counted"))


_LAG_SECONDS = 0.1
_STATM = Path("/proc/self/statm")
_FILES = Path("/proc/self/fd")


def report_process(registry: Registry, worker: str) -> None:
    started = time.time()
    registry.report(metrics.CPU_SECONDS, time.process_time, worker)
    registry.report(metrics.START_TIME, lambda: started, worker)
    registry.report(
        metrics.MAX_FILES, lambda: resource.getrlimit(resource.RLIMIT_NOFILE)[0], worker
    )
    if _STATM.exists():  # pragma: no branch - only Linux has it
        page = resource.getpagesize()
        registry.report(
            metrics.MEMORY, lambda: int(_STATM.read_text("ascii").split()[1]) * page, worker
        )
        registry.report(metrics.OPEN_FILES, _open_files, worker)
    measure_lag = lag_meter(registry.samples(metrics.LAG)[()])
    registry.periodic_tasks.append(
        PeriodicTask(measure_lag, _LAG_SECONDS, "event loop lag not measured")
    )


def lag_meter(
    sample: Sample, now: Callable[[], float] = time.perf_counter
) -> Callable[[], Awaitable[None]]:
    """Return a function that adds how late it is called, ``_LAG_SECONDS`` after it returned."""
    # The clock of the loop stands still during a turn, and the slow turn may be that one.
    due_at = math.inf

    async def measure() -> None:
        nonlocal due_at
        moment = now()
        observe(sample, metrics.LAG, max(0, moment - due_at))
        due_at = moment + _LAG_SECONDS

    return measure


def _open_files() -> int:
    # Since Linux 6.2 the size is the count; a listing may have 20,000 names.
    return _FILES.stat().st_size or len(list(_FILES.iterdir()))
