"""``petstore backup``, ``restore`` and ``copy``: a store as one file and back, or to PostgreSQL."""

import os
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import click

from petstore.cli.client import interruptible
from petstore.cli.options import TEXT, SecretOption, database_option, database_url, json_option
from petstore.cli.output import plain_failures, print_json, print_table, progress
from petstore.clock import SECOND, system_clock
from petstore.errors import Conflict
from petstore.settings import is_postgres, sqlite_path


def _file(ctx: click.Context, param: click.Parameter, value: str) -> Path:
    return Path(TEXT.convert(value, param, ctx))


_force_option = click.option("--force", is_flag=True, help="Replace an existing file.")


@click.command()
@click.argument("file", type=click.Path(dir_okay=False), callback=_file)
@_force_option
@database_option
def backup(*, file: Path, force: bool, database: str) -> None:
    """Write the whole store to FILE, while a service uses it.

    FILE is a consistent snapshot, taken after this began. It is checked and on disk before it gets
    its name. Give it to petstore restore, or start a service with it.
    """
    from petstore.backends import require_store
    from petstore.databases.backups import back_up, note_backup, note_of
    from petstore.databases.private_files import part_of

    path = _sqlite_file(database)
    with plain_failures():
        require_store(database)
    note = note_of(path)
    if file.parent.resolve() / file.name in {note, part_of(note)}:
        msg = f"{file} is reserved for the time of the last backup; expected another file"
        raise click.ClickException(msg)
    _refuse_present(file, force=force)
    began = system_clock()
    with plain_failures(), _undone(file), progress("Backing up") as on_progress:
        back_up(path, file, on_progress)
    click.echo(f"{path} is backed up in {file}.")
    try:
        note_backup(path, began / SECOND)
    except (Conflict, OSError) as error:
        click.echo(f"Warning: metrics will not show this backup: {error}", err=True)


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False), callback=_file)
@_force_option
@database_option
def restore(*, file: Path, force: bool, database: str) -> None:
    """Replace the database with FILE, which petstore backup wrote.

    FILE is checked first, and its schema is brought up to date. Stop the service before: a database
    in use is not replaced.
    """
    from petstore.databases.backups import restore as restore_backup

    path = _sqlite_file(database)
    _refuse_present(path, force=force)
    with plain_failures(), _undone(path), progress("Restoring") as on_progress:
        restore_backup(file, path, on_progress)
    click.echo(f"{path} is restored from {file}.")


def _sqlite_file(database: str) -> Path:
    if is_postgres(database):
        msg = "for PostgreSQL, use its own programs: pg_dump, pg_restore and pg_basebackup"
        raise click.UsageError(msg)
    return sqlite_path(database)


def _undone(path: Path) -> AbstractContextManager[None]:
    return interruptible(f"{path} is unchanged; run the same command again")


def _refuse_present(path: Path, *, force: bool) -> None:
    if os.path.lexists(path) and not force:
        raise click.ClickException(f"{path} already exists; use --force to replace it")


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
    undone = interruptible("nothing was copied; run the same command again")
    with plain_failures(), undone, progress("Copying") as on_progress:
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
