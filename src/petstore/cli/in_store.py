"""Work on a store from the command line, beside a service that may be running."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import click

from petstore.cli.failures import plain_failures
from petstore.clock import SECOND
from petstore.databases.contract import Statement, Store
from petstore.settings import check_database, is_postgres, sqlite_path

T = TypeVar("T")

_PATIENCE = 10 * SECOND
_HAS_TABLES = Statement("SELECT to_regclass('petstore_schema') IS NOT NULL", name="has_tables")


def in_store(database: str, action: Callable[[Store], Awaitable[T]], *, create: bool = False) -> T:
    """Return what ``action`` makes of the store at ``database``; with ``create`` make one first."""
    with plain_failures():
        check_database(database)
        if not create:
            require_store(database)
        migrate(database)
        return _run_in(database, action)


def migrate(database: str) -> None:
    """Bring the store at ``database`` up to date, and make it if there is none."""
    # Imported where it is used, so that `petstore --help` is instant.
    from petstore.app import store_at

    with plain_failures():
        store_at(database, _PATIENCE).migrate()


def require_store(database: str) -> None:
    """Refuse a database that is no store yet: it is more likely mistyped than meant to be one."""
    if is_postgres(database):
        with plain_failures():
            is_there = _run_in(database, _has_tables)
        place = "in that database"
    else:
        path = sqlite_path(database)
        is_there, place = path.exists(), f"at {path}"
    if not is_there:
        msg = f"there is no store {place}; petstore serve or petstore keys create makes one"
        raise click.ClickException(msg)


def note_new_store(database: str) -> None:
    """Say so if there is no store yet: perhaps the folder is the wrong one."""
    with plain_failures():
        check_database(database)
    if not is_postgres(database) and not (path := sqlite_path(database)).exists():
        click.echo(f"There is no store at {path.absolute()} yet: making one.", err=True)


async def _has_tables(store: Store) -> bool:
    ((is_there,),) = await store.read(_HAS_TABLES)
    return bool(is_there)


def _run_in(database: str, action: Callable[[Store], Awaitable[T]]) -> T:
    import asyncio

    from petstore.app import store_at

    async def run() -> T:
        store = store_at(database, _PATIENCE)
        await store.open()
        try:
            return await action(store)
        finally:
            await store.close()

    return asyncio.run(run())
