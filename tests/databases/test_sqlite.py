"""How the SQLite store commits: in groups, synced, and always before the response."""

import asyncio
import threading
from pathlib import Path

import apsw
import pytest

from petstore.databases.contract import Unit
from petstore.databases.sqlite import SqliteStore
from petstore.errors import Unavailable
from petstore.pets.model import PETS, NewPet, Pet
from petstore.time_slices import TimeSlices
from support.changes import create_pet
from support.memory_folder import folder_in_memory
from support.other_processes import EndlessWriter
from support.rows import select_pets
from support.stores import do, locked, open_store

pytestmark = pytest.mark.anyio

BELLA = NewPet("Bella", 1)
MANY_LONG_NAMES = (
    "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)"
    " INSERT INTO pets (name, category_id) SELECT printf('%0250d', i), 1 FROM n"
)


def commits_in_wal(database: Path) -> int:
    """Count the frames of the write-ahead log that end a transaction.

    https://www.sqlite.org/fileformat2.html, section 4: a header of 32 bytes, then frames of a
    header of 24 and a page each; the second number of a header that ends a transaction is not 0.
    """
    wal = database.with_name(database.name + "-wal").read_bytes()
    page_size = int.from_bytes(wal[8:12])
    frames = (wal[start : start + 24] for start in range(32, len(wal), 24 + page_size))
    return sum(frame[4:8] != bytes(4) and frame[8:16] == wal[16:24] for frame in frames)


async def test_one_change_is_one_commit(store: SqliteStore, database: Path) -> None:
    await store.write(create_pet(BELLA))
    before = commits_in_wal(database)
    await store.write(create_pet(BELLA))
    assert commits_in_wal(database) == before + 1


async def test_concurrent_changes_share_commits(store: SqliteStore, database: Path) -> None:
    await store.write(create_pet(BELLA))
    before = commits_in_wal(database)
    pets = await asyncio.gather(*(store.write(create_pet(BELLA)) for _ in range(600)))
    assert commits_in_wal(database) == before + 3
    assert [pet.id for pet in pets] == list(range(2, 602))


async def test_others_run_between_the_statements_of_a_long_unit(store: SqliteStore) -> None:
    began, has_ended = asyncio.Event(), asyncio.Event()

    def unit() -> Unit[None]:
        yield from create_pet(BELLA)
        began.set()
        while not has_ended.is_set():  # for ever, if others did not run
            yield select_pets(1)

    async def read() -> int:
        await began.wait()
        pets = await store.read(select_pets(1))
        has_ended.set()
        return len(pets)

    _, seen = await asyncio.gather(store.write(unit()), read())
    assert seen == 0


async def test_a_long_unit_does_not_queue_behind_long_reads(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("petstore.databases.sqlite_commits._SLICE_SECONDS", 0)
    turns = 0

    async def read() -> None:
        nonlocal turns
        while True:
            await TimeSlices(0).rest()
            turns += 1

    def unit() -> Unit[int]:
        before = turns
        for _ in range(10):
            yield select_pets(1)
        return turns - before

    reads = [asyncio.create_task(read()) for _ in range(20)]
    assert await store.write(unit()) <= 20  # each of its ten rests would take that long
    for task in reads:
        task.cancel()


async def test_a_group_that_has_taken_its_time_leaves_the_rest_to_the_next(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("petstore.databases.sqlite_commits._GROUP_SECONDS", 0)
    pets = await asyncio.gather(*(store.write(create_pet(BELLA)) for _ in range(5)))
    assert [pet.id for pet in pets] == [1, 2, 3, 4, 5]


async def test_the_version_changes_while_a_change_waits_for_the_lock(
    store: SqliteStore, database: Path
) -> None:
    before = await store.version()
    async with open_store(f"sqlite:///{database}") as other:
        await other.write(create_pet(BELLA))
    with locked(database):
        writing = asyncio.create_task(store.write(create_pet(BELLA)))
        for _ in range(3):
            await asyncio.sleep(0)
        waiting = await store.version()
    await writing
    assert len({before, waiting, await store.version()}) == 3


async def test_every_commit_is_synced(store: SqliteStore) -> None:
    assert await store.write(do("PRAGMA synchronous")) == [(2,)]
    assert await store.write(do("PRAGMA journal_mode")) == [("wal",)]


async def test_savepoints_write_no_file(store: SqliteStore) -> None:
    assert await store.write(do("PRAGMA temp_store")) == [(2,)]


async def test_a_wal_that_grew_during_a_long_read_is_truncated() -> None:
    with folder_in_memory() as folder:
        path = folder / "petstore.db"
        async with open_store(path, 30_000) as store:
            log = path.with_name("petstore.db-wal")
            reader = apsw.Connection(str(path))
            reader.execute("BEGIN; SELECT count(*) FROM pets")
            await store.write(do(MANY_LONG_NAMES))
            assert log.stat().st_size > 20 * 1024 * 1024
            reader.close()
            for _ in range(2):  # the first one brings the log into the database
                await store.write(create_pet(BELLA))
            assert log.stat().st_size <= 16 * 1024 * 1024


async def test_foreign_keys_are_enforced(store: SqliteStore) -> None:
    assert await store.write(do("PRAGMA foreign_keys")) == [(1,)]


async def test_the_statement_of_a_page_is_compiled_once(
    connections: list[apsw.Connection], store: SqliteStore
) -> None:
    compiled: list[str | None] = []

    def note(_action: int, _table: str | None, column: str | None, *_: str | None) -> int:
        compiled.append(column)
        return apsw.SQLITE_OK

    connections[-1].set_authorizer(note)
    await store.read(select_pets(21, after=1))
    first = len(compiled)
    assert first > 0
    await store.read(select_pets(51, after=2))
    assert len(compiled) == first


async def test_a_change_of_a_store_that_was_closed_is_refused_at_once(database: Path) -> None:
    async with open_store(database) as store:
        pass
    with pytest.raises(Unavailable, match="the database is closed"):
        await store.write(create_pet(BELLA))
    await store.close()


def test_a_loop_that_ends_during_a_commit_leaves_the_store_to_another_one(database: Path) -> None:
    store, disk = SqliteStore(database), threading.Event()
    store.migrate()

    async def begin() -> None:
        await store.open()
        slow = asyncio.get_running_loop(), disk.wait, lambda _: None
        store._connections.calls.put(slow)  # noqa: SLF001 - a slow disk

    async def go_on() -> Pet:
        pet = await store.write(create_pet(BELLA))
        await store.close()
        return pet

    asyncio.run(begin())
    disk.set()
    assert asyncio.run(go_on()).id == 1


async def test_kill_9_loses_nothing_that_was_acknowledged(database: Path) -> None:
    acknowledged: list[int] = []
    for count in (1, 50, 333):
        with EndlessWriter(database) as writer:
            writer.wait_for(count)
        assert min(writer.acknowledged) > max(acknowledged, default=0)
        acknowledged += sorted(writer.acknowledged)
    async with open_store(database) as store:
        rows = await store.read(select_pets(1_000_000))
        found = [PETS.read(row).id for row in rows]
        assert set(acknowledged) <= set(found)
        assert (await store.write(create_pet(NewPet("Oskar", 1)))).id > max(found)
