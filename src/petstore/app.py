"""The wiring: the whole service is assembled here, and nowhere else."""

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

from petstore import __version__
from petstore.api import reference
from petstore.api.application import Application, HttpRules, Page, Servable
from petstore.api.bodies import BodyReader
from petstore.api.health import Health
from petstore.api.openapi import OpenApiPage
from petstore.api.operation import Services
from petstore.api.response_cache import ResponseCache
from petstore.api.routes import Routes
from petstore.api.table import BASE, OPERATIONS
from petstore.chores import Chore, attempt, background
from petstore.clock import SECOND, Clock, Milliseconds, system_clock
from petstore.databases.contract import Store
from petstore.databases.last_writes import MemoryLastWrites, RedisLastWrites
from petstore.databases.rate_limits import StoredRateLimits
from petstore.databases.replicas import LastWrites, Readers, ReplicaReaders
from petstore.databases.sqlite import SqliteStore
from petstore.databases.sqlite_files import database_bytes, disk_bytes, free_bytes, last_backup
from petstore.logs import LogRules, RequestLog, configure_logging, is_for_person, standard_error
from petstore.observability.figures import (
    BANS,
    COMMITS,
    DATABASE_BYTES,
    DISK_FREE,
    DISK_SIZE,
    LAPSED,
    LAST_BACKUP,
    POOL_IN_USE,
    POOL_SIZE,
    REPLAYS,
)
from petstore.observability.metrics import NO_METRICS, Metrics, NoMetrics
from petstore.observability.no_tracing import NO_TRACING, NoTracing
from petstore.observability.place import Place
from petstore.observability.process import tell_process
from petstore.rate_limits.addresses import AddressLimiter
from petstore.rate_limits.contract import BanRules, RateLimiter
from petstore.rate_limits.memory import MemoryLimiter
from petstore.rate_limits.minutes import MinuteLimiter
from petstore.settings import Settings, is_postgres, sqlite_path
from petstore.store.key_ring import KeyRing
from petstore.store.reservations import Reservations
from petstore.store.safe_retries import SafeRetries

_LATE_BODIES_SECONDS = 0.1
_LAPSES_SECONDS = 1
_CHECK_SECONDS = 1
_HEARTBEAT_SECONDS = 1
_REDIS_SECONDS = 0.1
_FORGET_SECONDS = 60
_USAGE_TABLE = 20_000


def metrics_at(place: Place | None) -> NoMetrics:
    """Return the metrics of this process, shared at ``place``; none without it."""
    if place is None:
        return NO_METRICS
    metrics = Metrics(place, __version__)
    tell_process(metrics, str(place.seat))
    return metrics


def serve_settings(settings: Settings, metrics: NoMetrics = NO_METRICS) -> Servable:
    """Return the service that ``settings`` describe, logging to standard error."""
    log = open_log(settings)
    tracing = tracing_of(settings)
    system = "postgresql" if is_postgres(settings.database) else "sqlite"
    store = tracing.of_store(database_of(settings, metrics), system)
    replica = replica_of(settings, metrics)
    if replica is not None:
        replica = tracing.of_store(replica, system)
    limiter = create_limiter(settings, store, system_clock, metrics)
    if settings.redis:
        limiter = tracing.of_limiter(limiter)
    app = create_app(settings, store, limiter, log, replica=replica, metrics=metrics)
    return tracing.of_application(app)


