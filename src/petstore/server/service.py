"""A service from its settings to its end."""

import asyncio
import logging
import socket
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from petstore.app import open_log
from petstore.backends import require_secret, secret_file_of, store_at
from petstore.clock import SECOND
from petstore.databases.sqlite import put_log_away
from petstore.http.open_files import require_room
from petstore.observability.registry import SharedMetrics, share_metrics
from petstore.server.lifecycle import Lifecycle
from petstore.server.listeners import inherited_listener, listen
from petstore.server.supervisor import Link, Supervisor, Work
from petstore.server.worker import deliver, serve, work
from petstore.settings import Settings, is_postgres, sqlite_path

_MIGRATION_TIMEOUT = 10 * SECOND
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Service:
    """A service that is ready to start its workers.

    If its ``listener`` is inherited, clients that wait there are left to the next process.
    """

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

    def run(self, warnings: Iterable[str]) -> int:
        """Serve until a stop signal, finish the requests in progress, and return the exit status.

        The log begins with ``warnings``.
        """
        settings = self.settings
        file = None if is_postgres(settings.database) else sqlite_path(settings.database)
        log = open_log(settings)
        for warning in warnings:
            _LOG.warning(warning)
        if file:
            _warn_if_open_to_others(file)
        lifecycle = Lifecycle(settings.workers, self.url)
        works: list[Work] = [self._serve] * settings.workers
        if settings.delivers:
            works.append(self._deliver)
        count, timeout = settings.workers, settings.shutdown_timeout
        try:
            return Supervisor(works, count, timeout, self.listener.close, lifecycle).run()
        finally:
            # Workers that close the database at the same moment leave its log to each other.
            if file:
                put_log_away(file)
            log.close()

    def _serve(self, worker_id: int, link: Link) -> None:
        shared = self._shared_metrics(worker_id)
        run = partial(serve, self.settings, self.listener, shared, leaves_waiting=self.is_inherited)
        work(self.settings, link, run)

    def _deliver(self, worker_id: int, link: Link) -> None:
        shared = self._shared_metrics(worker_id)
        work(self.settings, link, partial(deliver, self.settings, shared))

    def _shared_metrics(self, worker_id: int) -> SharedMetrics | None:
        return self.shared_metrics and self.shared_metrics._replace(worker_id=worker_id)


@contextmanager
def prepared_service(settings: Settings) -> Iterator[Service]:
    """Open what a service needs, and migrate its database; close it all when the block ends."""
    settings.check()
    secret_file_of(settings)
    require_room(settings.max_connections)
    with ExitStack() as opened:
        inherited = inherited_listener()
        listener = opened.enter_context(inherited or listen(settings.host, settings.port))
        shared_metrics = None
        if settings.metrics_port:
            metrics = opened.enter_context(listen(settings.host, settings.metrics_port))
            shared_metrics = opened.enter_context(share_metrics(metrics, settings.workers))
        if settings.redis:
            _check_redis(settings.redis)
        store_at(settings.database, _MIGRATION_TIMEOUT).migrate()
        require_secret(settings)
        yield Service(settings, listener, inherited is not None, shared_metrics)


def _check_redis(url: str) -> None:
    """Refuse a wrong password of Redis. Redis may be down."""
    # Imported where it is used: it takes its time.
    from petstore.redis_client import check_redis

    with suppress(ConnectionError):
        asyncio.run(check_redis(url))


def _warn_if_open_to_others(path: Path) -> None:
    mode = path.stat().st_mode & 0o777
    if mode & 0o077:
        _LOG.warning(
            "others than its owner may open %s (mode %04o): they could read everything, or stop"
            " all changes by a lock; chmod 600 keeps them out",
            path,
            mode,
        )
