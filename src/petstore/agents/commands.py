"""``petstore mcp``: a running service as tools for AI agents."""

import re
from typing import Any

import click
from click.core import ParameterSource

from petstore.cli.client import CommandFailure, ExitStatus, read_key, service_option
from petstore.cli.options import Integer, settings_options
from petstore.cli.output import plain_failures
from petstore.settings import Settings

_HOST = re.compile(r"[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]")
_MISSING = (
    "petstore mcp needs a package that is not installed; in a checkout, run:"
    " pip install ./clients/python '.[mcp]'"
)


@click.command()
@service_option
@click.option("--write", "writes", is_flag=True, help="Offer tools that change the store, too.")
@click.option(
    "--http", "over_http", is_flag=True, help="Serve over HTTP at /mcp; each caller sends its key."
)
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="With --http: the address to listen on."
)
@click.option(
    "--port", type=Integer(0, 65535), default=8765, show_default=True, help="With --http: the port."
)
@click.option(
    "--allowed-host",
    "allowed_hosts",
    multiple=True,
    metavar="HOST",
    help="With --http: a name by which clients reach it, such as mcp.shop.example.",
)
@settings_options(
    trusted_proxy="With --http: a network of proxies whose X-Forwarded-For is trusted."
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
    petstore-service[mcp].
    """
    for each in ctx.command.params:  # a variable is for other commands, too
        is_given = ctx.get_parameter_source(each.name or "") is ParameterSource.COMMANDLINE
        if is_given and not over_http and getattr(each, "help", "").startswith("With --http"):
            msg = f"{each.opts[0]} is for --http"
            raise click.UsageError(msg)
    if wrong := next((each for each in allowed_hosts if not _HOST.fullmatch(each)), None):
        msg = f"--allowed-host: {wrong!r}: expected a host without a port"
        raise click.UsageError(msg)
    if not (allowed_hosts or host in {"127.0.0.1", "::1", "localhost"}):
        msg = f"--host {host}: name the hosts by which clients reach it, with --allowed-host"
        raise click.UsageError(msg)
    try:
        from petstore.agents import server
    except ModuleNotFoundError as error:
        raise click.ClickException(_MISSING) from error
    from petstore.server.listeners import listen
    from petstore_client import AsyncClient

    key = "none" if over_http else read_key()  # over HTTP, the key of each caller takes its place
    try:  # the host of an agent gives up after a while, so it is told to wait rather than kept
        client = AsyncClient(key, service, timeout=10, max_wait=5)
    except ValueError as error:  # of the environment: a proxy that cannot be used
        raise CommandFailure(str(error), ExitStatus.FAILED) from error
    if not over_http:
        server.run_stdio(client, writes=writes)
        return
    settings = Settings(**options)
    with plain_failures():
        endpoint = server.Endpoint(client, allowed_hosts, settings, writes=writes)
        with listen(host, port) as listener:
            at = Settings(host=host, port=listener.getsockname()[1]).listening_url
            click.echo(f"MCP for {service} at {at}/mcp", err=True)
            server.run_http(listener, endpoint, settings)
