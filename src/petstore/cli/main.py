"""The command ``petstore``."""

import errno
import sys
from contextlib import suppress
from typing import Any

import click

from petstore import __version__
from petstore.agents.commands import mcp
from petstore.cli import resources
from petstore.cli.databases import backup, copy, restore
from petstore.cli.options import KEY, refuse_mistyped, settings_options
from petstore.cli.output import JsonFailure, SectionedGroup, drop_unwritten
from petstore.cli.serve import deliver, serve
from petstore.events.commands import events
from petstore.imports.commands import import_file, imports
from petstore.orders.commands import orders
from petstore.pets.commands import pets
from petstore.settings import SettingError, Settings

# What writing to a terminal, a pipe or a file on a disk raises.
_OF_OUTPUT = {errno.EBADF, errno.EFBIG, errno.EIO, errno.ENOSPC, errno.EPIPE}


class Petstore(SectionedGroup):
    """The whole command line: it checks the environment, and reports failures."""

    def main(self, *args: Any, **options: Any) -> Any:
        """Run a command line, and exit with 1 if its output or a file cannot be used."""
        try:
            return super().main(*args, **options)
        except OSError as error:  # commands report every other one themselves
            what = error.filename or "cannot write the output" * (error.errno in _OF_OUTPUT)
            with suppress(OSError):
                click.echo(f"Error: {f'{what}: ' * bool(what)}{error.strerror or error}", err=True)
            sys.exit(1)
        finally:
            drop_unwritten()

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, and refuse mistyped variables unless help is wanted."""
        name, command, rest = super().resolve_command(ctx, args)
        ctx.obj = [*rest]  # for `invoke`; parsing consumes the arguments
        # A shell that completes a line shows no errors.
        if not ctx.resilient_parsing and set(ctx.help_option_names).isdisjoint(rest):
            refuse_mistyped(ctx, self)
        return name, command, rest

    def invoke(self, ctx: click.Context) -> Any:
        if sys.stdout is None:  # the caller has closed it
            raise click.ClickException("cannot write the output: standard output is closed")
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except click.ClickException as error:
            # Parsing may be what failed, so only the arguments tell.
            if "--json" not in (ctx.obj or ()):
                raise
            raise JsonFailure(error) from error
        return result


@click.group(cls=Petstore, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="petstore")
def main() -> None:
    """Run a pet store and work in it.

    Every setting is also an environment variable, as each command's help shows. To read a value
    with a password from a file, set the variable with _FILE at its end to the path of the file.
    """


pets.add_commands(import_file, title="From and to files")
main.add_commands(serve, deliver, title="Run the service")
main.add_commands(copy, backup, restore, title="Work on its database")
main.add_commands(
    *(resources.keys, resources.people, resources.deprecations, resources.webhooks),
    title=f"Administer a service, with the key in {KEY}, or its database itself",
)
main.add_commands(
    *(pets, imports, orders, resources.sales, resources.categories, resources.inventory, events),
    *(resources.usage, resources.rotate_own, mcp),
    title=f"Work in a running service, with the key in {KEY}",
)


def settings_from_environment() -> Settings:
    """Return the settings that the environment gives, where no command line is read."""

    @click.command()
    @settings_options()
    @click.pass_context
    def read(ctx: click.Context, /, **values: Any) -> Settings:
        refuse_mistyped(ctx, main)
        return Settings(**values)

    try:
        settings: Settings = read.main([], standalone_mode=False)
    except click.ClickException as error:
        raise SettingError(error.format_message()) from None
    settings.check()
    return settings
