"""Work on a store from the command line, beside a service that may be running."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import click

from petstore.cli.output import plain_failures, printable
from petstore.clock import SECOND
from petstore.databases.contract import Statement, Store
from petstore.databases.private_files import obstacle
from petstore.settings import is_postgres, sqlite_path

T = TypeVar("T")

_TIMEOUT = 10 * SECOND
_HAS_TABLES = Statement("SELECT to_regclass('petstore_schema') IS NOT NULL", name="has_tables")


@plain_failures()
def in_store(database: str, action: Callable[[Store], Awaitable[T]], *, create: bool = False) -> T:
    """Return the result of ``action`` on the store at ``database``; ``create`` makes a new one."""
    if not create:
        require_store(database)
    migrate(database)
    return _run_in(database, action)


@contextmanager
def readable(database: str) -> Iterator[str]:
    """Give the address of a store to read: that of a copy, if the file system is read-only."""
    # Imported where it is used, so that `petstore --help` is instant.
    from petstore.databases.backups import back_up
    from petstore.databases.sqlite_connection import why_read_only

    if is_postgres(database) or not why_read_only(path := sqlite_path(database)):
        yield database
        return
    with TemporaryDirectory() as folder:
        copy = Path(folder, path.name)
        back_up(path, copy, lambda _copied, _pages: None)
        yield f"sqlite:///{copy}"


@plain_failures()
def migrate(database: str) -> None:
    """Bring the store at ``database`` up to date, and create it if necessary."""
    # Imported where it is used, so that `petstore --help` is instant.
    from petstore.backends import store_at

    store_at(database, _TIMEOUT).migrate()


@plain_failures()
def require_store(database: str) -> None:
    """Refuse a database without a store: its address is probably mistyped."""
    if is_postgres(database):
        ((exists,),) = _run_in(database, lambda store: store.read(_HAS_TABLES))
        place = "in that database"
    else:
        path = sqlite_path(database)
        exists, place = _exists(path), f"at {path}"
    if not exists:
        msg = f"there is no store {place}; petstore serve or petstore keys create creates one"
        raise click.ClickException(msg)


def note_new_store(database: str) -> None:
    """Print a note if a store is about to be created: perhaps the folder is the wrong one."""
    if not is_postgres(database) and not _exists(path := sqlite_path(database)):
        click.echo(f"There is no store at {path.absolute()} yet: making one.", err=True)


def _exists(path: Path) -> bool:
    """Return whether there is a file; refuse a name at which none can be made."""
    if reason := obstacle(path):
        msg = f"{path}: {reason}"
        raise click.ClickException(printable(msg))
    return path.exists()


def _run_in(database: str, action: Callable[[Store], Awaitable[T]]) -> T:
    import asyncio

    from petstore.backends import store_at

    async def run() -> T:
        store = store_at(database, _TIMEOUT)
        await store.open()
        try:
            return await action(store)
        finally:
            await store.close()

    return asyncio.run(run())
