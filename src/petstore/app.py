"""All the wiring: the whole service is put together here, and nowhere else."""

import logging
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from petstore.api import reference
from petstore.api.answer_cache import AnswerCache
from petstore.api.application import Application, HttpRules, Page
from petstore.api.bodies import BodyReader
from petstore.api.health import Health
from petstore.api.openapi import OpenApiPage
from petstore.api.operation import Services
from petstore.api.routes import Routes
from petstore.api.table import BASE, OPERATIONS
from petstore.chores import Chore, attempt, background
from petstore.clock import SECOND, Clock, system_clock
from petstore.logs import RequestLog, configure_logging, standard_error
from petstore.operations.key_ring import KeyRing
from petstore.operations.reservations import Reservations
from petstore.operations.safe_retries import SafeRetries
from petstore.rate_limits.addresses import AddressLimiter
from petstore.rate_limits.contract import BanRules, RateLimiter
from petstore.rate_limits.memory import MemoryLimiter
from petstore.settings import Settings
from petstore.storage.contract import Store
from petstore.storage.rate_limits import StoredRateLimits
from petstore.storage.sqlite import SqliteStore

_LATE_BODIES_SECONDS = 0.1
_LAPSES_SECONDS = 1
_FORGET_SECONDS = 60
_LOG = logging.getLogger(__name__)


def serve_settings(settings: Settings) -> Application:
    """Return the service that ``settings`` describe, logging to standard error."""
    log = open_log(settings)
    store = sqlite_store(settings)
    return create_app(settings, store, create_limiter(settings, store, system_clock), log)


def create_app(
    settings: Settings,
    store: Store,
    limiter: RateLimiter,
    log: RequestLog,
    clock: Clock = system_clock,
) -> Application:
    """Put the service together of its parts."""
    services = Services(
        store=store,
        limiter=limiter,
        clock=clock,
        keys=KeyRing(store, clock, settings.environment),
        answers=AnswerCache(store),
        retries=SafeRetries(store, clock),
        reservations=Reservations(store, clock),
        reservation_minutes=settings.reservation_minutes,
        strict_categories=settings.strict_categories,
    )
    bodies = BodyReader(settings.body_bytes, settings.body_seconds)

    @asynccontextmanager
    async def lifespan() -> AsyncIterator[None]:
        try:
            await store.open()
        except Exception:
            _LOG.exception("the service cannot start")
            log.close()
            raise
        save = Chore(limiter.save, settings.limits_save_seconds, "counts not saved")
        lapse = Chore(
            services.reservations.refresh, _LAPSES_SECONDS, "lapsed reservations not freed"
        )
        chores = (
            save,
            lapse,
            Chore(services.keys.refresh, settings.key_refresh_seconds, "changes to keys not seen"),
            Chore(bodies.end_late, _LATE_BODIES_SECONDS, "late bodies not ended"),
            Chore(services.retries.forget, _FORGET_SECONDS, "kept answers not forgotten"),
        )
        try:
            # What lapsed while nobody served is free before the first request.
            await attempt(lapse)
            async with background(*chores):
                yield
        finally:
            await attempt(save)
            await store.close()
            log.close()

    rules = HttpRules(
        trusted_proxies=settings.trusted_networks,
        allowed_origins=settings.allowed_origin,
    )
    return Application(
        services=services,
        routes=Routes(BASE, OPERATIONS),
        pages=_pages(store),
        bodies=bodies,
        rules=rules,
        log=log,
        lifespan=lifespan,
    )


def create_limiter(settings: Settings, store: Store, clock: Clock) -> RateLimiter:
    """Return the limiter of one process."""
    addresses = AddressLimiter(clock, settings.anonymous_per_minute, settings.address_table)
    rules = BanRules(
        least_strikes=settings.ban_strikes,
        strikes_divisor=settings.ban_strikes_divisor,
        innocence=int(settings.ban_innocent_seconds * SECOND),
        window=int(settings.ban_window_seconds * SECOND),
        first=int(settings.ban_seconds * SECOND),
        longest=int(settings.ban_longest_seconds * SECOND),
        forgiven_after=int(settings.ban_forgiven_seconds * SECOND),
    )
    return MemoryLimiter(StoredRateLimits(store), clock, rules, addresses)


def sqlite_store(settings: Settings) -> SqliteStore:
    """Return the store in the file that ``settings`` name."""
    return SqliteStore(settings.sqlite_path, int(settings.database_seconds * SECOND))


def open_log(settings: Settings) -> RequestLog:
    """Return a log on standard error that takes the records of ``logging`` too."""
    log = RequestLog(standard_error(), system_clock, for_person=is_for_person(settings))
    configure_logging(log)
    return log


def is_for_person(settings: Settings) -> bool:
    """Tell whether the log is read by a person."""
    if settings.log_format == "auto":
        return sys.stderr.isatty()
    return settings.log_format == "text"


def _pages(store: Store) -> dict[str, Page]:
    health = Health(store)
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
