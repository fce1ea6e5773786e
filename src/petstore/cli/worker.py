"""What a process that serves does, from its start to its end."""

import asyncio
import gc
import logging
import signal
import socket
import sys
from collections.abc import Callable
from functools import partial

import uvloop

from petstore.api.client_address import Network, is_in
from petstore.app import metrics_at, open_log, serve_settings
from petstore.http.server import ConnectionLimits, HttpServer
from petstore.observability.figures import CONNECTIONS, CONNECTIONS_MAX
from petstore.observability.place import Place
from petstore.rate_limits.addresses import network_of
from petstore.settings import Settings

_CUT_OFF_SECONDS = 1
# Where a connection was accepted, its first request is there in this time.
_UNDER_WAY_SECONDS = 0.1
_ALLOCATIONS = 10_000
_LOG = logging.getLogger(__name__)


def work(
    settings: Settings, listener: socket.socket, place: Place | None, say_ready: Callable[[], None]
) -> None:
    """Serve the callers of ``listener`` until a stop signal, and then what is under way.

    Raises:
        SystemExit: it cannot serve; the log tells why.
    """
    try:
        uvloop.new_event_loop().run_until_complete(_serve(settings, listener, place, say_ready))
    except Exception:  # noqa: BLE001 - it is logged, if not under its own name
        log = open_log(settings)  # that of the application is closed by now
        _LOG.exception("this process cannot serve")
        log.close()
        sys.exit(1)


async def _serve(
    settings: Settings, listener: socket.socket, place: Place | None, say_ready: Callable[[], None]
) -> None:
    stop = _stop_signal()
    metrics = metrics_at(place)
    app = serve_settings(settings, metrics)
    limits = ConnectionLimits(
        settings.connections,
        settings.connections_per_address,
        settings.buffer_bytes,
        settings.head_seconds,
    )
    server = HttpServer(app, listener, limits, partial(_counted_as, settings.trusted_networks))
    metrics.gauge(CONNECTIONS, lambda: server.connections)
    metrics.gauge(CONNECTIONS_MAX, lambda: server.max_connections)
    async with app.lifespan():
        serving = asyncio.ensure_future(server.serve())
        serving.add_done_callback(lambda _: stop.set())
        spare_collector()
        say_ready()
        await stop.wait()
        app.retire()
        server.retire()
        lame = max(settings.lame_seconds, _UNDER_WAY_SECONDS)
        await asyncio.sleep(lame)
        server.stop()
        patience = settings.stop_seconds - _CUT_OFF_SECONDS
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


def _stop_signal() -> asyncio.Event:
    """Return what the first stop signal sets; those after it change nothing.

    At Ctrl-C there are two: one from the terminal, and one from the process that started this one.
    """
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop
