"""Stores on real files, and what another program does to such a file."""

import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager, nullcontext, suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import apsw

from petstore.backends import store_at
from petstore.databases.contract import Row, Statement, Store, Unit, Value
from petstore.databases.private_files import create
from petstore.databases.sqlite import SqliteStore
from petstore.settings import is_postgres, sqlite_path


def address_of(address: str | Path) -> str:
    return address if isinstance(address, str) else f"sqlite:///{address}"


def migrate(store: Store, path: Path) -> None:
    """Migrate the store in a SQLite file; a file that is not there becomes a copy of a new one.

    That takes a fraction of the time of all migrations.
    """
    with suppress(FileExistsError), create(path) as file:
        file.write(_new_file())
    store.migrate()


@cache
def _new_file() -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "petstore.db"
        SqliteStore(path).migrate()
        return path.read_bytes()


@asynccontextmanager
async def open_store(
    address: str | Path, timeout_ms: int = 10_000, connections: int = 10
) -> AsyncIterator[Any]:
    """Open a store; one in a SQLite file is made, one on a server is there.

    On a busy machine slow is no failure.
    """
    store = store_at(address_of(address), timeout_ms, connections)
    if not is_postgres(address_of(address)):
        migrate(store, sqlite_path(address_of(address)))
    await store.open()
    try:
        yield store
    finally:
        await store.close()


@contextmanager
def impatient(store: Any) -> Iterator[None]:
    """Let a SQLite store wait only briefly in the block, because the lock is not released there.

    Before and after, it waits as long as ever: on a busy machine slow is no failure.
    """
    connections = store._connections  # noqa: SLF001 - no setting of a running store
    timeout, connections.timeout = connections.timeout, 400
    try:
        yield
    finally:
        connections.timeout = timeout


@contextmanager
def locked(path: Path, store: Any = None) -> Iterator[None]:
    """Hold the write lock of a SQLite file, as another process in a long transaction does.

    If a ``store`` is given, it is impatient meanwhile.
    """
    with closing(apsw.Connection(str(path))) as connection:
        # The service that is to find it locked may be writing just now.
        connection.set_busy_timeout(30_000)
        connection.execute("BEGIN IMMEDIATE")
        with impatient(store) if store else nullcontext():
            yield


@contextmanager
def half_written(database: Path) -> Iterator[None]:
    """Have a store without a log, and half of a change in its file, until the block ends."""
    SqliteStore(database).migrate()
    with closing(apsw.Connection(str(database))) as connection:
        connection.pragma("journal_mode", "delete")
        size = database.stat().st_size
        connection.pragma("cache_size", 1)  # the rest is written to the file at once
        connection.execute("BEGIN")
        names = ((f"name {number}",) for number in range(5_000))
        connection.executemany("INSERT INTO categories (name, name_key) VALUES (?1, ?1)", names)
        assert database.stat().st_size > size
        yield


def leave_half_written(database: Path) -> None:
    """Leave a store as a process does that is killed in the middle of such a change."""
    source = database.with_name("source.db")
    with half_written(source):
        for ending in ("", "-journal"):
            shutil.copy(f"{source}{ending}", f"{database}{ending}")
    source.unlink()


def do(sql: str, *parameters: Value) -> Unit[list[Row]]:
    return (yield Statement(sql, parameters))
