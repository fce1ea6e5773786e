"""A process that delivers has SQLite's write lock for no longer than it needs the processor."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from threading import Event

import apsw
import pytest

from petstore.databases.sqlite import SqliteStore
from petstore.errors import Unavailable
from petstore.pets.model import NewPet
from support.changes import create_pet
from support.pet_rows import select_pets
from support.stores import locked
from support.waiting import eventually

pytestmark = pytest.mark.anyio

BELLA = NewPet("Bella", 1)


@pytest.fixture
async def store(database: Path) -> AsyncIterator[SqliteStore]:
    """An open store with brief locks."""
    store = SqliteStore(database, brief_locks=True)
    store.migrate()
    await store.open()
    yield store
    await store.close()


async def test_other_processes_can_write_while_a_change_is_being_synced(
    store: SqliteStore, database: Path
) -> None:
    disk = Event()
    slow = asyncio.get_running_loop(), disk.wait, lambda _: None
    store._connections.calls.put(slow)  # noqa: SLF001 - a slow disk
    writing = asyncio.create_task(store.write(create_pet(BELLA)))
    other = apsw.Connection(str(database))
    await eventually(lambda: other.execute("SELECT count(*) FROM pets").get == 1)
    other.execute("BEGIN IMMEDIATE")
    other.execute("ROLLBACK")
    other.close()
    assert not writing.done()
    disk.set()
    assert (await writing).id == 1


async def test_a_change_waits_for_the_lock_of_another_process(
    store: SqliteStore, database: Path
) -> None:
    with locked(database):
        writing = asyncio.create_task(store.write(create_pet(BELLA)))
        await asyncio.sleep(0.05)
        assert not writing.done()
    assert (await writing).id == 1


async def test_a_change_is_refused_if_another_process_does_not_release_the_lock(
    store: SqliteStore, database: Path
) -> None:
    with locked(database, store), pytest.raises(Unavailable):
        await store.write(create_pet(BELLA))
    assert (await store.write(create_pet(BELLA))).id == 1
    assert len(await store.read(select_pets(10))) == 1
