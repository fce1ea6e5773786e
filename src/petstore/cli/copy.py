"""``petstore copy``: move a store from a SQLite file to PostgreSQL."""

from functools import partial

import click

from petstore.cli.options import SecretOption, database_url, json_option
from petstore.cli.output import plain_failures, print_json, print_table, progress
from petstore.settings import is_postgres, sqlite_path


def _source_url(value: str) -> str:
    if is_postgres(value):
        msg = "expected a SQLite file: sqlite:///relative.db or sqlite:////absolute.db"
        raise click.BadParameter(msg)
    return database_url(value)


def _target_url(value: str) -> str:
    if not is_postgres(value):
        msg = "expected postgresql://user@host/name; petstore backup copies a store to a file"
        raise click.BadParameter(msg)
    return database_url(value)


_address = partial(click.option, cls=SecretOption, required=True, metavar="URL")


@click.command()
@_address(
    "--from",
    "source",
    type=_source_url,
    envvar="PETSTORE_FROM",
    help="The store to copy: sqlite:///petstore.db.",
)
@_address(
    "--to",
    "target",
    type=_target_url,
    envvar="PETSTORE_TO",
    help="The empty database to copy to: postgresql://user@host/name.",
)
@json_option
def copy(*, source: str, target: str, as_json: bool) -> None:
    """Copy a whole store from a SQLite file to an empty PostgreSQL database.

    Ids, keys, usage and orders stay as they are. Either everything is copied or nothing: each table
    is read back from the target and compared before the commit. The copy of a store in use lacks
    later changes, so stop its service first to move for good.
    """
    import asyncio

    from petstore.backends import migrate, require_store
    from petstore.databases.store_copies import copy_store

    with plain_failures():
        require_store(source)
        migrate(source)
        migrate(target)
    undone = plain_failures(lambda: "nothing was copied; run the same command again")
    with undone, progress("Copying") as on_progress:
        copied = asyncio.run(copy_store(sqlite_path(source), target, on_progress))
    rows = [
        {"table": name, "rows": each.rows, "digest": str(each)} for name, each in copied.items()
    ]
    if as_json:
        print_json(rows)
        return
    print_table([row | {"rows": f"{row['rows']:,}"} for row in rows])
    total = sum(contents.rows for contents in copied.values())
    click.echo(f"{total:,} rows copied; every table has the same count and digest on both sides.")
