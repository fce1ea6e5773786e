"""``petstore mcp``: a running service as tools for AI agents."""

from functools import partial
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from petstore.cli.client import read_key, service_option
from petstore.cli.client_failures import CommandFailure, ExitStatus
from petstore.cli.options import Integer, service_url, settings_options
from petstore.cli.output import plain_failures
from petstore.settings import Settings

if TYPE_CHECKING:  # imported where it is used, so that `petstore --help` is instant
    from petstore.agents.clients import Clients

_MISSING = (
    "petstore mcp needs a package that is not installed; in a checkout, run:"
    " pip install ./clients/python '.[mcp]'"
)


@click.command()
@service_option
@click.option("--write", "writes", is_flag=True, help="Offer tools that change the store, too.")
@click.option(
    "--http",
    "over_http",
    is_flag=True,
    help=(
        "Serve over HTTP, at the path /mcp. Each caller sends its own key:"
        " Authorization: Bearer <API_KEY>."
    ),
)
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="With --http: the address to listen on."
)
@click.option(
    "--port",
    type=Integer(0, 65535),
    default=8765,
    show_default=True,
    help="With --http: the port to listen on.",
)
@click.option(
    "--allowed-host",
    "allowed_hosts",
    multiple=True,
    metavar="HOST",
    help=(
        "With --http: a name by which clients reach it, such as mcp.shop.example, besides those of"
        " this machine. Requests for another Host are refused. May be repeated."
    ),
)
@settings_options(
    trusted_proxy=(
        "With --http: a network of proxies whose X-Forwarded-For is trusted, such as 10.0.0.0/8."
        " May be repeated."
    ),
    log_format="With --http: text, json, or auto: text on a terminal, else json.",
)
@click.pass_context
def mcp(
    ctx: click.Context,
    /,
    *,
    service: str,
    writes: bool,
    over_http: bool,
    host: str,
    port: int,
    allowed_hosts: tuple[str, ...],
    **options: Any,
) -> None:
    """Let AI agents work in a store (Model Context Protocol).

    The program of the agent starts this command, and speaks with it on standard input and output.
    The agent may do what the key may, and only read unless you add --write. It needs the extra
    [mcp].
    """
    if not over_http:
        _refuse_options_of_http(ctx)
    try:
        from petstore.agents import serving
        from petstore.agents.clients import Clients
    except ModuleNotFoundError as error:
        raise click.ClickException(_MISSING) from error
    try:
        clients = Clients(service)
        own = None if over_http else clients.open(read_key())
    except ValueError as error:  # of the environment: a proxy that cannot be used
        raise CommandFailure(str(error), ExitStatus.FAILED) from error
    if own is None:
        _serve_http(clients, host, port, allowed_hosts, Settings(**options), writes=writes)
    else:
        serving.run_stdio(own, writes=writes)


def _refuse_options_of_http(ctx: click.Context) -> None:
    """Refuse options that have no effect without ``--http``; variables are for other commands, too.

    Raises:
        click.UsageError: there is one.
    """
    for name in ("host", "port", "allowed_hosts", "trusted_proxy", "log_format"):
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            option = next(each.opts[0] for each in ctx.command.params if each.name == name)
            msg = f"{option} is for --http"
            raise click.UsageError(msg)


def _serve_http(
    clients: "Clients",
    host: str,
    port: int,
    allowed_hosts: tuple[str, ...],
    settings: Settings,
    *,
    writes: bool,
) -> None:
    from petstore.agents import serving
    from petstore.server.listeners import listen

    for allowed in allowed_hosts:
        if not serving.is_host(allowed):
            msg = f"--allowed-host: {allowed!r}: expected a host without a port"
            raise click.UsageError(msg)
    if not (allowed_hosts or serving.is_loopback(host)):
        msg = f"--host {host}: name the hosts by which clients reach it, with --allowed-host"
        raise click.UsageError(msg)
    with plain_failures():
        settings.check()
    with plain_failures(), listen(host, port) as listener:
        hosts = (*serving.LOOPBACK_HOSTS, *allowed_hosts)
        at = service_url("", host, listener.getsockname()[1])
        ready = partial(click.echo, f"MCP for {clients.url} at {at}/mcp", err=True)
        serving.run_http(listener, clients, hosts, ready, settings=settings, writes=writes)