def create_app(
    settings: Settings,
    store: Store,
    limiter: RateLimiter,
    log: RequestLog,
    clock: Clock = system_clock,
    replica: Store | None = None,
    metrics: NoMetrics = NO_METRICS,
) -> Application:
    """Assemble the service from its parts."""
    services = Services(
        store=store,
        readers=create_readers(settings, store, replica, clock),
        limiter=metrics.of_limiter(limiter),
        look_ups=AddressLimiter(clock, settings.anonymous_per_minute, settings.address_table),
        uncharged=MinuteLimiter(clock, settings.usage_per_minute, _USAGE_TABLE),
        clock=clock,
        keys=KeyRing(store, clock, settings.environment),
        answers=ResponseCache(store),
        retries=SafeRetries(store, clock),
        reservations=Reservations(store, clock),
        reservation_minutes=settings.reservation_minutes,
        strict_categories=settings.strict_categories,
    )
    metrics.counter(LAPSED, lambda: services.reservations.lapsed)
    metrics.counter(REPLAYS, lambda: services.retries.replays)
    health = Health(store)
    bodies = BodyReader(settings.body_bytes, settings.body_timeout)
    return Application(
        services=services,
        routes=Routes(BASE, OPERATIONS),
        pages=_pages(health),
        bodies=bodies,
        rules=HttpRules(settings.trusted_networks, settings.allowed_origin),
        log=metrics.of_requests(log),
        lifespan=partial(_running, settings, services, bodies, log, metrics),
        on_retire=health.retire,
    )


@asynccontextmanager
async def _running(
    settings: Settings, services: Services, bodies: BodyReader, log: RequestLog, metrics: NoMetrics
) -> AsyncIterator[None]:
    """Open the parts, and do the chores until the block ends."""
    limiter = services.limiter
    save = Chore(limiter.save, settings.limits_save_seconds, "counts not saved")
    lapse = Chore(services.reservations.refresh, _LAPSES_SECONDS, "lapsed reservations not freed")
    async with AsyncExitStack() as opened:
        opened.callback(log.close)
        for part in (services.store, services.readers):
            await part.open()
            opened.push_async_callback(part.close)
        opened.push_async_callback(limiter.close)
        opened.push_async_callback(attempt, save)
        # Reservations that lapsed during a stop are free before the first request.
        await attempt(lapse)
        await limiter.beat()
        chores = background(save, lapse, *chores_of(settings, services, bodies))
        await opened.enter_async_context(chores)
        await opened.enter_async_context(metrics.running())
        yield


def chores_of(settings: Settings, services: Services, bodies: BodyReader) -> Iterator[Chore]:
    """Yield the chores of a running service that its start and its end do not need."""
    if not is_postgres(settings.database):  # only files can be deleted while in use
        check = services.store.check
        yield Chore(check, _CHECK_SECONDS, "the database is not as it should be")
    failure = "cannot read the list of workers from Redis"
    yield Chore(services.limiter.beat, _HEARTBEAT_SECONDS, failure)
    yield Chore(services.keys.refresh, settings.key_refresh_seconds, "changes to keys not seen")
    yield Chore(bodies.end_late, _LATE_BODIES_SECONDS, "late bodies not ended")
    yield Chore(services.retries.forget, _FORGET_SECONDS, "idempotency records not deleted")


def tracing_of(settings: Settings) -> NoTracing:
    """Return what makes traces, if ``settings`` say where to send them."""
    if not settings.trace_endpoint:
        return NO_TRACING
    # Imported where it is used: it is slow to import, and optional.
    from petstore.observability.tracing import Tracing

    return Tracing(settings.trace_endpoint, __version__)


def create_limiter(
    settings: Settings, store: Store, clock: Clock, metrics: NoMetrics = NO_METRICS
) -> RateLimiter:
    """Return the limiter of one process, or with ``settings.redis`` of many."""
    rules = BanRules(
        least_strikes=settings.ban_strikes,
        strikes_divisor=settings.ban_strikes_divisor,
        innocence=int(settings.ban_grace_seconds * SECOND),
        window=int(settings.ban_window_seconds * SECOND),
        first=int(settings.ban_seconds * SECOND),
        longest=int(settings.ban_max_seconds * SECOND),
        forgiven_after=int(settings.ban_decay_seconds * SECOND),
    )
    states = StoredRateLimits(store)
    per_minute, table = settings.anonymous_per_minute, settings.address_table
    if not settings.redis:
        limiter = MemoryLimiter(states, clock, rules, AddressLimiter(clock, per_minute, table))
        metrics.counter(BANS, lambda: limiter.bans)
        return limiter
    # Imported where it is used: it is slow to import.
    from petstore.rate_limits.redis import RedisLimiter
    from petstore.rate_limits.trips import Trips, connect

    client = connect(settings.redis, None)
    trips = Trips(client, _REDIS_SECONDS)
    if isinstance(metrics, Metrics):
        from petstore.observability.counted_trips import CountedTrips

        trips = CountedTrips(client, _REDIS_SECONDS, metrics)
    return RedisLimiter(trips, states, clock, rules, per_minute, table, settings.workers)


