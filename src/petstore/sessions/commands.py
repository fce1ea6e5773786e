"""``petstore console``: sign people in to the console."""

import click
from msgspec import to_builtins

from petstore.cli.options import (
    ID,
    assumed_address,
    database_option,
    json_option,
    link_options,
    service_url,
)
from petstore.cli.output import SectionedGroup, print_secret
from petstore.cli.stores import in_store
from petstore.clock import MINUTE, system_clock, utc_second
from petstore.databases.contract import Store


@click.group(cls=SectionedGroup)
def console() -> None:
    """Sign people in to the console of a service."""


@console.command()
@click.argument("key_id", metavar="ID", type=ID)
@link_options
@json_option
@database_option
def link(
    *, key_id: int, as_json: bool, database: str, public_url: str, host: str, port: int
) -> None:
    """Print a link that signs one person in with a key. It works once, for 10 minutes."""
    # Imported where it is used, so that `petstore --help` is instant.
    from petstore.console.page import HOME
    from petstore.keys.status import found, select_key
    from petstore.sessions.store import LINK_LIFE, create_link

    address, now = service_url(public_url, host, port), system_clock()

    async def create(store: Store) -> str:
        # People have a password: petstore people invite makes a link to set another one.
        found(await store.read(select_key(key_id)), key_id, None)
        return await store.write(create_link(key_id, now))

    url = f"{address}{HOME}/link/{in_store(database, create)}"
    ends = to_builtins(utc_second(now + LINK_LIFE))
    print_secret(
        "link",
        url,
        f"This link signs one person in with key {key_id}, once, within {LINK_LIFE // MINUTE}"
        f" minutes{assumed_address(public_url, address)}:",
        f"nobody saw it: petstore console link {key_id} makes another",
        {"url": url, "expiresAt": ends} if as_json else None,
    )
