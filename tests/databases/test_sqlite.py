"""How the SQLite store commits, and a file that is locked, full, slow, damaged or gone."""

import asyncio
import threading
import time
from pathlib import Path

import apsw
import pytest

from petstore.databases.contract import Unit
from petstore.databases.sqlite import SqliteStore
from petstore.errors import Unavailable
from petstore.pets.model import PETS, NewPet, Pet
from petstore.time_slices import TimeSlices
from support.changes import create_pet, create_pets
from support.memory_folder import folder_in_memory
from support.rows import select_pets
from support.stores import do, impatient, locked, open_store
from support.waiting import eventually

pytestmark = pytest.mark.anyio

BELLA = NewPet("Bella", 1)
LONG = NewPet("x" * 255, 1)
MANY_LONG_NAMES = (
    "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)"
    " INSERT INTO pets (name, category_id) SELECT printf('%0250d', i), 1 FROM n"
)


async def all_pets(store: SqliteStore) -> list[Pet]:
    return [PETS.read(row) for row in await store.read(select_pets(1_000_000))]


async def count_pets(store: SqliteStore) -> int:
    return len(await all_pets(store))


# How changes are committed


def commits_in_wal(database: Path) -> int:
    """Count the frames of the write-ahead log that end a transaction.

    https://www.sqlite.org/fileformat2.html, section 4: a header of 32 bytes, then frames of a
    header of 24 and a page each; the second number of a header that ends a transaction is not 0.
    """
    wal = database.with_name(database.name + "-wal").read_bytes()
    page_size = int.from_bytes(wal[8:12])
    frames = (wal[start : start + 24] for start in range(32, len(wal), 24 + page_size))
    return sum(frame[4:8] != bytes(4) and frame[8:16] == wal[16:24] for frame in frames)


