"""``petstore copy``: move a store to another database."""

from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import TYPE_CHECKING

import click

from petstore.cli.options import SecretOption, database_url, json_option
from petstore.cli.output import plain_failures, print_json, print_table, progress
from petstore.cli.stores import in_store, migrate, require_store
from petstore.settings import is_postgres, sqlite_path

if TYPE_CHECKING:
    from petstore.databases.copies.contract import Side


_address = partial(click.option, cls=SecretOption, type=database_url, required=True, metavar="URL")


@click.command()
@_address(
    "--from",
    "source",
    envvar="PETSTORE_FROM",
    help="The store to copy: sqlite:///petstore.db or postgresql://user@host/name.",
)
@_address(
    "--to",
    "target",
    envvar="PETSTORE_TO",
    help="The empty database to copy to: an address of the same form.",
)
@json_option
def copy(*, source: str, target: str, as_json: bool) -> None:
    """Copy a whole store to an empty database of either kind.

    Ids, keys, usage and orders stay as they are. Either everything is copied or nothing: each table
    is read back from the target and compared before the commit. The copy of a store in use lacks
    later changes, so stop its service first to move for good.
    """
    import asyncio

    from petstore.databases.store_copies import Contents, copy_store
    from petstore.events.store import publish_all

    async def run() -> dict[str, Contents]:
        async with (
            _open(source, to_fill=False) as sending,
            _open(target, to_fill=True) as receiving,
        ):
            return await copy_store(sending, receiving, on_progress)

    require_store(source)
    migrate(source)
    migrate(target)
    if is_postgres(source):
        in_store(source, publish_all)
    undone = plain_failures(lambda: "nothing was copied; run the same command again")
    with undone, progress("Copying") as on_progress:
        copied = asyncio.run(run())
    if as_json:
        print_json(
            [
                {"table": name, "rows": contents.rows, "digest": str(contents)}
                for name, contents in copied.items()
            ]
        )
        return
    print_table(
        [
            {"table": name, "rows": f"{contents.rows:,}", "digest": str(contents)}
            for name, contents in copied.items()
        ]
    )
    rows = sum(contents.rows for contents in copied.values())
    click.echo(f"{rows:,} rows copied; every table has the same count and digest on both sides.")


def _open(database: str, *, to_fill: bool) -> "AbstractAsyncContextManager[Side]":
    if is_postgres(database):
        from petstore.databases.copies.postgres import open_postgres

        return open_postgres(database, to_fill=to_fill)
    from petstore.databases.copies.sqlite import open_sqlite

    return open_sqlite(sqlite_path(database), to_fill=to_fill)
