"""A worker process, from its start to its end."""

import asyncio
import gc
import logging
import signal
import socket
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import TypeAlias

import uvloop

from petstore.app import create_registry, open_log, serve_settings
from petstore.errors import LostFiles, PetstoreError
from petstore.observability.metrics import CONNECTIONS, CONNECTIONS_MAX
from petstore.observability.registry import SharedMetrics
from petstore.server.deliveries import opened_deliverer
from petstore.server.listeners import http_server
from petstore.server.supervisor import ENDS_SERVICE, READY, Link
from petstore.settings import Settings

# A worker reports requests that it cut off this long before the supervisor kills it.
_CUT_OFF_SECONDS = 1
# The first request on an accepted connection arrives within this time.
_FIRST_REQUEST_SECONDS = 0.1
_GC_THRESHOLD = 10_000
_LOG = logging.getLogger(__name__)


def work(settings: Settings, link: Link, run: "Run") -> None:
    """Run a worker until the supervisor or a signal stops it (see ``supervisor.Work``)."""
    try:
        uvloop.new_event_loop().run_until_complete(_run(run, link))
    except Exception as error:  # noqa: BLE001 - whatever it is, it belongs in the log
        log = open_log(settings)  # the log of the application is closed by now
        # An operator can fix these, so a line is enough; our own faults have a traceback.
        is_expected = isinstance(error, PetstoreError | OSError)
        _LOG.error("this process cannot serve: %s", error, exc_info=not is_expected)
        log.close()
        with suppress(OSError):  # the supervisor has exited
            link.send_bytes(str(error).encode())
        sys.exit(ENDS_SERVICE if isinstance(error, LostFiles) else 1)


Run: TypeAlias = Callable[[asyncio.Event, Callable[[], None]], Awaitable[None]]
"""Prepares, calls the function once it is ready, works until the event is set, and cleans up."""


async def _run(run: Run, link: Link) -> None:
    stop = asyncio.Event()
    # Ctrl-C sends two: the terminal signals every process, and the supervisor its workers.
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await run(stop, partial(link.send_bytes, READY))


async def serve(
    settings: Settings,
    listener: socket.socket,
    shared_metrics: SharedMetrics | None,
    stop: asyncio.Event,
    report_ready: Callable[[], None],
    *,
    leaves_waiting: bool,
) -> None:
    registry = shared_metrics and create_registry(shared_metrics)
    app = serve_settings(settings, registry)
    async with app.lifespan():
        tune_garbage_collector()
        server = http_server(settings, listener, app)
        if registry is not None:
            registry.report(CONNECTIONS, lambda: server.connections)
            registry.report(CONNECTIONS_MAX, lambda: server.max_connections)
        serving = asyncio.ensure_future(server.serve())
        serving.add_done_callback(lambda _: stop.set())
        report_ready()
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


async def deliver(
    settings: Settings,
    shared_metrics: SharedMetrics | None,
    stop: asyncio.Event,
    report_ready: Callable[[], None],
) -> None:
    registry = shared_metrics and create_registry(shared_metrics, serves=False)
    async with opened_deliverer(settings, registry) as deliverer:
        tune_garbage_collector()
        report_ready()
        async with deliverer.running():
            await stop.wait()


def tune_garbage_collector() -> None:
    """Exempt the loaded program from garbage collection, and collect less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_GC_THRESHOLD)