def create_readers(
    settings: Settings, store: Store, replica: Store | None, clock: Clock
) -> Readers:
    """Return what chooses between the database and its replica, if there is one."""
    if replica is None:
        return Readers(store)
    if not settings.redis:
        last_writes: LastWrites = MemoryLastWrites(clock)
    else:
        from petstore.rate_limits.trips import FAULTS, connect

        last_writes = RedisLastWrites(connect(settings.redis, _REDIS_SECONDS), FAULTS)
    return ReplicaReaders(store, replica, last_writes, clock, _timeout(settings))


def replica_of(settings: Settings, metrics: NoMetrics = NO_METRICS) -> Store | None:
    """Return the store that lists are read from, if ``settings`` name one."""
    if not settings.read_database:
        return None
    timeout = _timeout(settings) // 3  # the rest is for the primary
    connections = settings.database_connections
    return store_at(settings.read_database, timeout, connections, "replica", metrics)


def database_of(settings: Settings, metrics: NoMetrics = NO_METRICS) -> Store:
    """Return the store that ``settings`` name."""
    connections = settings.database_connections
    return store_at(settings.database, _timeout(settings), connections, "primary", metrics)


def _timeout(settings: Settings) -> Milliseconds:
    return int(settings.database_timeout * SECOND)


def store_at(
    database: str,
    timeout: Milliseconds,
    connections: int = 1,
    name: str = "primary",
    metrics: NoMetrics = NO_METRICS,
) -> Store:
    """Return the store at a valid address, not yet open; in ``metrics`` it has this ``name``."""
    if not is_postgres(database):
        path = sqlite_path(database)
        file = SqliteStore(path, timeout)
        metrics.histogram(COMMITS, file.committed)
        metrics.shared_gauge(DATABASE_BYTES, lambda: database_bytes(path))
        metrics.shared_gauge(DISK_SIZE, lambda: disk_bytes(path))
        metrics.shared_gauge(DISK_FREE, lambda: free_bytes(path))
        metrics.shared_gauge(LAST_BACKUP, lambda: last_backup(path))
        return metrics.of_store(file, name)
    # Imported where it is used: it is slow to import.
    from petstore.databases.postgres import PostgresStore

    server = PostgresStore(database, timeout, connections)
    metrics.gauge(POOL_IN_USE, lambda: server.connections_in_use, name)
    metrics.gauge(POOL_SIZE, lambda: server.connections, name)
    return metrics.of_store(server, name)


def open_log(settings: Settings) -> RequestLog:
    """Return a log on standard error that takes the records of ``logging`` too."""
    rules = LogRules(settings.log_level, settings.log_health_checks, not settings.omit_addresses)
    log = RequestLog(
        standard_error(), system_clock, for_person=is_for_person(settings.log_format), rules=rules
    )
    configure_logging(log)
    return log


def _pages(health: Health) -> dict[str, Page]:
    return {
        "/": reference.home,
        "/healthz": health.live,
        "/readyz": health.ready,
        "/docs": reference.page,
        "/docs/": reference.home,
        "/docs/reference.js": reference.script,
        "/docs/swagger-ui.css": reference.asset,
        "/docs/swagger-ui-bundle.js": reference.asset,
        f"{BASE}/openapi.json": OpenApiPage(BASE, OPERATIONS).answer,
    }
