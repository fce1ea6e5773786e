"""All the wiring: the whole service is put together here, and nowhere else."""

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from shutil import disk_usage
from typing import TYPE_CHECKING

from petstore import __version__
from petstore.api.addresses import Addresses
from petstore.api.application import (
    Application,
    HttpRules,
    Pages,
    PublicPage,
    RequestObserver,
    Servable,
)
from petstore.api.bodies import BodyReader
from petstore.api.deprecations import deprecated_operations
from petstore.api.health import Health
from petstore.api.openapi.page import DocumentPage
from petstore.api.operation import BASE, Services
from petstore.api.operations import OPERATIONS
from petstore.api.response_cache import ResponseCache
from petstore.api.routes import Routes
from petstore.api.site import HOME, site_pages
from petstore.api.well_known import WellKnown
from petstore.chores import Chore, attempt, background
from petstore.clock import DAY, SECOND, Clock, Milliseconds, system_clock
from petstore.console.console import Console
from petstore.databases.contract import Store
from petstore.databases.last_writes import MemoryLastWrites, RedisLastWrites
from petstore.databases.replicas import LastWrites, Readers, ReplicaReaders
from petstore.databases.secret_files import SecretFile
from petstore.databases.sqlite import SqliteStore, file_has_webhooks
from petstore.databases.sqlite_files import database_bytes, last_backup
from petstore.domain.deprecations import KEPT_DAYS
from petstore.domain.plans import UNLIMITED, Limits
from petstore.domain.webhook_secrets import webhook_secrets
from petstore.http.open_files import room_for
from petstore.logs import LogRules, RequestLog, configure_logging, is_for_person, standard_error
from petstore.observability.deliveries import DeliveryMetrics, report_backlog
from petstore.observability.measured import measure_limiter, measure_requests, measure_store
from petstore.observability.metrics import (
    BANS,
    COMMITS,
    DATABASE_BYTES,
    DISK_FREE,
    DISK_SIZE,
    FALLBACK_WORKERS,
    FALLBACKS,
    FEED_LAG,
    LAPSED,
    LAST_BACKUP,
    LONG_POLLS,
    POOL_IN_USE,
    POOL_SIZE,
    REPLAYS,
)
from petstore.observability.process import report_process
from petstore.observability.registry import Registry, SharedMetrics
from petstore.rate_limits.contract import BanRules, RateLimiter
from petstore.rate_limits.memory import MemoryLimiter
from petstore.rate_limits.minutes import MinuteLimiter, network_of
from petstore.settings import SettingError, Settings, is_postgres, sqlite_path
from petstore.store.api_keys import prune_tokens
from petstore.store.console_imports import IMPORTS_KEPT, prune_imports
from petstore.store.console_sessions import LINK_LIFE, SESSION_KEPT, prune_links, prune_sessions
from petstore.store.counted_batches import prune_saved_batches
from petstore.store.deliveries import Webhook
from petstore.store.deprecated_calls import (
    DeprecatedCalls,
    prune_deprecated_calls,
)
from petstore.store.events import prune_events, publish_all
from petstore.store.feed import Feed, FeedLag
from petstore.store.key_history import prune_history
from petstore.store.key_notices import KeyNotices, prune_key_notices
from petstore.store.key_ring import KeyRing
from petstore.store.pet_search import fill_name_keys
from petstore.store.rate_limits import StoredRateLimits
from petstore.store.reservations import Reservations
from petstore.store.responses import Responses, prune_responses
from petstore.store.retention import Retained, prune_all
from petstore.store.safe_retries import SafeRetries
from petstore.store.usage import prune_usage
from petstore.store.webhooks import prune_deliveries
from petstore.webhooks.deliverer import Deliverer, Rules
from petstore.webhooks.queue import NoWatcher, Watcher
from petstore.webhooks.sender import Resolver, Sender

if TYPE_CHECKING:
    from petstore.observability.tracing import Tracing

