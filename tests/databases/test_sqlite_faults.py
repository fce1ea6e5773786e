"""A file that is locked, full, slow, damaged or gone: refused in time, never falsely done."""

import asyncio
import threading
import time
from pathlib import Path
from typing import NamedTuple

import apsw
import pytest

from petstore.databases.contract import Unit
from petstore.databases.sqlite import SqliteStore
from petstore.errors import Unavailable
from petstore.pets.model import NewPet
from support.changes import create_pet, create_pets
from support.rows import select_pet, select_pets
from support.stores import do, impatient, locked, open_store
from support.waiting import eventually

pytestmark = pytest.mark.anyio

BELLA = NewPet("Bella", 1)
LONG = NewPet("x" * 255, 1)
PAGE_BYTES = 4096


async def count_pets(store: SqliteStore) -> int:
    return len(await store.read(select_pets(100_000)))


async def fill_the_disk(store: SqliteStore) -> None:
    """Let the file grow no more: SQLite then fails as it does without space."""
    ((pages,),) = await store.write(do("PRAGMA page_count"))
    await store.write(do(f"PRAGMA max_page_count = {pages}"))


async def add_until_refused(store: SqliteStore) -> int:
    """Add pets one by one, and return how many were acknowledged."""
    for count in range(10_000):
        try:
            await store.write(create_pet(LONG))
        except Unavailable:
            return count
    pytest.fail("none was refused")


async def test_changes_that_wait_for_a_lock_are_refused_in_time(
    store: SqliteStore, database: Path
) -> None:
    with locked(database, store):
        started = time.monotonic()
        outcomes = await asyncio.gather(
            *(store.write(create_pet(BELLA)) for _ in range(300)), return_exceptions=True
        )
        assert time.monotonic() - started < 20
    assert {type(outcome) for outcome in outcomes} == {Unavailable}
    assert (await store.write(create_pet(BELLA))).id == 1
    assert await count_pets(store) == 1


async def test_a_lock_that_is_released_in_time_only_delays_changes(
    store: SqliteStore, database: Path
) -> None:
    with locked(database):
        writing = asyncio.create_task(store.write(create_pet(BELLA)))
        await asyncio.sleep(0.02)
        assert not writing.done()
    assert (await writing).id == 1


async def test_a_change_that_was_refused_is_not_made_later(
    store: SqliteStore, database: Path
) -> None:
    with locked(database, store), pytest.raises(Unavailable):
        await store.write(create_pet(BELLA))
    await store.write(do("SELECT 1"))
    assert await count_pets(store) == 0


async def test_a_change_that_takes_too_long_is_refused_in_time_and_not_made(
    store: SqliteStore,
) -> None:
    def unit() -> Unit[None]:
        while True:
            yield from create_pet(BELLA)

    with impatient(store), pytest.raises(Unavailable):
        await store.write(unit())
    assert (await store.write(create_pet(BELLA))).id == 1


async def test_reads_do_not_wait_for_a_writer(store: SqliteStore, database: Path) -> None:
    await store.write(create_pet(BELLA))
    writer = apsw.Connection(str(database))
    writer.execute("BEGIN IMMEDIATE; UPDATE pets SET name = 'unfinished'")
    started = time.monotonic()
    for _ in range(100):
        ((_, name, *_),) = await store.read(select_pet(1))
        assert name == "Bella"
    assert time.monotonic() - started < 20
    writer.close()


async def test_on_a_full_disk_changes_are_refused_and_reads_succeed(store: SqliteStore) -> None:
    await fill_the_disk(store)
    added = await add_until_refused(store)
    with pytest.raises(Unavailable, match="full"):
        await store.write(create_pets([LONG] * 100))
    assert await count_pets(store) == added
    await store.write(do("PRAGMA max_page_count = 1000000"))
    await store.write(create_pet(LONG))
    assert await count_pets(store) == added + 1