async def test_one_change_is_one_commit_and_concurrent_changes_share_commits(
    store: SqliteStore, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("petstore.databases.sqlite_commits._GROUP_SECONDS", 60)
    await store.write(create_pet(BELLA))
    before = commits_in_wal(database)
    await store.write(create_pet(BELLA))
    assert commits_in_wal(database) == before + 1
    pets = await asyncio.gather(*(store.write(create_pet(BELLA)) for _ in range(600)))
    assert commits_in_wal(database) == before + 4
    assert [pet.id for pet in pets] == list(range(3, 603))


async def test_every_commit_is_synced_and_foreign_keys_are_enforced(store: SqliteStore) -> None:
    settings = {"synchronous": 2, "journal_mode": "wal", "foreign_keys": 1}
    for name, value in (settings | {"temp_store": 2}).items():  # so savepoints write no file
        assert await store.write(do(f"PRAGMA {name}")) == [(value,)]


async def test_others_run_between_the_statements_of_a_long_unit_which_does_not_queue_behind_them(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    has_ended, turns = False, 0

    def long_unit() -> Unit[None]:
        yield from create_pet(BELLA)
        while not has_ended:  # for ever, if others did not run
            yield select_pets(1)

    writing = asyncio.create_task(store.write(long_unit()))
    await asyncio.sleep(0)
    assert await store.read(select_pets(1)) == []
    has_ended = True
    await writing
    monkeypatch.setattr("petstore.databases.sqlite_commits._SLICE_SECONDS", 0)

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


async def test_a_commit_that_fails_fails_its_group_which_leaves_the_rest_once_it_took_its_time(
    connections: list[apsw.Connection], store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def outcomes(failing: int) -> list[Pet | BaseException]:
        fails = iter([True] * failing)
        connections[-2].set_commit_hook(lambda: next(fails, False))
        writes = (store.write(create_pet(BELLA)) for _ in range(5))
        return await asyncio.gather(*writes, return_exceptions=True)

    monkeypatch.setattr("petstore.databases.sqlite_commits._GROUP_SECONDS", 60)
    assert {isinstance(each, Exception) for each in await outcomes(100)} == {True}
    assert await count_pets(store) == 0
    monkeypatch.setattr("petstore.databases.sqlite_commits._GROUP_SECONDS", 0)
    first, *others = await outcomes(1)
    assert isinstance(first, Exception)
    assert others == await all_pets(store)
    assert [pet.id for pet in others if isinstance(pet, Pet)] == [1, 2, 3, 4]


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
        assert not writing.done()
    await writing
    assert len({before, waiting, await store.version()}) == 3


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


async def test_changes_and_reads_of_a_closed_store_are_refused_at_once(store: SqliteStore) -> None:
    await store.close()
    with pytest.raises(Unavailable, match="the database is closed"):
        await store.write(create_pet(BELLA))
    for refused in (store.read(select_pets(10)), store.version()):
        with pytest.raises(Unavailable):
            await refused
    await store.open()


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


# A file that is locked, full, slow, damaged or gone: refused in time, never falsely done


async def test_changes_that_wait_for_a_lock_are_refused_in_time_and_not_made_later(
    store: SqliteStore, database: Path
) -> None:
    with locked(database, store):
        started = time.monotonic()
        outcomes = await asyncio.gather(
            *(store.write(create_pet(BELLA)) for _ in range(300)), return_exceptions=True
        )
        assert time.monotonic() - started < 20
    assert {type(outcome) for outcome in outcomes} == {Unavailable}
    await store.write(do("SELECT 1"))
    assert await count_pets(store) == 0
    assert (await store.write(create_pet(BELLA))).id == 1


async def test_a_change_that_takes_too_long_is_refused_in_time_and_not_made(
    store: SqliteStore,
) -> None:
    def unit() -> Unit[None]:
        while True:
            yield from create_pet(BELLA)

    with impatient(store), pytest.raises(Unavailable):
        await store.write(unit())
    assert (await store.write(create_pet(BELLA))).id == 1


async def test_on_a_full_disk_whole_groups_of_changes_are_refused_and_reads_succeed(
    store: SqliteStore,
) -> None:
    await store.write(create_pet(LONG))
    # The file cannot grow: SQLite then fails as it does without space.
    ((pages,),) = await store.write(do("PRAGMA page_count"))
    await store.write(do(f"PRAGMA max_page_count = {pages}"))
    outcomes = await asyncio.gather(
        store.write(create_pet(BELLA)),
        store.write(create_pets([LONG] * 1_000)),
        store.write(create_pet(BELLA)),
        return_exceptions=True,
    )
    assert [type(outcome) for outcome in outcomes] == [Unavailable] * 3
    assert "full" in str(outcomes[0])
    assert await count_pets(store) == 1
    await store.write(do("PRAGMA max_page_count = 1000000"))
    await store.write(create_pets([LONG] * 1_000))
    assert await count_pets(store) == 1_001


async def test_on_a_slow_disk_changes_are_refused_in_time_but_for_those_made_and_reads_succeed(
    connections: list[apsw.Connection], store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change that was made in time may be committed later: to refuse it would be false."""
    for seconds, is_patient in ((0.4, False), (60, True)):
        is_asked, responds = threading.Event(), threading.Event()

        def commit(is_asked: threading.Event = is_asked, disk: threading.Event = responds) -> bool:
            is_asked.set()
            return not disk.wait(30)

        connections[-2].set_commit_hook(commit)
        monkeypatch.setattr("petstore.databases.sqlite_commits._COMMIT_SECONDS", seconds)
        before = await count_pets(store)
        with impatient(store):
            first = asyncio.create_task(store.write(create_pet(BELLA)))
            await eventually(is_asked.is_set)
            started = time.monotonic()
            for _ in range(2):
                with pytest.raises(Unavailable, match="in time"):
                    await store.write(create_pet(NewPet("late", 1)))
            assert time.monotonic() - started < 20
            assert await count_pets(store) == before
            if is_patient:
                assert not first.done()
            else:
                with pytest.raises(Unavailable, match="in time"):
                    await first
            responds.set()
        if is_patient:
            assert (await first).name == "Bella"
        await store.write(create_pet(NewPet("after", 1)))
        names = [pet.name for pet in await all_pets(store)]
        assert "late" not in names
        assert names[-1] == "after"


async def test_a_missing_or_damaged_file_is_reported_as_unavailable(database: Path) -> None:
    damaged = SqliteStore(database)
    with pytest.raises(Unavailable):
        await damaged.open()
    assert not database.exists()
    async with open_store(database) as store:
        await store.write(create_pets([LONG] * 200))
    content = database.read_bytes()
    database.write_bytes(b"\xaa" * 4096 + content[4096:])
    with pytest.raises(Unavailable, match="not a database"):
        await damaged.open()
    database.write_bytes(content[:4096] + b"\xaa" * 4096 + content[8192:])  # where the pets begin
    await damaged.open()
    for refused in (damaged.read(select_pets(100)), damaged.write(create_pet(BELLA))):
        with pytest.raises(Unavailable, match="malformed"):
            await refused
    await damaged.close()
