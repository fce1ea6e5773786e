"""``petstore serve``."""

import ctypes
import resource
import signal
import socket
import sys
from contextlib import AbstractContextManager, ExitStack, nullcontext
from functools import partial
from typing import Any

import click

from petstore.cli.failures import plain_failures
from petstore.cli.in_store import in_store, migrate
from petstore.cli.settings_options import settings_options
from petstore.clock import SECOND
from petstore.observability.place import Place, open_place
from petstore.settings import Settings

_LARGEST_HEAD = 64 * 1024
_OTHER_FILES = 100
# Before the end of a stop: the store is closed, and then what is still there is killed.
_END_BEFORE = 1.5
_KILL_BEFORE = 1
# At SIGHUP, between the start of a worker and the stop of the one it replaces.
_OVERLAP_SECONDS = 1
_PR_SET_PDEATHSIG = 1


@click.command()
@click.option(
    "--demo",
    is_flag=True,
    envvar="PETSTORE_DEMO",
    show_envvar=True,
    help="First fill an empty store with sample animals and make a key to try it with.",
)
@settings_options
def serve(*, demo: bool, **options: Any) -> None:
    """Serve the interface over HTTP until stopped."""
    settings = Settings(**options)
    with ExitStack() as shared:
        with plain_failures():
            settings.check()
            _check_port(settings.host, settings.port)
            place = shared.enter_context(_metrics_place(settings))
            token = _prepare(settings, demo=demo)
        announce(settings, token)
        run(settings, place)


def _metrics_place(settings: Settings) -> AbstractContextManager[Place | None]:
    """Return what the workers share to tell their metrics, if they are to.

    Raises:
        OSError: its address cannot be listened on.
    """
    if not settings.metrics_port:
        return nullcontext()
    _check_port(settings.host, settings.metrics_port)
    return open_place(settings.host, settings.metrics_port)


def _prepare(settings: Settings, *, demo: bool) -> str | None:
    """Bring the database up to date, and with ``demo`` return the token of a key to try."""
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


def run(settings: Settings, place: Place | None) -> None:
    """Serve until a stop signal, then finish what is under way."""
    from granian.constants import HTTPModes, Interfaces, Loops
    from granian.http import HTTP1Settings
    from granian.log import LogLevels

    from petstore.app import open_log
    from petstore.cli.server import Server

    log = open_log(settings)
    server = Server(
        "petstore",
        address=settings.host,
        port=settings.port,
        interface=Interfaces.ASGI,
        workers=settings.workers,
        loop=Loops.auto,
        # HTTP/2 belongs to TLS; on plain text its mode leaves a silent connection open.
        http=HTTPModes.http1,
        http1_settings=HTTP1Settings(
            header_read_timeout=int(settings.head_seconds * SECOND),
            max_buffer_size=_LARGEST_HEAD,
        ),
        websockets=False,
        respawn_failed_workers=True,
        respawn_interval=_OVERLAP_SECONDS,
        backpressure=_room_for(settings.connections),
        workers_kill_timeout=settings.stop_seconds - _KILL_BEFORE,
        # It logs only what goes wrong, through the log of the service.
        log_level=LogLevels.error,
        log_dictconfig={"handlers": {}, "loggers": {"_granian": {"propagate": True}}},
    )
    try:
        server.serve(target_loader=partial(load, settings, place), wrap_loader=False)
    finally:
        log.close()


def _room_for(connections: int) -> int:
    """Raise the limit of open files to what ``connections`` need; return how many it has room for.

    At the limit new callers wait; so a few that never read their answers could keep all out.
    """
    needed = connections + _OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return min(connections, soft - _OTHER_FILES)


def load(settings: Settings, place: Place | None = None) -> Any:
    """Return the application, in the process that serves it."""
    from petstore.app import serve_settings
    from petstore.cli.server import Stop, take_one_stop_signal

    if sys.platform == "linux":
        # A worker must not outlive a parent that was killed: it would keep the port.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    app = serve_settings(settings, place)
    take_one_stop_signal(
        Stop(app.retire, settings.lame_seconds, app.end, settings.stop_seconds - _END_BEFORE)
    )
    return app


def _check_port(host: str, port: int) -> None:
    """Refuse a port in use: the server would share it with whoever has it, and say nothing.

    Raises:
        OSError: the address cannot be listened on.
    """
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            probe.listen()
    except OSError as error:
        msg = f"cannot listen on {host} port {port}: {error.strerror}"
        raise OSError(msg) from None


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
