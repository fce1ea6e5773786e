"""``petstore console``: sign people in to the console."""

import click

from petstore.cli.options import ID, database_option, settings_options
from petstore.cli.output import SectionedGroup, plain_failures, print_secret
from petstore.cli.stores import in_store, operator
from petstore.clock import MINUTE, system_clock
from petstore.settings import Settings


@click.group(cls=SectionedGroup)
def console() -> None:
    """Sign people in to the console of a service."""


@console.command()
@click.argument("key_id", metavar="ID", type=ID)
@settings_options(
    public_url="The URL that people use for the service, without /v1.",
    host="Without --public-url: the address that the service listens on.",
    port="Without --public-url: the port that the service listens on.",
)
@database_option
def link(*, key_id: int, database: str, public_url: str, host: str, port: int) -> None:
    """Print a link that signs one person in with a key. It works once, for 10 minutes."""
    # Imported where it is used, so that `petstore --help` is instant.
    from petstore.console.page import HOME
    from petstore.sessions.store import LINK_LIFE, create_link

    settings = Settings(public_url=public_url, host=host, port=port)
    with plain_failures():
        settings.check()
    unit = create_link(key_id, operator(), system_clock())
    secret = in_store(database, lambda store: store.write(unit))
    address = public_url.rstrip("/") or settings.listening_url
    print_secret(
        "link",
        f"{address}{HOME}/link/{secret}",
        f"This link signs one person in with key {key_id}, once, within {LINK_LIFE // MINUTE}"
        " minutes:",
        f"nobody saw it: petstore console link {key_id} makes another",
    )