_LATE_BODIES_SECONDS = 0.1
_LAPSES_SECONDS = 1
# Until all processes have noticed that a file was deleted, none of them can write.
_CHECK_SECONDS = 0.2
_HEARTBEAT_SECONDS = 1
_FORGET_SECONDS = 60
_NAME_KEYS_SECONDS = 1
_NOTICES_SECONDS = 10
_PRUNE_SECONDS = 60
_RESPONSES_SECONDS = 5
# A notice is told once a month or more often.
_NOTICES_KEPT = 62 * DAY
_USAGE_TABLE = 20_000
# How often the feed is looked at while somebody waits: a query costs more on PostgreSQL.
_FEED_SECONDS = (0.02, 0.05)
_PUBLISH_SECONDS = 0.05
_FEED_LAG_SECONDS = 1
_SQLITE_POLL_SECONDS = 0.05
_POSTGRES_POLL_SECONDS = 0.1
_DELIVERY_STOP_SECONDS = 5
_DELIVERY_CONNECTIONS = 20_000


def create_registry(shared: SharedMetrics, *, serves: bool = True) -> Registry:
    """Return the registry of this worker, which reports the process too."""
    registry = Registry(shared, __version__, serves=serves)
    report_process(registry, str(shared.worker_id))
    return registry


def serve_settings(settings: Settings, registry: Registry | None = None) -> Servable:
    """Return the service that ``settings`` describe, logging to standard error."""
    log: RequestObserver = open_log(settings)
    store, replica = database_of(settings, registry), replica_of(settings, registry)
    tracing = create_tracing(settings)
    if tracing is not None:
        log = tracing.trace_requests(log)
        system = "postgresql" if is_postgres(settings.database) else "sqlite"
        store = tracing.trace_store(store, system)
        replica = replica and tracing.trace_store(replica, system)
    limiter = create_limiter(settings, store, system_clock, registry)
    if tracing is not None and settings.redis:
        limiter = tracing.trace_limiter(limiter)
    app = create_app(settings, store, limiter, log, replica=replica, registry=registry)
    return app if tracing is None else tracing.trace_application(app)


def create_app(
    settings: Settings,
    store: Store,
    limiter: RateLimiter,
    log: RequestObserver,
    clock: Clock = system_clock,
    replica: Store | None = None,
    registry: Registry | None = None,
) -> Application:
    """Put the service together from its parts."""
    services = Services(
        store=store,
        readers=create_readers(settings, store, replica, clock),
        limiter=limiter,
        look_ups=address_limiter(settings, clock),
        uncharged=MinuteLimiter(clock, settings.usage_per_minute, _USAGE_TABLE),
        clock=clock,
        keys=KeyRing(store, clock, settings.environment),
        response_cache=ResponseCache(store),
        retries=SafeRetries(store, clock),
        feed=Feed(store, _FEED_SECONDS[is_postgres(settings.database)]),
        reservations=Reservations(store, clock),
        deprecated_calls=DeprecatedCalls(store, clock, deprecated_operations(OPERATIONS)),
        responses=Responses(store, clock),
        reservation_minutes=settings.reservation_minutes,
        strict_categories=settings.strict_categories,
        webhook_secret=secret_file_of(settings),
        webhook_networks=settings.webhook_networks,
    )
    if registry is not None:
        log = measure_requests(log, registry)
        registry.report(LAPSED, lambda: services.reservations.lapsed)
        registry.report(REPLAYS, lambda: services.retries.replays)
        registry.report(LONG_POLLS, lambda: services.feed.waiting)
        report_backlog(registry, store, settings.environment, clock)
        lag = FeedLag(store, clock)
        registry.report_shared(FEED_LAG, lambda: lag.seconds)
        if is_postgres(settings.database):
            chore = Chore(lag.refresh, _FEED_LAG_SECONDS, "lag of the feed not measured")
            registry.chores.append(chore)
    health = Health(store)
    addresses = Addresses(settings.public_url)
    console_limiter: MinuteLimiter[int] = MinuteLimiter(
        clock, settings.console_per_minute, _USAGE_TABLE
    )
    well_known = WellKnown(addresses, settings.security_contact, clock)
    bodies = BodyReader(settings.body_bytes, settings.body_timeout)
    return Application(
        services=services,
        routes=Routes(BASE, OPERATIONS),
        pages=Pages(
            _pages(health, addresses, well_known),
            Console(services, bodies, console_limiter, addresses.public_url),
        ),
        bodies=bodies,
        rules=HttpRules(addresses, settings.trusted_networks, settings.allowed_origin),
        log=log,
        lifespan=partial(_running, settings, services, bodies, log, registry),
        on_retire=health.retire,
    )


