"""The whole service, put together here and nowhere else."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

from petstore import __version__
from petstore.backends import (
    create_limiter,
    create_services,
    database_of,
    secret_file_of,
    watched_files,
)
from petstore.clock import Clock, system_clock
from petstore.console.console import Console
from petstore.databases.contract import Store
from petstore.databases.schema import pruning
from petstore.events.store import publishing
from petstore.interface.application import Application, HttpRules, Pages, RequestHooks
from petstore.interface.bodies import BodyReader
from petstore.interface.documentation import Documentation, HealthPages, robots
from petstore.interface.openapi.document import DocumentPage
from petstore.interface.operation import BASE, Services
from petstore.interface.operations import OPERATIONS
from petstore.interface.routes import Addresses, Routes
from petstore.keys.notices import KeyNotices
from petstore.limits.decide import RateLimiter
from petstore.logs import RequestLog, configure_logging, is_for_person, standard_error
from petstore.observability.hooks import Observer, Observers
from petstore.observability.measured import Metrics, report_process
from petstore.observability.registry import Registry, SharedMetrics
from petstore.orders.buyers import forgetting
from petstore.orders.store import ORDERS_BY_WORD
from petstore.periodic_tasks import PeriodicTask, background
from petstore.pets.store import PETS_BY_WORD
from petstore.settings import Settings, is_postgres


def serve_settings(settings: Settings, registry: Registry | None = None) -> Application:
    log, observers = open_log(settings), observers_of(settings, registry)
    store = database_of(settings, observers)
    limiter = create_limiter(settings, store, system_clock)
    return create_app(settings, store, limiter, log, observers=observers)


def create_app(
    settings: Settings,
    store: Store,
    limiter: RateLimiter,
    log: RequestLog,
    clock: Clock = system_clock,
    observers: Observers = (),
) -> Application:
    addresses, docs = Addresses(settings.public_url), Documentation()
    services = create_services(settings, store, limiter, clock, secret_file_of(settings))
    bodies, health = BodyReader(settings.max_body_bytes, settings.body_timeout), HealthPages(store)
    return Application(
        services=services,
        routes=Routes(BASE, OPERATIONS),
        pages=Pages(
            {
                **docs.pages(),
                "/robots.txt": robots,
                "/healthz": health.live,
                "/readyz": health.ready,
                f"{BASE}/openapi.json": DocumentPage(
                    addresses.root, settings.environment, settings.other_environment_url.rstrip("/")
                ),
            },
            docs.missing,
            Console(services, bodies, addresses.public_url),
        ),
        bodies=bodies,
        rules=HttpRules(addresses, settings.trusted_networks, settings.allowed_origin),
        hooks=RequestHooks(
            [observer.requested for observer in observers],
            [*(observer.responded for observer in observers), log.add],
        ),
        lifespan=partial(_running, services, log, observers, periodic_tasks_of(services, bodies)),
        on_retire=health.shut_down,
    )


def create_registry(shared: SharedMetrics, *, serves: bool = True) -> Registry:
    registry = Registry(shared, __version__, serves=serves)
    report_process(registry, str(shared.worker_id))
    return registry


def observers_of(settings: Settings, registry: Registry | None) -> list[Observer]:
    observers: list[Observer] = []
    if registry is not None:
        observers.append(Metrics(registry))
    if settings.trace_endpoint:
        # Imported here because the import is slow, and the extra may not be installed.
        from petstore.observability.tracing import Tracing

        observers.append(Tracing(settings.trace_endpoint, __version__))
    return observers


def periodic_tasks_of(services: Services, bodies: BodyReader) -> list[PeriodicTask]:
    settings, store, clock = services.settings, services.store, services.clock
    save_seconds = settings.limits_save_seconds
    return [
        *([publishing(store)] if is_postgres(settings.database) else []),
        # Reservations that lapsed during a stop are free before the first request.
        services.reservations.periodic_task,
        PeriodicTask(
            services.limiter.heartbeat,
            *(1, "cannot read the list of workers from Redis"),
            at_start=True,
        ),
        PeriodicTask(services.limiter.save, save_seconds, "counts not saved", at_stop=True),
        # No limit needs them, and each key has several.
        PeriodicTask(services.counter.save, 4 * save_seconds, "counts not saved", at_stop=True),
        services.keys.periodic_task(settings.key_refresh_seconds),
        bodies.periodic_task,
        KeyNotices(store, clock, services.deprecated).periodic_task,
        PETS_BY_WORD.updating(store),
        ORDERS_BY_WORD.updating(store),
        pruning(store, clock, settings.event_days),
        forgetting(store, clock, settings.buyer_days),
    ]


@asynccontextmanager
async def _running(
    services: Services, log: RequestLog, observers: Observers, tasks: list[PeriodicTask]
) -> AsyncIterator[None]:
    async with AsyncExitStack() as opened:
        opened.callback(log.close)
        await services.store.open()
        opened.push_async_callback(services.store.close)
        opened.push_async_callback(services.feed.close)
        opened.push_async_callback(services.limiter.close)
        if not is_postgres(services.settings.database):
            await opened.enter_async_context(watched_files(services.store))
        await opened.enter_async_context(background(*tasks))
        for observer in observers:
            await opened.enter_async_context(observer.running(services))
        yield


def open_log(settings: Settings) -> RequestLog:
    log = RequestLog(
        standard_error(),
        system_clock,
        for_person=is_for_person(settings.log_format),
        level=settings.log_level,
        has_addresses=not settings.omit_addresses,
    )
    configure_logging(log)
    return log
