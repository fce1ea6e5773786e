"""The command ``petstore``."""

import click

from petstore import __version__
from petstore.cli.keys import keys
from petstore.cli.pets import pets
from petstore.cli.serve import serve


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="petstore")
def main() -> None:
    """Run a pet store: serve its HTTP interface, manage its keys, move its animals.

    Every setting is also an environment variable, as each command's help shows.
    """


main.add_command(serve)
main.add_command(keys)
main.add_command(pets)
