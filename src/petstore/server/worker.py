"""A worker process, from its start to its end."""

import asyncio
import gc
import logging
import signal
import socket
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeAlias

import uvloop

from petstore.api.application import Servable
from petstore.api.client_address import is_in
from petstore.app import create_registry, open_log, opened_deliverer, serve_settings
from petstore.errors import PetstoreError
from petstore.http.server import ConnectionLimits, HttpServer
from petstore.observability.metrics import CONNECTIONS, CONNECTIONS_MAX
from petstore.observability.registry import Registry, SharedMetrics
from petstore.rate_limits.minutes import network_of
from petstore.server.supervisor import LEAVE, READY, SERVE, Link
from petstore.settings import Settings

# A worker reports requests that it cut off this long before the supervisor kills it.
_CUT_OFF_SECONDS = 1
# The first request on an accepted connection arrives within this time.
_FIRST_REQUEST_SECONDS = 0.1
_GC_THRESHOLD = 10_000
_LOG = logging.getLogger(__name__)


def work(settings: Settings, link: Link, run: "Run") -> None:
    """Run a worker until the supervisor or a signal stops it (see ``supervisor.Work``).

    Raises:
        SystemExit: it cannot work; the reason is in the log and was sent over ``link``.
    """
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
        sys.exit(1)


class Phases:
    """What the worker may or must do: set by the messages of ``link`` and by stop signals.

    ``serve``: no other process serves in its place. ``leave``: another process takes its
    place. ``stop``: the whole service stops. A stop sets all three, so nothing waits in vain.
    """

    def __init__(self, link: Link) -> None:
        self._link = link
        self.serve, self.leave, self.stop = asyncio.Event(), asyncio.Event(), asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_reader(link.fileno(), self._receive)
        # Ctrl-C sends two: the terminal signals every process, and the supervisor its workers.
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.end)

    def end(self) -> None:
        """Stop."""
        for phase in (self.serve, self.leave, self.stop):
            phase.set()

    async def may_serve(self) -> bool:
        """Report that the worker is ready, and return whether it is to serve."""
        self._link.send_bytes(READY)
        await self.serve.wait()
        return not self.stop.is_set()

    def _receive(self) -> None:
        {SERVE: self.serve, LEAVE: self.leave}[self._link.recv_bytes()].set()


Run: TypeAlias = Callable[[Phases], Awaitable[None]]
"""Prepares, works once the supervisor says so, and cleans up."""


async def _run(run: Run, link: Link) -> None:
    await run(Phases(link))


async def serve(
    settings: Settings,
    listener: socket.socket,
    shared_metrics: SharedMetrics | None,
    phases: Phases,
) -> None:
    """Serve clients on ``listener``."""
    registry = shared_metrics and create_registry(shared_metrics)
    app = serve_settings(settings, registry)
    async with app.lifespan():
        tune_garbage_collector()
        if await phases.may_serve():
            await _serve(settings, listener, app, phases, registry)


async def deliver(settings: Settings, shared_metrics: SharedMetrics | None, phases: Phases) -> None:
    """Deliver events to webhooks."""
    registry = shared_metrics and create_registry(shared_metrics, serves=False)
    async with opened_deliverer(settings, registry) as deliverer:
        tune_garbage_collector()
        await phases.may_serve()
        async with deliverer.running():
            await phases.leave.wait()


async def _serve(
    settings: Settings,
    listener: socket.socket,
    app: Servable,
    phases: Phases,
    registry: Registry | None,
) -> None:
    limits = ConnectionLimits(
        settings.connections,
        settings.connections_per_address,
        settings.buffer_bytes,
        settings.header_timeout,
    )
    proxies = settings.trusted_networks

    def count_for(address: str) -> str | None:
        return None if is_in(address, proxies) else network_of(address)

    server = HttpServer(app, listener, limits, count_for)
    if registry is not None:
        registry.report(CONNECTIONS, lambda: server.connections)
        registry.report(CONNECTIONS_MAX, lambda: server.max_connections)
    serving = asyncio.ensure_future(server.serve())
    serving.add_done_callback(lambda _: phases.end())
    drain_timeout = max(settings.drain_timeout, _FIRST_REQUEST_SECONDS)
    await phases.leave.wait()
    server.retire()
    app.hand_over()
    with suppress(TimeoutError):  # in a reload the service stays ready meanwhile
        async with asyncio.timeout(drain_timeout):
            await phases.stop.wait()
    if phases.stop.is_set():
        app.retire()
        await asyncio.sleep(drain_timeout)
    server.stop()
    timeout = settings.shutdown_timeout - _CUT_OFF_SECONDS
    _, unfinished = await asyncio.wait([serving], timeout=timeout - drain_timeout)
    if unfinished:
        _LOG.warning("unfinished requests were cut off %d s after the stop signal", timeout)


def tune_garbage_collector() -> None:
    """Exempt the loaded program from garbage collection, and collect less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_GC_THRESHOLD)
