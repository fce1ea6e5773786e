"""All the wiring: the whole service is put together here, and nowhere else."""

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager

from petstore import __version__
from petstore.api import reference
from petstore.api.application import Application, HttpRules, Page, Servable
from petstore.api.bodies import BodyReader
from petstore.api.health import Health
from petstore.api.openapi import openapi_page
from petstore.api.operation import BASE, Services
from petstore.api.operations import OPERATIONS
from petstore.api.response_cache import ResponseCache
from petstore.api.routes import Routes
from petstore.chores import Chore, attempt, background
from petstore.clock import SECOND, Clock, Milliseconds, system_clock
from petstore.databases.contract import Store
from petstore.databases.positions import MemoryPositions, RedisPositions
from petstore.databases.replicas import PrimaryOnly, Readers, ReplicaReaders
from petstore.databases.sqlite import SqliteStore
from petstore.databases.sqlite_usage import database_bytes, disk_bytes, free_bytes, last_backup
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
from petstore.store.rate_limits import StoredRateLimits
from petstore.store.reservations import Reservations
from petstore.store.safe_retries import SafeRetries

_LATE_BODIES_SECONDS = 0.1
_LAPSES_SECONDS = 1
_CHECK_SECONDS = 1
_BEAT_SECONDS = 1
_REDIS_SECONDS = 0.1
_FORGET_SECONDS = 60
_USAGE_TABLE = 20_000


def metrics_at(place: Place | None) -> NoMetrics:
    """Return the metrics of this process, told at ``place`` if there is one."""
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
    """Put the service together of its parts."""
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

    @asynccontextmanager
    async def lifespan() -> AsyncIterator[None]:
        async with AsyncExitStack() as opened:
            opened.callback(log.close)
            await store.open()
            opened.push_async_callback(store.close)
            await services.readers.open()
            opened.push_async_callback(services.readers.close)
            opened.push_async_callback(limiter.close)
            async with at_work(settings, services, bodies), metrics.running():
                yield

    return Application(
        services=services,
        routes=Routes(BASE, OPERATIONS),
        pages=_pages(health),
        bodies=bodies,
        rules=HttpRules(
            trusted_proxies=settings.trusted_networks,
            allowed_origins=settings.allowed_origin,
        ),
        log=metrics.of_requests(log),
        lifespan=lifespan,
        on_retire=health.retire,
    )


@asynccontextmanager
async def at_work(
    settings: Settings, services: Services, bodies: BodyReader
) -> AsyncIterator[None]:
    """Do what is to be done beside answering requests, until the block ends."""
    limiter = services.limiter
    save = Chore(limiter.save, settings.limits_save_seconds, "counts not saved")
    lapse = Chore(services.reservations.refresh, _LAPSES_SECONDS, "lapsed reservations not freed")
    try:
        # What lapsed while nobody served is free before the first request.
        await attempt(lapse)
        await limiter.beat()
        async with background(save, lapse, *chores_of(settings, services, bodies)):
            yield
    finally:
        await attempt(save)


def chores_of(settings: Settings, services: Services, bodies: BodyReader) -> Iterator[Chore]:
    """Yield what is done while the service runs, but not at its start or its end."""
    if not is_postgres(settings.database):  # only files can be deleted while in use
        check = services.store.check
        yield Chore(check, _CHECK_SECONDS, "the database is not as it should be")
    yield Chore(services.limiter.beat, _BEAT_SECONDS, "the other processes are not known")
    yield Chore(services.keys.refresh, settings.key_refresh_seconds, "changes to keys not seen")
    yield Chore(bodies.end_late, _LATE_BODIES_SECONDS, "late bodies not ended")
    yield Chore(services.retries.forget, _FORGET_SECONDS, "kept answers not forgotten")


def tracing_of(settings: Settings) -> NoTracing:
    """Return what makes traces, if ``settings`` say where they go."""
    if not settings.trace_endpoint:
        return NO_TRACING
    # Imported where it is used: it takes its time, and need not be installed.
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
    # Imported where it is used: it takes its time.
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
        return PrimaryOnly(store)
    patience = int(settings.database_timeout * SECOND)
    if not settings.redis:
        return ReplicaReaders(store, replica, MemoryPositions(clock), clock, patience)
    from petstore.rate_limits.trips import FAULTS, connect

    client = connect(settings.redis, _REDIS_SECONDS)
    return ReplicaReaders(store, replica, RedisPositions(client, FAULTS), clock, patience)


def replica_of(settings: Settings, metrics: NoMetrics = NO_METRICS) -> Store | None:
    """Return the store that lists are read from, if ``settings`` name one."""
    if not settings.read_database:
        return None
    patience = int(settings.database_timeout * SECOND) // 3  # the primary is asked after it
    connections = settings.database_connections
    return store_at(settings.read_database, patience, connections, "replica", metrics)


def database_of(settings: Settings, metrics: NoMetrics = NO_METRICS) -> Store:
    """Return the store that ``settings`` name."""
    patience = int(settings.database_timeout * SECOND)
    connections = settings.database_connections
    return store_at(settings.database, patience, connections, "primary", metrics)


def store_at(
    database: str,
    patience: Milliseconds,
    connections: int = 1,
    name: str = "primary",
    metrics: NoMetrics = NO_METRICS,
) -> Store:
    """Return the store at an address that was checked; it is not open yet.

    ``metrics`` tell of it as the one with this ``name``.
    """
    if not is_postgres(database):
        path = sqlite_path(database)
        file = SqliteStore(path, patience)
        metrics.histogram(COMMITS, file.committed)
        metrics.shared_gauge(DATABASE_BYTES, lambda: database_bytes(path))
        metrics.shared_gauge(DISK_SIZE, lambda: disk_bytes(path))
        metrics.shared_gauge(DISK_FREE, lambda: free_bytes(path))
        metrics.shared_gauge(LAST_BACKUP, lambda: last_backup(path))
        return metrics.of_store(file, name)
    # Imported where it is used: it takes its time.
    from petstore.databases.postgres import PostgresStore

    server = PostgresStore(database, patience, connections)
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
        f"{BASE}/openapi.json": openapi_page(BASE, OPERATIONS),
    }
