"""The command ``petstore``."""

import sys
from typing import Any

import click

from petstore import __version__
from petstore.cli.backup import backup, restore
from petstore.cli.categories import categories
from petstore.cli.client_options import KEY
from petstore.cli.copy import copy
from petstore.cli.environment import file_variable, refuse_unknown, variables_of
from petstore.cli.groups import SectionedGroup
from petstore.cli.keys import keys
from petstore.cli.orders import orders
from petstore.cli.pets import pets
from petstore.cli.reload import reload
from petstore.cli.serve import serve
from petstore.cli.serve_command import ServeCommand


class Petstore(SectionedGroup):
    """The command. It knows its environment variables, and whether its output could be written."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, and refuse mistyped variables unless help is wanted."""
        name, command, rest = super().resolve_command(ctx, args)
        if set(ctx.help_option_names).isdisjoint(rest):
            try:
                refuse_mistyped(ctx, self)
            except click.UsageError as error:
                if isinstance(command, ServeCommand):
                    command.refuse(error, name, rest, ctx)
                raise
        return name, command, rest

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command and see its output written."""
        if sys.stdout is None:  # so it is where the caller has closed it
            msg = "cannot write the output: standard output is closed"
            raise click.ClickException(msg)
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:  # whoever read our output has had enough, as `head` does
            raise
        except OSError as error:
            msg = f"cannot write the output: {error.strerror}"
            raise click.ClickException(msg) from error
        return result


def refuse_mistyped(ctx: click.Context, command: click.Command) -> None:
    """Refuse environment variables that look like ours and that no part of ``command`` reads.

    Raises:
        click.UsageError: naming each.
    """
    refuse_unknown(ctx, {*variables_of(command), KEY, file_variable(KEY)})


@click.group(cls=Petstore, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="petstore")
def main() -> None:
    """Run a pet store and work in it.

    Every setting is also an environment variable, as each command's help shows. What may hold a
    password can be in a file, too, that a variable with _FILE at its end names.
    """


main.add_section("Run the service", serve, reload)
main.add_section("Work on its store", keys, copy, backup, restore)
main.add_section(f"Ask a running service, with the key in {KEY}", pets, orders, categories)
