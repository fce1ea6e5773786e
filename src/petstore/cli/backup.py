"""``petstore backup`` and ``petstore restore``: a store in a file, to keep and to come back to."""

import os
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import click

from petstore.cli.failures import interruptible, plain_failures
from petstore.cli.in_store import require_store
from petstore.cli.progress import progress
from petstore.cli.settings_options import database_option
from petstore.clock import SECOND, Milliseconds, system_clock
from petstore.errors import Conflict
from petstore.settings import check_database, is_postgres, sqlite_path


def _force_option(command: Any) -> Any:
    return click.option("--force", is_flag=True, help="Replace what is there.")(command)


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@_force_option
@database_option
def backup(*, file: Path, force: bool, database: str) -> None:
    """Write the whole store to FILE, while a service uses it.

    FILE holds the store as it was at one moment after this began. It is checked, and on disk,
    before it gets its name. Give it to petstore restore, or start a service with it.
    """
    from petstore.databases.backups import back_up

    path = _sqlite_file(database)
    require_store(database)
    _refuse_note(file, path)
    _refuse_present(file, force=force)
    began = system_clock()
    with plain_failures(), _undone(file), progress("Backing up") as on_progress:
        back_up(path, file, on_progress)
    click.echo(f"{path} is backed up in {file}.")
    _note(path, began)


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@_force_option
@database_option
def restore(*, file: Path, force: bool, database: str) -> None:
    """Put the store that petstore backup wrote to FILE in the place of the database.

    FILE is checked first, and the schema brought up to date. Stop the service before: a database in
    use is left alone.
    """
    from petstore.databases.backups import restore as restore_backup

    path = _sqlite_file(database)
    _refuse_present(path, force=force)
    with plain_failures(), _undone(path), progress("Restoring") as on_progress:
        restore_backup(file, path, on_progress)
    click.echo(f"{path} is restored from {file}.")


def _note(database: Path, began: Milliseconds) -> None:
    """Note a good backup for the metrics of the service; it is good without that too."""
    from petstore.databases.sqlite_files import note_backup

    try:
        note_backup(database, began / SECOND)
    except (Conflict, OSError) as error:
        click.echo(f"Warning: metrics will not tell of this backup: {error}", err=True)


def _refuse_note(file: Path, database: Path) -> None:
    """Refuse to write where the time of this backup is noted once it is made."""
    from petstore.databases.private_files import part_of
    from petstore.databases.sqlite_files import note_of

    note = note_of(database)
    if file.parent.resolve() / file.name in {note, part_of(note)}:
        msg = f"{file} is where the time of the last backup is noted; expected another file"
        raise click.ClickException(msg)


def _sqlite_file(database: str) -> Path:
    """Return the file of a database that is one."""
    with plain_failures():
        check_database(database)
    if is_postgres(database):
        msg = "PostgreSQL has programs of its own for this: pg_dump, pg_restore and pg_basebackup"
        raise click.UsageError(msg)
    return sqlite_path(database)


def _undone(path: Path) -> AbstractContextManager[None]:
    return interruptible(lambda: f"{path} is as it was before; run the same command again")


def _refuse_present(path: Path, *, force: bool) -> None:
    if os.path.lexists(path) and not force:
        msg = f"{path} is there already; --force replaces it"
        raise click.ClickException(msg)
