"""Stores on real files, and what another program does to such a file."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import apsw
import pytest

from petstore.storage.contract import Row, Statement, Unit, Value
from petstore.storage.sqlite import SqliteStore

impatient = pytest.mark.parametrize("patience", [400])
"""For a test whose ``store`` is to wait in vain: it gives up soon."""


@asynccontextmanager
async def open_store(path: Path, patience: int = 1500) -> AsyncIterator[SqliteStore]:
    """Open a store on the SQLite file ``path``, made if it is not there."""
    store = SqliteStore(path, patience)
    store.migrate()
    await store.open()
    try:
        yield store
    finally:
        await store.close()


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the write lock of a SQLite file, as another process in a long transaction does."""
    connection = apsw.Connection(str(path))
    # The service that is to find it locked may be writing just now.
    connection.set_busy_timeout(5_000)
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        connection.close()


def do(sql: str, *parameters: Value) -> Unit[list[Row]]:
    """Return a unit of work of one statement."""
    return (yield Statement(sql, parameters))
