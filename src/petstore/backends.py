"""The parts of a service or of a command, as settings name them."""

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from petstore.clock import SECOND, Clock, Milliseconds
from petstore.databases.contract import Store, T
from petstore.databases.private_files import SecretFile, obstacle
from petstore.databases.sqlite import SqliteStore, file_has_webhooks
from petstore.errors import LostFiles, UnusableDatabase
from petstore.events.feed import Feed
from petstore.interface.idempotency_records import SafeRetries
from petstore.interface.operation import Services
from petstore.interface.operations import OPERATIONS
from petstore.keys.store import ApiKeyCache
from petstore.limits.admission import Admission
from petstore.limits.database import StoredRateLimits
from petstore.limits.decide import BanRules, RateLimiter
from petstore.limits.memory import MemoryLimiter
from petstore.observability.hooks import Observers, observed_store
from petstore.orders.store import Reservations
from petstore.periodic_tasks import PeriodicTask, background
from petstore.settings import SettingError, Settings, is_postgres, sqlite_path
from petstore.usage.counter import Counter
from petstore.usage.operations import deprecated_operations

COMMAND_TIMEOUT: Milliseconds = 10 * SECOND
"""How long a command waits for a database that others use."""


def database_of(settings: Settings, observers: Observers = ()) -> Store:
    timeout = int(settings.database_timeout * SECOND)
    store = store_at(settings.database, timeout, settings.database_connections)
    return observed_store(store, observers)


def store_at(database: str, timeout: Milliseconds, connections: int = 1) -> Store:
    if not is_postgres(database):
        return SqliteStore(sqlite_path(database), timeout)
    # Imported where it is used: it is slow to import.
    from petstore.databases.postgres import PostgresStore

    return PostgresStore(database, timeout, connections)


def migrate(database: str) -> None:
    store_at(database, COMMAND_TIMEOUT).migrate()


def in_store(database: str, action: Callable[[Store], Awaitable[T]]) -> T:
    """Return the result of ``action`` on the store at ``database``, which is brought up to date."""
    migrate(database)
    store = store_at(database, COMMAND_TIMEOUT)

    async def run() -> T:
        await store.open()
        try:
            return await action(store)
        finally:
            await store.close()

    return asyncio.run(run())


def require_store(database: str, hint: str = "") -> None:
    """Refuse a database without a store: its address is probably mistyped."""
    if is_postgres(database):
        exists = store_at(database, COMMAND_TIMEOUT).schema().version > 0
        place = "in that database"
    else:
        path = sqlite_path(database)
        exists, place = has_file(path), f"at {path}"
    if not exists:
        msg = f"there is no store {place}; petstore serve or petstore keys create creates one{hint}"
        raise UnusableDatabase(msg)


def has_file(path: Path) -> bool:
    if reason := obstacle(path):
        raise UnusableDatabase(f"{path}: {reason}")
    return path.exists()


@asynccontextmanager
async def watched_files(store: Store) -> AsyncIterator[None]:
    """Stop this process (SIGTERM) if a file of its SQLite database is deleted or replaced."""
    lost: list[str] = []

    async def check() -> None:
        try:
            await store.check()
        except LostFiles as error:
            if not lost:
                lost.append(error.detail)
                signal.raise_signal(signal.SIGTERM)
            raise

    async with background(PeriodicTask(check, 0.2, "database check failed")):
        yield
    if lost:
        raise LostFiles(lost[0])


def create_limiter(settings: Settings, store: Store, clock: Clock) -> RateLimiter:
    rules = BanRules(
        min_strikes=settings.ban_strikes,
        grace=int(settings.ban_grace_seconds * SECOND),
        duration=int(settings.ban_seconds * SECOND),
    )
    states = StoredRateLimits(store)
    if not settings.redis:
        return MemoryLimiter(states, clock, rules)
    # Imported where it is used: it is slow to import.
    from petstore.limits.redis import RedisLimiter
    from petstore.redis_client import RedisClient

    return RedisLimiter(RedisClient(settings.redis), states, clock, rules, settings.workers)


def secret_file_of(settings: Settings) -> SecretFile:
    path = settings.secret_path
    # Instances on PostgreSQL may run on several machines, and each would make another.
    file = SecretFile(path, may_create=not is_postgres(settings.database))
    try:
        file.check()
    except (OSError, ValueError) as error:
        reason = (isinstance(error, OSError) and error.strerror) or error
        raise SettingError(f"secret-file: {path}: {reason}") from error
    return file


def require_secret(settings: Settings) -> None:
    """Refuse a SQLite store that has webhooks and no secret file any more."""
    secret = settings.secret_path
    if is_postgres(settings.database) or secret is None or secret.exists():
        return
    store = sqlite_path(settings.database)
    if store.is_file() and file_has_webhooks(store):  # opening a pipe would block
        raise SettingError(
            f"secret-file: {secret} is missing, and webhooks in {store} were signed with it: put it"
            " back. If it is lost, create another one with (umask 077; openssl rand -base64 32 >"
            f" {secret}), and rotate the secret of each webhook"
        )


# How often the feed is looked at while a client waits: a query costs more on PostgreSQL.
_FEED_SECONDS = (0.02, 0.05)


def create_services(
    settings: Settings, store: Store, limiter: RateLimiter, clock: Clock, secret: SecretFile
) -> Services:
    on_postgres = is_postgres(settings.database)
    feed = Feed(store, _FEED_SECONDS[on_postgres])
    return Services(
        settings=settings,
        store=store,
        limiter=limiter,
        admission=Admission(clock, settings),
        clock=clock,
        keys=ApiKeyCache(store, clock, settings.environment, feed.recheck_callers),
        retries=SafeRetries(store, clock),
        feed=feed,
        reservations=Reservations(store, clock),
        counter=Counter(store),
        deprecated=deprecated_operations(OPERATIONS),
        webhook_secret=secret,
    )
