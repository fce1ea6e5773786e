"""Work on a store from the command line, beside a service that may be running."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from petstore.cli.failures import plain_failures
from petstore.clock import SECOND
from petstore.settings import sqlite_path
from petstore.storage.contract import Store

T = TypeVar("T")

_PATIENCE = 10 * SECOND


def in_store(database: str, action: Callable[[Store], Awaitable[T]]) -> T:
    """Return what ``action`` makes of the store at ``database``; it is created if there is none."""
    # Imported where they are used, so that `petstore --help` is instant.
    import asyncio

    from petstore.storage.sqlite import SqliteStore

    async def run() -> T:
        store = SqliteStore(sqlite_path(database), _PATIENCE)
        store.migrate()
        await store.open()
        try:
            return await action(store)
        finally:
            await store.close()

    with plain_failures():
        return asyncio.run(run())
