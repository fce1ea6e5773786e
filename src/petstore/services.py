"""The parts that operations work with, from the settings of a service or of a command."""

from functools import partial

from petstore.clock import Clock
from petstore.databases.contract import Store
from petstore.databases.private_files import SecretFile
from petstore.deprecations.operations import deprecated_operations
from petstore.events.feed import Feed
from petstore.events.store import publish_first
from petstore.interface.idempotency_records import SafeRetries
from petstore.interface.operation import Services
from petstore.interface.operations import OPERATIONS
from petstore.keys.cache import ApiKeyCache
from petstore.limits.admission import Admission
from petstore.limits.contract import RateLimiter
from petstore.orders.reservations import Reservations
from petstore.settings import Settings, is_postgres
from petstore.usage.counter import Counter

# How often the feed is looked at while somebody waits: a query costs more on PostgreSQL.
_FEED_SECONDS = (0.02, 0.05)


def create_services(
    settings: Settings, store: Store, limiter: RateLimiter, clock: Clock, secret: SecretFile
) -> Services:
    """Put the parts together. ``secret`` is the file with the master secret of all webhooks."""
    on_postgres = is_postgres(settings.database)
    publish = partial(publish_first, store) if on_postgres else None
    feed = Feed(store, _FEED_SECONDS[on_postgres], publish)
    return Services(
        store=store,
        limiter=limiter,
        admission=Admission(
            clock,
            settings.anonymous_per_minute,
            settings.max_tracked_addresses,
            settings.usage_per_minute,
            settings.console_per_minute,
        ),
        clock=clock,
        keys=ApiKeyCache(store, clock, settings.environment, feed.look_at_callers),
        retries=SafeRetries(store, clock),
        feed=feed,
        reservations=Reservations(store, clock),
        counter=Counter(store, clock),
        deprecated=deprecated_operations(OPERATIONS),
        reservation_minutes=settings.reservation_minutes,
        currency=settings.currency,
        time_zone=settings.zone,
        strict_categories=settings.strict_categories,
        webhook_secret=secret,
        webhook_networks=settings.webhook_networks,
    )
