"""A process that only delivers events to webhooks, without a supervisor."""

import asyncio
import logging
import signal
from collections.abc import Iterable
from contextlib import ExitStack

import uvloop

from petstore.app import create_registry, opened_deliverer, require_secret
from petstore.logs import Event
from petstore.observability.registry import Registry, SharedMetrics, share_metrics
from petstore.server.service import listen
from petstore.settings import Settings

_LOG = logging.getLogger(__name__)


def run_deliverer(settings: Settings, warnings: Iterable[str]) -> None:
    """Deliver until a stop signal. The log begins with ``warnings``.

    Raises:
        SettingError: the secret file is missing or malformed.
        OSError: the port of the metrics cannot be used.
        PetstoreError: the database cannot be opened.
    """
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
            _LOG.info(Event("deliveries_started", "deliveries to webhooks have started"))
            await stopped.wait()
        _LOG.info(Event("deliveries_stopped", "deliveries to webhooks have stopped"))
