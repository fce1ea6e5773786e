"""A service from its settings to its end."""

import asyncio
import gc
import logging
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeAlias

import uvloop

from petstore import __version__
from petstore.app import create_registry, open_log, serve_settings
from petstore.backends import database_of, migrate, require_secret, secret_file_of, watched_files
from petstore.clock import system_clock
from petstore.databases.sqlite import checkpoint_and_remove_wal
from petstore.errors import LostFiles, PetstoreError
from petstore.events.store import publishing
from petstore.http.server import room_for
from petstore.logs import LogEvent
from petstore.observability.measured import Metrics, report_attempts, report_backlog
from petstore.observability.metrics import CONNECTIONS, CONNECTIONS_MAX
from petstore.observability.registry import Registry, SharedMetrics, share_metrics
from petstore.periodic_tasks import PeriodicTask, background
from petstore.server.listeners import http_server, inherited_listener, listen
from petstore.server.supervisor import ENDS_SERVICE, NEEDS_OTHERS, READY, Link, Supervisor, Work
from petstore.settings import Settings, is_postgres, sqlite_path
from petstore.webhooks.deliverer import Deliverer, NoteAttempt
from petstore.webhooks.sender import Resolver, Sender
from petstore.webhooks.signing import webhook_secrets
from petstore.webhooks.store import LeasedWebhook, has_webhooks

_SQLITE_POLL_SECONDS = 0.05
_POSTGRES_POLL_SECONDS = 0.1
_LOOK_SECONDS = 0.5
_STOP_SECONDS = 5
_DELIVERY_CONNECTIONS = 20_000  # most of them wait for a response
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Service:
    """A service that is ready to start its workers."""

    settings: Settings
    listener: socket.socket
    is_inherited: bool
    shared_metrics: SharedMetrics | None

    @property
    def url(self) -> str:
        if not self.is_inherited:
            return self.settings.listening_url
        host, port = self.listener.getsockname()[:2]
        return replace(self.settings, host=host, port=port).listening_url

    def run(self) -> int:
        """Serve until a stop signal, finish the requests in progress; return the exit status."""
        settings = self.settings
        file = None if is_postgres(settings.database) else sqlite_path(settings.database)
        log = open_log(settings)
        if file:
            _warn_if_open_to_others(file)
        works: list[Work] = [self._work] * (settings.workers + settings.delivers)
        count, timeout = settings.workers, settings.shutdown_timeout
        try:
            return Supervisor(works, count, timeout, self.listener.close, self.url).run()
        finally:
            # Workers that close the database at the same moment leave its log to each other.
            if file:
                checkpoint_and_remove_wal(file)
            log.close()

    def _work(self, worker_id: int, link: Link) -> None:
        settings = self.settings
        shared = self.shared_metrics and self.shared_metrics._replace(worker_id=worker_id)
        run: Run = partial(deliver, settings, shared)
        if worker_id < settings.workers:
            run = partial(serve, settings, self.listener, shared, leaves_waiting=self.is_inherited)
        work(settings, link, run)


@contextmanager
def prepared_service(settings: Settings) -> Iterator[Service]:
    """Open what a service needs, and migrate its database; close it all when the block ends."""
    settings.check()
    secret_file_of(settings)
    room_for(settings.max_connections)
    with ExitStack() as opened:
        inherited = inherited_listener()
        listener = opened.enter_context(inherited or listen(settings.host, settings.port))
        shared_metrics = None
        if settings.metrics_port:
            metrics = opened.enter_context(listen(settings.host, settings.metrics_port))
            shared_metrics = opened.enter_context(share_metrics(metrics, settings.workers))
        if settings.redis:
            # Imported where it is used: it takes its time.
            from petstore.limits.redis import check_redis

            with suppress(ConnectionError):  # Redis may be down; a wrong user is refused
                asyncio.run(check_redis(settings.redis))
        migrate(settings.database)
        require_secret(settings)
        yield Service(settings, listener, inherited is not None, shared_metrics)


def _warn_if_open_to_others(path: Path) -> None:
    mode = path.stat().st_mode & 0o777
    if mode & 0o077:
        _LOG.warning(
            "%s is accessible to other users (mode %04o), who could read everything or block all"
            " changes; run chmod 600",
            path,
            mode,
        )


# A worker reports requests that it cut off this long before the supervisor kills it.
_CUT_OFF_SECONDS = 1
# The first request on an accepted connection arrives within this time.
_FIRST_REQUEST_SECONDS = 0.1
_GC_THRESHOLD = 10_000


def work(settings: Settings, link: Link, run: "Run") -> None:
    try:
        uvloop.new_event_loop().run_until_complete(_run(run, link.send_bytes))
    except Exception as error:  # noqa: BLE001 - whatever it is, it belongs in the log
        log = open_log(settings)  # the log of the application is closed by now
        # An operator can fix these, so a line is enough; our own faults have a traceback.
        is_expected = isinstance(error, PetstoreError | OSError)
        _LOG.error("this process cannot serve: %s", error, exc_info=not is_expected)
        log.close()
        with suppress(OSError):  # the supervisor has exited
            link.send_bytes(str(error).encode())
        sys.exit(ENDS_SERVICE if isinstance(error, LostFiles) else 1)


