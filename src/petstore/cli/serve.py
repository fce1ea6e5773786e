"""``petstore serve``."""

import logging
import os
import signal
import socket
import sys
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import click

from petstore.cli.failures import plain_failures
from petstore.cli.in_store import in_store, migrate
from petstore.cli.serve_command import ServeCommand
from petstore.cli.settings_options import settings_options, warnings_of
from petstore.http.open_files import require_room
from petstore.observability.place import Place, open_place
from petstore.server.pid_file import PidFile, held_pid_file
from petstore.settings import SettingError, Settings, is_postgres, sqlite_path

_LOG = logging.getLogger(__name__)
_BACKLOG = 4096  # the system may allow fewer


@click.command(cls=ServeCommand)
@click.option(
    "--demo",
    is_flag=True,
    envvar="PETSTORE_DEMO",
    show_envvar=True,
    help="First fill an empty store with sample animals and make a key to try it with.",
)
@click.option(
    "--check",
    "is_check",
    is_flag=True,
    help="Print the settings, try what they name, and end; change nothing.",
)
@settings_options
@click.pass_context
def serve(ctx: click.Context, /, *, demo: bool, is_check: bool, **options: Any) -> None:
    """Serve the interface over HTTP until stopped."""
    settings = Settings(**options)
    if is_check:
        from petstore.cli.check import print_settings, tried

        print_settings(ctx)
        sys.exit(tried(settings))
    # Until there are processes to replace, a reload has nothing to do; by itself it would end us.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with ExitStack() as opened:
        with plain_failures():
            settings.check()
            require_room(settings.connections)
            listener = opened.enter_context(listen(settings.host, settings.port))
            place = None
            if settings.metrics_port:
                metrics = opened.enter_context(listen(settings.host, settings.metrics_port))
                place = opened.enter_context(open_place(metrics, settings.workers))
            pid_file = None
            if settings.pid_file:
                pid_file = opened.enter_context(held_pid_file(Path(settings.pid_file)))
            token = _prepare(settings, demo=demo)
        announce(settings, token)
        sys.exit(run(settings, listener, place, pid_file, warnings_of(ctx)))


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens.

    Raises:
        OSError: the address cannot be listened on.
    """
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        takes_both = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
        listener = socket.create_server(
            address, family=family, backlog=_BACKLOG, dualstack_ipv6=takes_both
        )
    except OSError as error:
        is_of_name = isinstance(error, socket.gaierror)
        reason = error.strerror if is_of_name else os.strerror(error.errno or 0)
        msg = f"cannot listen on {host} port {port}: {reason}"
        raise OSError(msg) from None
    # Of several processes that accept from it none may wait in vain for what another took.
    listener.settimeout(0)
    # What it accepts inherits this: an answer goes out at once.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def _prepare(settings: Settings, *, demo: bool) -> str | None:
    """Bring the database up to date, and with ``demo`` return the token of a key to try.

    Raises:
        SettingError: the address of Redis names no place.
        PermissionError: Redis does not take the password.
    """
    if settings.redis:
        import asyncio

        from petstore.redis_client.client import check_redis

        try:
            with suppress(ConnectionError):  # Redis may be there later
                asyncio.run(check_redis(settings.redis))
        except ValueError as error:
            raise SettingError(str(error)) from None
    if demo:
        from petstore.cli.demo import prepare_demo

        return in_store(settings.database, lambda store: prepare_demo(store, settings), create=True)
    migrate(settings.database)
    return None


def announce(settings: Settings, token: str | None) -> None:
    """Print where the service is, and with a demo key a line that tries it."""
    address = f"http://{_bracketed(settings.host)}:{settings.port}"
    click.echo(f"Petstore is at  {address}/v1")
    click.echo(f"Reference at    {address}/docs")
    if settings.metrics_port:
        click.echo(
            f"Metrics at      http://{_bracketed(settings.host)}:{settings.metrics_port}/metrics"
        )
    if token is not None:
        click.echo("Try it:")
        click.echo(f'  curl -i -H "Authorization: Bearer {token}" "{address}/v1/pets?limit=3"')
    sys.stdout.flush()


def run(
    settings: Settings,
    listener: socket.socket,
    place: Place | None,
    pid_file: PidFile | None,
    warnings: Iterable[str],
) -> int:
    """Serve until a stop signal, then finish what is under way; return the exit status.

    The log begins with ``warnings``.
    """
    # Imported here, so that the processes that serve need not, and other commands do not.
    from petstore.app import open_log
    from petstore.databases.sqlite import put_log_away
    from petstore.server.lifecycle import Lifecycle
    from petstore.server.service_manager import service_manager
    from petstore.server.supervisor import Link, Supervisor
    from petstore.server.worker import work

    def serve(seat: int, link: Link) -> None:
        work(settings, listener, place and place._replace(seat=seat), link)

    log = open_log(settings)
    for warning in warnings:
        _LOG.warning(warning)
    _warn_if_open_to_others(settings.database)
    lifecycle = Lifecycle(settings.workers, service_manager(), pid_file)
    try:
        return Supervisor(
            serve, settings.workers, settings.shutdown_timeout, listener.close, lifecycle
        ).run()
    finally:
        # In a reload there are two processes, even of a service with one.
        if not is_postgres(settings.database):
            put_log_away(sqlite_path(settings.database))
        log.close()


def _warn_if_open_to_others(database: str) -> None:
    """Warn of a database file that others may open: they could read it all, or lock it."""
    if is_postgres(database):
        return
    path = sqlite_path(database)
    mode = path.stat().st_mode & 0o777
    if mode & 0o077:
        _LOG.warning(
            "others than its owner may open %s (mode %04o): they could read everything, or stop"
            " all changes by a lock; chmod 600 keeps them out",
            path,
            mode,
        )


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
