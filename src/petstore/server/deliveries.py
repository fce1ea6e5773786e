"""What delivers events to webhooks, and a process that does only that, without a supervisor."""

import asyncio
import logging
import signal
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager

import uvloop

from petstore import __version__
from petstore.app import create_registry, open_log
from petstore.backends import database_of, require_secret, secret_file_of, watched_files
from petstore.clock import system_clock
from petstore.http.server import room_for
from petstore.logs import LogEvent
from petstore.observability.measured import Metrics, report_attempts, report_backlog
from petstore.observability.registry import Registry, SharedMetrics, share_metrics
from petstore.server.listeners import listen
from petstore.settings import Settings, is_postgres
from petstore.webhooks.deliverer import Deliverer, NoteAttempt, Rules
from petstore.webhooks.sender import Resolver, Sender
from petstore.webhooks.signing import webhook_secrets
from petstore.webhooks.store import LeasedWebhook

_SQLITE_POLL_SECONDS = 0.05
_POSTGRES_POLL_SECONDS = 0.1
_STOP_SECONDS = 5
_CONNECTIONS = 20_000
_LOG = logging.getLogger(__name__)


@asynccontextmanager
async def opened_deliverer(
    settings: Settings, registry: Registry | None = None
) -> AsyncIterator[Deliverer]:
    # Most of them wait for a response.
    room_for(_CONNECTIONS)
    secret = secret_file_of(settings)
    on_postgres = is_postgres(settings.database)
    observers = [] if registry is None else [Metrics(registry, settings)]
    store = database_of(settings, observers)
    note_attempt: NoteAttempt = lambda _state, _seconds: None  # noqa: E731 - nothing is observed
    if registry is not None:
        note_attempt = report_attempts(registry)
        report_backlog(registry, store, settings.environment, system_clock)

    def secrets_of(webhook: LeasedWebhook) -> list[bytes]:
        version, ends_at = webhook.secret_version, webhook.previous_secret_ends_at
        return webhook_secrets(secret.read(), webhook.id, version, ends_at, system_clock())

    rules = Rules(
        settings.environment,
        publishes=on_postgres,
        poll_seconds=_POSTGRES_POLL_SECONDS if on_postgres else _SQLITE_POLL_SECONDS,
        stop_seconds=min(_STOP_SECONDS, settings.shutdown_timeout - 1),
    )
    sender = Sender(Resolver(), settings.webhook_networks, f"petstore/{__version__}")
    async with AsyncExitStack() as opened:
        opened.callback(open_log(settings).close)
        await store.open()
        opened.push_async_callback(store.close)
        if not on_postgres:
            await opened.enter_async_context(watched_files(store))
        if registry is not None:
            await opened.enter_async_context(registry.running())
        yield Deliverer(store, sender, secrets_of, system_clock, note_attempt, rules)


def run_deliverer(settings: Settings, warnings: Iterable[str]) -> None:
    require_secret(settings)
    with ExitStack() as opened:
        shared: SharedMetrics | None = None
        if settings.metrics_port:
            listener = opened.enter_context(listen(settings.host, settings.metrics_port))
            shared = opened.enter_context(share_metrics(listener))
        uvloop.new_event_loop().run_until_complete(_deliver(settings, warnings, shared))


async def _deliver(
    settings: Settings, warnings: Iterable[str], shared: SharedMetrics | None
) -> None:
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    registry: Registry | None = shared and create_registry(shared, serves=False)
    async with opened_deliverer(settings, registry) as deliverer:
        for warning in warnings:
            _LOG.warning(warning)
        async with deliverer.running():
            _LOG.info(LogEvent("deliveries_started", "deliveries to webhooks have started"))
            await stopped.wait()
        _LOG.info(LogEvent("deliveries_stopped", "deliveries to webhooks have stopped"))