Run: TypeAlias = Callable[[asyncio.Event, Callable[[bytes], None]], Awaitable[None]]
"""Prepares, reports ``READY``, works until the event is set, and cleans up."""


async def _run(run: Run, report: Callable[[bytes], None]) -> None:
    stop = asyncio.Event()
    # Ctrl-C sends two: the terminal signals every process, and the supervisor its workers.
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await run(stop, report)


async def serve(
    settings: Settings,
    listener: socket.socket,
    shared_metrics: SharedMetrics | None,
    stop: asyncio.Event,
    report: Callable[[bytes], None],
    *,
    leaves_waiting: bool,
) -> None:
    registry = shared_metrics and create_registry(shared_metrics)
    app = serve_settings(settings, registry)
    is_reported = False

    async def look_for_webhooks() -> None:
        nonlocal is_reported
        # Once: a supervisor that hangs reads nothing, and to write to a full pipe would wait.
        if not is_reported and await has_webhooks(app.services.store):
            report(NEEDS_OTHERS)
            is_reported = True

    # Without webhooks, the deliverer would take 7 MB for nothing.
    look = PeriodicTask(look_for_webhooks, _LOOK_SECONDS, "webhooks not looked for")
    async with app.lifespan():
        tune_garbage_collector()
        server = http_server(settings, listener, app)
        if registry is not None:
            registry.report(CONNECTIONS, lambda: server.connections)
            registry.report(CONNECTIONS_MAX, lambda: server.max_connections)
        serving = asyncio.ensure_future(server.serve())
        serving.add_done_callback(lambda _: stop.set())
        report(READY)
        async with background(look):
            await stop.wait()
        drain_timeout = max(settings.drain_timeout, _FIRST_REQUEST_SECONDS)
        server.shut_down(drain_timeout)
        app.shut_down()
        await asyncio.sleep(drain_timeout)
        server.stop(leaves_waiting=leaves_waiting)
        timeout = settings.shutdown_timeout - _CUT_OFF_SECONDS
        _, unfinished = await asyncio.wait([serving], timeout=timeout - drain_timeout)
        if unfinished:
            _LOG.warning("unfinished requests were cut off %d s after the stop signal", timeout)


def run_deliverer(settings: Settings) -> None:
    """Deliver events to webhooks until a stop signal, in this process and without a supervisor."""
    require_secret(settings)
    with ExitStack() as opened:
        shared: SharedMetrics | None = None
        if settings.metrics_port:
            listener = opened.enter_context(listen(settings.host, settings.metrics_port))
            shared = opened.enter_context(share_metrics(listener))
        run = partial(deliver, settings, shared)
        started = LogEvent("deliveries_started", "deliveries to webhooks have started")
        uvloop.new_event_loop().run_until_complete(_run(run, lambda _: _LOG.info(started)))


async def deliver(
    settings: Settings,
    shared_metrics: SharedMetrics | None,
    stop: asyncio.Event,
    report: Callable[[bytes], None],
) -> None:
    room_for(_DELIVERY_CONNECTIONS)
    secret, on_postgres = secret_file_of(settings), is_postgres(settings.database)
    registry: Registry | None = shared_metrics and create_registry(shared_metrics, serves=False)
    store = database_of(settings, [] if registry is None else [Metrics(registry)])
    note_attempt: NoteAttempt = lambda _state, _seconds: None  # noqa: E731 - nothing is observed
    if registry is not None:
        note_attempt = report_attempts(registry)
        report_backlog(registry, store, settings.environment, system_clock)

    def secrets_of(webhook: LeasedWebhook) -> list[bytes]:
        version, ends_at = webhook.secret_version, webhook.previous_secret_ends_at
        return webhook_secrets(secret.read(), webhook.id, version, ends_at, system_clock())

    deliverer = Deliverer(
        store,
        Sender(Resolver(), settings.webhook_networks, f"petstore/{__version__}"),
        secrets_of,
        system_clock,
        note_attempt,
        settings.environment,
        poll_seconds=_POSTGRES_POLL_SECONDS if on_postgres else _SQLITE_POLL_SECONDS,
        stop_seconds=min(_STOP_SECONDS, settings.shutdown_timeout - 1),
    )
    async with AsyncExitStack() as opened:
        opened.callback(open_log(settings).close)
        await store.open()
        opened.push_async_callback(store.close)
        if on_postgres:
            await opened.enter_async_context(background(publishing(store)))
        else:
            await opened.enter_async_context(watched_files(store))
        if registry is not None:
            await opened.enter_async_context(registry.running())
        tune_garbage_collector()
        async with deliverer.running():
            report(READY)
            await stop.wait()


def tune_garbage_collector() -> None:
    """Exempt the loaded program from garbage collection, and collect less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_GC_THRESHOLD)