@asynccontextmanager
async def _running(
    settings: Settings,
    services: Services,
    bodies: BodyReader,
    log: RequestObserver,
    registry: Registry | None,
) -> AsyncIterator[None]:
    """Open the parts, and do the chores until the block ends."""
    limiter = services.limiter
    save = Chore(limiter.save, settings.limits_save_seconds, "counts not saved")
    count = Chore(
        services.deprecated_calls.save,
        settings.limits_save_seconds,
        "calls of deprecated operations not saved",
    )
    count_responses = Chore(
        services.responses.save, _RESPONSES_SECONDS, "responses by status not saved"
    )
    lapse = Chore(
        services.reservations.refresh, _LAPSES_SECONDS, "lapsed reservations were not released"
    )
    async with AsyncExitStack() as opened:
        opened.callback(log.close)
        for part in (services.store, services.readers):
            await part.open()
            opened.push_async_callback(part.close)
        opened.push_async_callback(services.feed.close)
        opened.push_async_callback(limiter.close)
        opened.push_async_callback(attempt, save)
        opened.push_async_callback(attempt, count)
        opened.push_async_callback(attempt, count_responses)
        # Reservations that lapsed during a stop are free before the first request.
        await attempt(lapse)
        await limiter.heartbeat()
        chores = background(
            save, count, count_responses, lapse, *chores_of(settings, services, bodies)
        )
        await opened.enter_async_context(chores)
        if registry is not None:
            await opened.enter_async_context(registry.running())
        yield


def chores_of(settings: Settings, services: Services, bodies: BodyReader) -> Iterator[Chore]:
    """Yield the chores of a running service that its start and its end do not need."""
    if is_postgres(settings.database):
        publish = partial(publish_all, services.store)
        yield Chore(publish, _PUBLISH_SECONDS, "events wait for their place in the feed")
    else:
        yield _file_check(services.store)
    failure = "cannot read the list of workers from Redis"
    yield Chore(services.limiter.heartbeat, _HEARTBEAT_SECONDS, failure)
    yield Chore(services.keys.refresh, settings.key_refresh_seconds, "changes to keys not seen")
    yield Chore(bodies.end_late, _LATE_BODIES_SECONDS, "late bodies not ended")
    name_keys = partial(fill_name_keys, services.store)
    yield Chore(name_keys, _NAME_KEYS_SECONDS, "animals not prepared for searches by name")
    notices = KeyNotices(services.store, services.clock, services.deprecated_calls.operations)
    yield Chore(notices.look, _NOTICES_SECONDS, "holders of keys not told")
    yield Chore(services.retries.forget, _FORGET_SECONDS, "idempotency records not deleted")
    prune = partial(prune_all, services.store, services.clock, retained(settings))
    yield Chore(prune, _PRUNE_SECONDS, "old records not deleted")


def _file_check(store: Store) -> Chore:
    """Return what notices that a file of a SQLite database was deleted while in use."""
    return Chore(store.check, _CHECK_SECONDS, "the database is not as it should be")


def retained(settings: Settings) -> tuple[Retained, ...]:
    """Return what is kept for a time, and for how long."""
    events, history = settings.event_days * DAY, settings.history_days * DAY
    return (
        Retained(prune_events, events),
        Retained(prune_deliveries, events),
        Retained(prune_deprecated_calls, (KEPT_DAYS + 1) * DAY),
        Retained(prune_saved_batches, (KEPT_DAYS + 1) * DAY),
        Retained(prune_responses, (KEPT_DAYS + 1) * DAY),
        Retained(prune_key_notices, _NOTICES_KEPT),
        Retained(prune_history, history),
        Retained(prune_tokens, history),
        Retained(prune_usage, history),
        Retained(prune_sessions, SESSION_KEPT),
        Retained(prune_links, LINK_LIFE),
        Retained(prune_imports, IMPORTS_KEPT),
    )


