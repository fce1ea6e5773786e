"""What a process that serves does, from its start to its end."""

import asyncio
import gc
import logging
import signal
import socket
import sys
from contextlib import suppress
from functools import partial

import uvloop

from petstore.api.application import Servable
from petstore.api.client_address import Network, is_in
from petstore.app import metrics_at, open_log, serve_settings
from petstore.errors import PetstoreError
from petstore.http.server import ConnectionLimits, HttpServer
from petstore.observability.figures import CONNECTIONS, CONNECTIONS_MAX
from petstore.observability.metrics import NoMetrics
from petstore.observability.place import Place
from petstore.rate_limits.minutes import network_of
from petstore.server.supervisor import LEAVE, READY, SERVE, Link
from petstore.settings import Settings

_CUT_OFF_SECONDS = 1
# Where a connection was accepted, its first request is there in this time.
_UNDER_WAY_SECONDS = 0.1
_ALLOCATIONS = 10_000
_LOG = logging.getLogger(__name__)


def work(settings: Settings, listener: socket.socket, place: Place | None, link: Link) -> None:
    """Serve the callers of ``listener`` as ``link`` says, and at the end what is under way.

    Raises:
        SystemExit: it cannot serve; the log tells why, and ``link``.
    """
    try:
        uvloop.new_event_loop().run_until_complete(_prepare(settings, listener, place, link))
    except Exception as error:  # noqa: BLE001 - it is logged, if not under its own name
        log = open_log(settings)  # that of the application is closed by now
        # What an operator can mend is told in a line, and a fault of ours with its traceback.
        is_expected = isinstance(error, PetstoreError | OSError)
        _LOG.error("this process cannot serve: %s", error, exc_info=not is_expected)
        log.close()
        with suppress(OSError):  # the supervisor is gone
            link.send_bytes(str(error).encode())
        sys.exit(1)


class _Orders:
    """What this process is told, over ``link`` or by a stop signal.

    ``serve``: nobody else serves in its place. ``leave``: another process takes its place.
    ``stop``: the whole service stops. Who is to leave need not wait to serve, and so on.
    """

    def __init__(self, link: Link) -> None:
        self._link = link
        self.serve, self.leave, self.stop = asyncio.Event(), asyncio.Event(), asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_reader(link.fileno(), self._receive)
        # At Ctrl-C there are two: one from the terminal, and one from the process that started this
        # one. Those after the first change nothing.
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.end)

    def end(self) -> None:
        """Stop."""
        for order in (self.serve, self.leave, self.stop):
            order.set()

    async def await_stop(self, seconds: float) -> None:
        """Wait for the stop of the whole service, so long at most."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.stop.wait()

    def _receive(self) -> None:
        {SERVE: self.serve, LEAVE: self.leave}[self._link.recv_bytes()].set()


async def _prepare(
    settings: Settings, listener: socket.socket, place: Place | None, link: Link
) -> None:
    """Do all that is needed to serve, serve when it is time, and put everything away."""
    orders = _Orders(link)
    metrics = metrics_at(place)
    app = serve_settings(settings, metrics)
    async with app.lifespan():
        spare_collector()
        link.send_bytes(READY)
        await orders.serve.wait()
        if not orders.stop.is_set():
            await _serve(settings, listener, app, orders, metrics)


async def _serve(
    settings: Settings,
    listener: socket.socket,
    app: Servable,
    orders: _Orders,
    metrics: NoMetrics,
) -> None:
    limits = ConnectionLimits(
        settings.connections,
        settings.connections_per_address,
        settings.buffer_bytes,
        settings.header_timeout,
    )
    server = HttpServer(app, listener, limits, partial(_counted_as, settings.trusted_networks))
    metrics.gauge(CONNECTIONS, lambda: server.connections)
    metrics.gauge(CONNECTIONS_MAX, lambda: server.max_connections)
    serving = asyncio.ensure_future(server.serve())
    serving.add_done_callback(lambda _: orders.end())
    lame = max(settings.drain_timeout, _UNDER_WAY_SECONDS)
    await orders.leave.wait()
    server.retire()
    app.hand_over()
    # While another takes its place the service stays ready.
    await orders.await_stop(lame)
    if orders.stop.is_set():
        app.retire()
        await asyncio.sleep(lame)
    server.stop()
    patience = settings.shutdown_timeout - _CUT_OFF_SECONDS
    _, unfinished = await asyncio.wait([serving], timeout=patience - lame)
    if unfinished:
        _LOG.warning("what was under way %d s after the stop signal was cut off", patience)


def _counted_as(proxies: tuple[Network, ...], address: str) -> str | None:
    """Return what connections from ``address`` count as: its network, or nothing for a proxy."""
    return None if is_in(address, proxies) else network_of(address)


def spare_collector() -> None:
    """Have the collector of cycles look at requests alone, and not at each few dozen of them."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_ALLOCATIONS)