async def test_when_the_disk_is_full_every_write_of_the_group_fails(store: SqliteStore) -> None:
    await fill_the_disk(store)
    outcomes = await asyncio.gather(
        store.write(create_pet(BELLA)),
        store.write(create_pets([LONG] * 1_000)),
        store.write(create_pet(BELLA)),
        return_exceptions=True,
    )
    assert [type(outcome) for outcome in outcomes] == [Unavailable] * 3
    assert await count_pets(store) == 0


class SlowDisk(NamedTuple):
    """A disk that is asked to commit, and responds once the test says so."""

    is_asked: threading.Event
    responds: threading.Event


@pytest.fixture
def slow_disk(connections: list[apsw.Connection], store: SqliteStore) -> SlowDisk:
    """The disk of ``store``. A test names it first: it sees what ``store`` opens."""
    del store
    disk = SlowDisk(threading.Event(), threading.Event())

    def commit() -> bool:
        disk.is_asked.set()
        return not disk.responds.wait(30)

    connections[-2].set_commit_hook(commit)
    return disk


async def test_on_a_slow_disk_changes_are_refused_in_time_and_reads_succeed(
    slow_disk: SlowDisk, store: SqliteStore
) -> None:
    with impatient(store):
        first = asyncio.create_task(store.write(create_pet(BELLA)))
        await eventually(slow_disk.is_asked.is_set)
        started = time.monotonic()
        for _ in range(2):
            with pytest.raises(Unavailable, match="in time"):
                await store.write(create_pet(NewPet("late", 1)))
        assert time.monotonic() - started < 20
        assert await count_pets(store) == 0
        with pytest.raises(Unavailable, match="in time"):
            await first
    slow_disk.responds.set()
    await store.write(create_pet(NewPet("after", 1)))
    names = [row[1] for row in await store.read(select_pets(10))]
    assert "late" not in names
    assert names[-1] == "after"


async def test_a_change_that_was_made_in_time_may_be_committed_after_its_deadline(
    slow_disk: SlowDisk, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the caller would be refused, and the change made all the same."""
    monkeypatch.setattr("petstore.databases.sqlite_commits._COMMIT_SECONDS", 60)
    with impatient(store):
        first = asyncio.create_task(store.write(create_pet(BELLA)))
        await eventually(slow_disk.is_asked.is_set)
        with pytest.raises(Unavailable, match="in time"):
            await store.write(create_pet(NewPet("late", 1)))  # its deadline is later
        assert not first.done()
        slow_disk.responds.set()
        assert (await first).id == 1


async def test_no_write_of_a_failed_commit_succeeds(
    connections: list[apsw.Connection], store: SqliteStore
) -> None:
    connections[-2].set_commit_hook(lambda: True)
    outcomes = await asyncio.gather(
        *(store.write(create_pet(BELLA)) for _ in range(3)), return_exceptions=True
    )
    assert all(isinstance(outcome, Exception) for outcome in outcomes)
    assert await count_pets(store) == 0
    connections[-2].set_commit_hook(None)
    assert (await store.write(create_pet(BELLA))).id == 1


async def test_a_missing_file_is_an_error_and_is_not_created(database: Path) -> None:
    with pytest.raises(Unavailable):
        await SqliteStore(database).open()
    assert not database.exists()


async def damage(database: Path, page: int) -> None:
    async with open_store(database) as store:
        await store.write(create_pets([LONG] * 200))
    content = bytearray(database.read_bytes())
    first_byte = page * PAGE_BYTES
    content[first_byte : first_byte + PAGE_BYTES] = b"\xaa" * PAGE_BYTES
    database.write_bytes(content)


async def test_a_file_without_its_header_cannot_be_opened(database: Path) -> None:
    await damage(database, 0)
    with pytest.raises(Unavailable, match="not a database"):
        await SqliteStore(database).open()


async def test_a_damaged_file_is_reported_as_unavailable(database: Path) -> None:
    await damage(database, 1)  # where the pets begin
    store = SqliteStore(database)
    await store.open()
    with pytest.raises(Unavailable, match="malformed"):
        await store.read(select_pets(100))
    with pytest.raises(Unavailable, match="malformed"):
        await store.write(create_pet(BELLA))
    await store.close()