@asynccontextmanager
async def opened_deliverer(
    settings: Settings, registry: Registry | None = None
) -> AsyncIterator[Deliverer]:
    """Give what delivers events to webhooks; it logs to standard error until the block ends."""
    # Most of them wait for a response.
    room_for(_DELIVERY_CONNECTIONS)
    secret = secret_file_of(settings)
    on_postgres = is_postgres(settings.database)
    store = database_of(settings, registry, brief_locks=True)
    watcher: Watcher = NoWatcher()
    if registry is not None:
        watcher = DeliveryMetrics(registry)
        report_backlog(registry, store, settings.environment, system_clock)

    def secrets_of(webhook: Webhook) -> list[bytes]:
        version, ends_at = webhook.secret_version, webhook.previous_secret_ends_at
        return webhook_secrets(secret.read(), webhook.id, version, ends_at, system_clock())

    rules = Rules(
        settings.environment,
        publishes=on_postgres,
        poll_seconds=_POSTGRES_POLL_SECONDS if on_postgres else _SQLITE_POLL_SECONDS,
        stop_seconds=min(_DELIVERY_STOP_SECONDS, settings.shutdown_timeout - 1),
    )
    sender = Sender(Resolver(), settings.webhook_networks, f"petstore/{__version__}")
    async with AsyncExitStack() as opened:
        opened.callback(open_log(settings).close)
        await store.open()
        opened.push_async_callback(store.close)
        if not on_postgres:
            await opened.enter_async_context(background(_file_check(store)))
        if registry is not None:
            await opened.enter_async_context(registry.running())
        yield Deliverer(store, sender, secrets_of, system_clock, watcher, rules)


def create_tracing(settings: Settings) -> "Tracing | None":
    """Return what makes traces, or ``None`` if ``settings`` name no collector."""
    if not settings.trace_endpoint:
        return None
    # Imported here because the import is slow, and the extra may not be installed.
    from petstore.observability.tracing import Tracing

    return Tracing(settings.trace_endpoint, __version__)


def create_limiter(
    settings: Settings, store: Store, clock: Clock, registry: Registry | None = None
) -> RateLimiter:
    """Return the limiter of one process, or with ``settings.redis`` of many."""
    rules = BanRules(
        min_strikes=settings.ban_strikes,
        strikes_divisor=settings.ban_strikes_divisor,
        grace=int(settings.ban_grace_seconds * SECOND),
        window=int(settings.ban_window_seconds * SECOND),
        duration=int(settings.ban_seconds * SECOND),
        max_duration=int(settings.ban_max_seconds * SECOND),
        decay=int(settings.ban_decay_seconds * SECOND),
    )
    states = StoredRateLimits(store)
    if not settings.redis:
        memory = MemoryLimiter(states, clock, rules, address_limiter(settings, clock))
        if registry is None:
            return memory
        registry.report(BANS, lambda: memory.bans)
        return measure_limiter(memory, registry)
    # Imported where it is used: it is slow to import.
    from petstore.rate_limits.redis import RedisLimiter
    from petstore.redis_client.client import RedisClient

    limiter = RedisLimiter(
        RedisClient(settings.redis),
        states,
        clock,
        rules,
        Limits(settings.anonymous_per_minute, UNLIMITED),
        settings.address_table,
        settings.workers,
    )
    if registry is None:
        return limiter
    registry.report(BANS, lambda: limiter.bans)
    registry.report(FALLBACKS, lambda: limiter.fallbacks)
    registry.report(FALLBACK_WORKERS, lambda: int(limiter.has_fallen_back))
    return measure_limiter(limiter, registry)


def address_limiter(settings: Settings, clock: Clock) -> MinuteLimiter[str]:
    """Return a limit by client address, counted by this process alone."""
    per_minute, table = settings.anonymous_per_minute, settings.address_table
    return MinuteLimiter(clock, per_minute, table, network_of)


def create_readers(
    settings: Settings, store: Store, replica: Store | None, clock: Clock
) -> Readers:
    """Return what chooses between the database and its replica, if there is one."""
    if replica is None:
        return Readers(store)
    if not settings.redis:
        last_writes: LastWrites = MemoryLastWrites(clock)
    else:
        from petstore.redis_client.client import RedisClient, RedisUnavailable

        last_writes = RedisLastWrites(RedisClient(settings.redis), (RedisUnavailable,))
    return ReplicaReaders(store, replica, last_writes, clock, _timeout(settings))


