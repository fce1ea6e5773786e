"""``petstore mcp``: a running service as tools for AI agents."""

import click

from petstore.cli.client import CommandFailure, ExitStatus, read_key, service_option

_MISSING = (
    "petstore mcp needs a package that is not installed; in a checkout, run:"
    " pip install ./clients/python '.[mcp]'"
)


@click.command()
@service_option
@click.option("--write", "writes", is_flag=True, help="Offer tools that change the store, too.")
def mcp(*, service: str, writes: bool) -> None:
    """Let AI agents work in a store (Model Context Protocol).

    The program of the agent starts this command, and speaks with it on standard input and output.
    The agent may do what the key may, and only read unless you add --write. It needs the extra
    petstore-service[mcp].
    """
    try:
        from petstore.agents import server
    except ModuleNotFoundError as error:
        raise click.ClickException(_MISSING) from error
    from petstore_client import AsyncClient

    key = read_key()
    try:  # the host of an agent gives up after a while, so it is told to wait rather than kept
        client = AsyncClient(key, service, timeout=10, max_wait=5)
    except ValueError as error:  # of the environment: a proxy that cannot be used
        raise CommandFailure(str(error), ExitStatus.FAILED) from error
    server.run_stdio(client, writes=writes)
