"""``petstore reload``."""

import os
import signal
import time
from pathlib import Path

import click

from petstore.cli.failures import plain_failures
from petstore.cli.option_types import Number
from petstore.server.pid_file import ReloadState, read_pid_file

_LOOK_SECONDS = 0.05


@click.command()
@click.option(
    "--pid-file",
    envvar="PETSTORE_PID_FILE",
    show_envvar=True,
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="The file that the service was started with.",
)
@click.option(
    "--timeout",
    default=120,
    show_default=True,
    type=Number(0, 86400),
    help="How many seconds to wait for the end.",
)
def reload(pid_file: Path, timeout: float) -> None:
    """Replace the processes of a service on this machine by fresh ones, and wait for the end.

    No request fails. If a fresh process does not start, the old one goes on serving, and the exit
    status is 1; so it is if the end does not come in time. The reload takes up neither new settings
    nor a new version: restart the service for that.
    """
    with plain_failures():
        before = read_pid_file(pid_file)
        if before is None:
            msg = f"{pid_file}: no service runs with this --pid-file"
            raise click.ClickException(msg)
        os.kill(before.pid, signal.SIGHUP)
        state = _ended(pid_file, before, timeout)
    if state.failure:
        msg = f"the reload failed, and the processes that serve go on: {state.failure}"
        raise click.ClickException(msg)
    click.echo("Reloaded.")


def _ended(pid_file: Path, before: ReloadState, timeout: float) -> ReloadState:
    """Return what the service tells once a reload has ended that began after ``before``."""
    deadline = time.monotonic() + timeout
    while (state := read_pid_file(pid_file)) is None or state.ended <= before.requested:
        if state is None:
            msg = "the service has stopped, and did not end the reload"
            raise click.ClickException(msg)
        if time.monotonic() >= deadline:
            msg = f"the reload has not ended after {timeout:g} seconds; it goes on"
            raise click.ClickException(msg)
        time.sleep(_LOOK_SECONDS)
    return state