def replica_of(settings: Settings, registry: Registry | None = None) -> Store | None:
    """Return the store that lists are read from, if ``settings`` name one."""
    if not settings.read_database:
        return None
    timeout = _timeout(settings) // 3  # the rest is for the primary
    connections = settings.database_connections
    return store_at(settings.read_database, timeout, connections, "replica", registry)


def database_of(
    settings: Settings, registry: Registry | None = None, *, brief_locks: bool = False
) -> Store:
    """Return the store that ``settings`` name."""
    return store_at(
        settings.database,
        _timeout(settings),
        settings.database_connections,
        "primary",
        registry,
        brief_locks=brief_locks,
    )


def _timeout(settings: Settings) -> Milliseconds:
    return int(settings.database_timeout * SECOND)


def store_at(
    database: str,
    timeout: Milliseconds,
    connections: int = 1,
    name: str = "primary",
    registry: Registry | None = None,
    *,
    brief_locks: bool = False,
) -> Store:
    """Return the store at a valid address, not yet open; ``registry`` reports it as ``name``."""
    if not is_postgres(database):
        path = sqlite_path(database)
        file = SqliteStore(path, timeout, brief_locks=brief_locks)
        if registry is None:
            return file
        registry.report_histogram(COMMITS, file.committed)
        registry.report_shared(DATABASE_BYTES, lambda: database_bytes(path))
        registry.report_shared(DISK_SIZE, lambda: disk_usage(path.resolve().parent).total)
        registry.report_shared(DISK_FREE, lambda: disk_usage(path.resolve().parent).free)
        registry.report_shared(LAST_BACKUP, lambda: last_backup(path))
        return measure_store(file, name, registry)
    # Imported where it is used: it is slow to import.
    from petstore.databases.postgres import PostgresStore

    server = PostgresStore(database, timeout, connections)
    if registry is None:
        return server
    registry.report(POOL_IN_USE, lambda: server.connections_in_use, name)
    registry.report(POOL_SIZE, lambda: server.connections, name)
    return measure_store(server, name, registry)


def secret_file_of(settings: Settings) -> SecretFile:
    """Return the file with the master secret of all webhooks, if there is one.

    Raises:
        SettingError: it does not hold a secret, or is missing and is for the operator to make.
    """
    path = settings.secret_path
    # Instances on PostgreSQL may run on several machines, and each would make another.
    file = SecretFile(path, may_create=not is_postgres(settings.database))
    try:
        file.check()
    except (OSError, ValueError) as error:
        reason = (isinstance(error, OSError) and error.strerror) or error
        msg = f"secret-file: {path}: {reason}"
        raise SettingError(msg) from error
    return file


def require_secret(settings: Settings) -> None:
    """Refuse a SQLite store that has webhooks and no secret file any more.

    Another file would silently change the secret of every webhook.

    Raises:
        SettingError: it says what to do.
        UnusableDatabase: the store cannot be read.
    """
    secret = settings.secret_path
    if is_postgres(settings.database) or secret is None or secret.exists():
        return
    store = sqlite_path(settings.database)
    if store.is_file() and file_has_webhooks(store):  # opening a pipe would block
        msg = (
            f"secret-file: {secret} is missing, and webhooks in {store} were signed with it: put it"
            " back. If it is lost, create another one with (umask 077; openssl rand -base64 32 >"
            f" {secret}), and rotate the secret of each webhook"
        )
        raise SettingError(msg)


def open_log(settings: Settings) -> RequestLog:
    """Return a log on standard error that takes the records of ``logging`` too."""
    rules = LogRules(settings.log_level, settings.log_health_checks, not settings.omit_addresses)
    log = RequestLog(
        standard_error(), system_clock, for_person=is_for_person(settings.log_format), rules=rules
    )
    configure_logging(log)
    return log


def _pages(health: Health, addresses: Addresses, well_known: WellKnown) -> dict[str, PublicPage]:
    site = site_pages()
    return {
        **well_known.pages(),
        **site,
        **{entrance: well_known.linked(site[entrance]) for entrance in ("/", HOME)},
        "/healthz": health.live,
        "/readyz": health.ready,
        f"{BASE}/openapi.json": well_known.linked(DocumentPage(OPERATIONS, addresses.root)),
    }
