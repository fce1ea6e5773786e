"""``petstore backup`` and ``petstore restore``: a store as one file, and back."""

import os
from contextlib import AbstractContextManager
from pathlib import Path

import click

from petstore.cli.options import TEXT, database_option
from petstore.cli.output import plain_failures, progress
from petstore.clock import SECOND, system_clock
from petstore.errors import Conflict
from petstore.settings import is_postgres, sqlite_path


def _file(ctx: click.Context, param: click.Parameter, value: str) -> Path:
    """Return the path of a file for SQLite, which takes only text."""
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
    from petstore.databases.backups import back_up
    from petstore.databases.private_files import part_of
    from petstore.databases.sqlite_files import note_backup, note_of

    path = _sqlite_file(database)
    with plain_failures():
        require_store(database)
    note = note_of(path)
    if file.parent.resolve() / file.name in {note, part_of(note)}:
        msg = f"{file} is reserved for the time of the last backup; expected another file"
        raise click.ClickException(msg)
    _refuse_present(file, force=force)
    began = system_clock()
    with _undone(file), progress("Backing up") as on_progress:
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
    with _undone(path), progress("Restoring") as on_progress:
        restore_backup(file, path, on_progress)
    click.echo(f"{path} is restored from {file}.")


def _sqlite_file(database: str) -> Path:
    """Return the file of an SQLite database, and refuse PostgreSQL."""
    if is_postgres(database):
        msg = "for PostgreSQL, use its own programs: pg_dump, pg_restore and pg_basebackup"
        raise click.UsageError(msg)
    return sqlite_path(database)


def _undone(path: Path) -> AbstractContextManager[None]:
    return plain_failures(lambda: f"{path} is unchanged; run the same command again")


def _refuse_present(path: Path, *, force: bool) -> None:
    if os.path.lexists(path) and not force:
        msg = f"{path} already exists; use --force to replace it"
        raise click.ClickException(msg)
