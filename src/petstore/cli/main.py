"""The command ``petstore``."""

import sys
from typing import Any

import click

from petstore import __version__
from petstore.cli.backup import backup, restore
from petstore.cli.categories import categories
from petstore.cli.copy import copy
from petstore.cli.keys import keys
from petstore.cli.orders import orders
from petstore.cli.pets import pets
from petstore.cli.reload import reload
from petstore.cli.serve import serve


class Petstore(click.Group):
    """The command, that tells in a line if what it prints cannot be written."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command and see its output written."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:  # whoever read our output has had enough, as `head` does
            raise
        except OSError as error:
            msg = f"cannot write the output: {error.strerror}"
            raise click.ClickException(msg) from error
        return result


@click.group(cls=Petstore, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="petstore")
def main() -> None:
    """Run a pet store and work in it.

    serve runs the service, reload gives it fresh processes. keys, pets import, pets export, copy,
    backup and restore work on its store. The other commands ask a running service, with the key in
    PETSTORE_KEY.

    Every setting is also an environment variable, as each command's help shows.
    """


main.add_command(serve)
main.add_command(reload)
main.add_command(keys)
main.add_command(copy)
main.add_command(backup)
main.add_command(restore)
main.add_command(pets)
main.add_command(orders)
main.add_command(categories)
