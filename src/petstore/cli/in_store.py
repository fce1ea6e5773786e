"""Work on a store from the command line, beside a service that may be running."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import click

from petstore.cli.failures import plain_failures
from petstore.clock import SECOND
from petstore.settings import check_database, is_postgres, sqlite_path
from petstore.storage.contract import Store

T = TypeVar("T")

_PATIENCE = 10 * SECOND


def in_store(database: str, action: Callable[[Store], Awaitable[T]], *, create: bool = False) -> T:
    """Return what ``action`` makes of the store at ``database``; with ``create`` make one first."""
    # Imported where they are used, so that `petstore --help` is instant.
    import asyncio

    from petstore.app import store_at

    async def run() -> T:
        await store.open()
        try:
            return await action(store)
        finally:
            await store.close()

    with plain_failures():
        check_database(database)
        if not create:
            require_store(database)
        store = store_at(database, _PATIENCE)
        store.migrate()
        return asyncio.run(run())


def migrate(database: str) -> None:
    """Bring the store at ``database`` up to date, and make it if there is none."""
    from petstore.app import store_at

    with plain_failures():
        store_at(database, _PATIENCE).migrate()


def require_store(database: str) -> None:
    """Refuse a file that is not there: its name is more likely mistyped than a new store meant."""
    if not is_postgres(database) and not (path := sqlite_path(database)).exists():
        msg = f"there is no store at {path}; petstore serve or petstore keys create makes one"
        raise click.ClickException(msg)


def note_new_store(database: str) -> None:
    """Say so if there is no store yet: perhaps the folder is the wrong one."""
    with plain_failures():
        check_database(database)
    if not is_postgres(database) and not (path := sqlite_path(database)).exists():
        click.echo(f"There is no store at {path.absolute()} yet: making one.", err=True)
