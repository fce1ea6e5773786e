"""Files deleted under a running store: nothing acknowledged is lost, and it takes no changes."""

import asyncio
import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

import apsw
import pytest

from petstore.databases.backups import back_up
from petstore.databases.sqlite import SqliteStore
from petstore.databases.sqlite_files import OpenFiles, process_text
from petstore.errors import LostFiles, Unavailable
from petstore.pets.model import NewPet
from support.changes import create_pet, create_pets
from support.other_processes import EndlessWriter, IdleUser
from support.permissions import full_disk
from support.rows import select_pets
from support.stores import impatient, locked, open_store
from support.waiting import eventually

pytestmark = pytest.mark.anyio

BELLA = NewPet("Bella", 1)
MANY = [BELLA] * 1000
"""So many that the first page of the database changes, which everybody reads."""
DELETED = [("-wal",), ("-shm",), ("-wal", "-shm")]
deleting = pytest.mark.parametrize("endings", DELETED, ids="".join)


def delete(database: Path, endings: tuple[str, ...]) -> None:
    for ending in endings:
        beside(database, ending).unlink()


def replace(database: Path, ending: str) -> None:
    path = beside(database, ending)
    shutil.copyfile(path, path.with_name("copy")).replace(path)


def beside(database: Path, ending: str) -> Path:
    return database.with_name(database.name + ending)


async def ids_in(database: Path) -> set[int]:
    async with open_store(database) as store:
        return {row[0] for row in await store.read(select_pets(1_000_000))}


async def ids_without_log(database: Path) -> set[int]:
    """Return what a power cut would leave of a database whose log has no name."""
    alone = database.with_name("alone.db")
    shutil.copyfile(database, alone)
    return await ids_in(alone)


# What a running store does


@pytest.mark.parametrize(
    "lose",
    [
        *(partial(delete, endings=endings) for endings in DELETED),
        *(partial(replace, ending=ending) for ending in ("-wal", "-shm", "")),
    ],
    ids=["-wal deleted", "-shm deleted", "both deleted", "-wal", "-shm", "the database"],
)
async def test_once_a_file_is_lost_every_change_is_in_the_database_and_the_process_may_end(
    store: SqliteStore,
    database: Path,
    caplog: pytest.LogCaptureFixture,
    lose: Callable[[Path], None],
) -> None:
    await store.write(create_pet(BELLA))
    opened = database.with_name("opened.db")
    opened.hardlink_to(database)
    lose(database)
    for refused in (store.check(), store.write(create_pet(BELLA))):
        with pytest.raises(
            LostFiles, match=r"petstore\.db.* was deleted or replaced while in use$"
        ):
            await refused
    assert await ids_without_log(opened) == {1}
    assert len(await store.read(select_pets(10))) == 1
    (record,) = caplog.records
    assert record.levelname == "CRITICAL"
    assert record.getMessage().startswith(f"{database}")
    await store.close()
    log = beside(database, "-wal")
    assert not log.exists() or not log.stat().st_size


@deleting
async def test_a_commit_to_a_deleted_wal_is_in_the_database_before_it_is_acknowledged(
    connections: list[apsw.Connection], store: SqliteStore, database: Path, endings: tuple[str, ...]
) -> None:
    def commit() -> bool:
        delete(database, endings)
        return False

    connections[-2].set_commit_hook(commit)
    pets = await asyncio.gather(*(store.write(create_pet(BELLA)) for _ in range(3)))
    assert {pet.id for pet in pets} == {1, 2, 3} == await ids_without_log(database)


async def test_a_commit_to_a_database_without_a_name_is_not_acknowledged(
    connections: list[apsw.Connection], store: SqliteStore, database: Path
) -> None:
    """Its process goes on: a new one would make an empty store."""
    aside = database.with_name("aside.db")

    def commit() -> bool:
        database.rename(aside)
        return False

    connections[-2].set_commit_hook(commit)
    with pytest.raises(Unavailable):
        await store.write(create_pet(BELLA))
    assert len(await store.read(select_pets(10))) == 1
    with pytest.raises(Unavailable, match=r"petstore\.db .*: put it back") as refusal:
        await store.check()
    assert not isinstance(refusal.value, LostFiles)
    aside.rename(database)
    with pytest.raises(LostFiles):
        await store.check()


async def test_while_another_program_reads_a_deleted_wal_its_process_does_not_end(
    store: SqliteStore, database: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await store.write(create_pet(BELLA))
    with IdleUser(database, reads=True) as other:
        await store.write(create_pets(MANY))
        delete(database, ("-wal",))
        with impatient(store):
            for refused in (store.check(), store.write(create_pet(BELLA))):
                reason = f"and process {other.pid} .* still reads the old one: let it end|in time$"
                with pytest.raises(Unavailable, match=reason) as refusal:
                    await refused
                assert not isinstance(refusal.value, LostFiles)
        assert len(await store.read(select_pets(10))) == 10
    with pytest.raises(LostFiles):
        await store.check()
    assert await ids_without_log(database) == {*range(1, 1002)}
    assert len(caplog.records) == 1


async def test_on_a_full_disk_the_process_of_a_deleted_wal_does_not_end(
    store: SqliteStore, database: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await store.write(create_pets(MANY))
    delete(database, ("-wal",))
    with impatient(store), full_disk():
        with pytest.raises(Unavailable, match="and it cannot be saved: ") as refusal:
            await store.check()
        assert not isinstance(refusal.value, LostFiles)
        await store.close()
    assert caplog.messages[-1].startswith(f"{database} does not have all changes: it cannot be")


@pytest.mark.parametrize("reads", [False, True])
async def test_a_deleted_wal_is_brought_to_the_database_when_the_store_closes(
    store: SqliteStore, database: Path, caplog: pytest.LogCaptureFixture, *, reads: bool
) -> None:
    """Or when the other program that still reads it closes it."""
    await store.write(create_pet(BELLA))
    with IdleUser(database, reads=reads) as other:
        await store.write(create_pets(MANY))
        delete(database, ("-wal",))
        with impatient(store):
            await store.close()
        if reads:
            kept = f"{database} does not have all changes: process {other.pid} "
            assert caplog.messages[-1].startswith(kept)
            with pytest.raises(Unavailable, match="still uses the old one"):
                await SqliteStore(database, timeout=50).open()
        other.end()
    assert await ids_in(database) == {*range(1, 1002)}


async def test_kill_9_after_a_deletion_loses_nothing_that_was_acknowledged(database: Path) -> None:
    with EndlessWriter(database) as first, EndlessWriter(database) as second:
        for writer in (first, second):
            writer.wait_for(100)
        with beside(database, "-wal").open("rb") as log:
            delete(database, ("-wal",))
            await eventually(lambda: os.fstat(log.fileno()).st_size == 0)
    assert {*first.acknowledged, *second.acknowledged} <= await ids_in(database)
    assert apsw.Connection(str(database)).pragma("integrity_check") == "ok"


async def test_a_deleted_wal_is_saved_under_a_write_lock_and_beside_the_target_of_a_link(
    tmp_path: Path, database: Path
) -> None:
    link = tmp_path / "folder" / "link.db"
    link.parent.mkdir()
    SqliteStore(database).migrate()
    link.symlink_to(database)
    async with open_store(link) as store:
        await store.write(create_pet(BELLA))
        with locked(database, store):
            delete(database, ("-wal",))
            with pytest.raises(Unavailable):
                await store.check()
            assert await ids_without_log(database) == {1}
        with pytest.raises(LostFiles):
            await store.check()
        assert os.listdir(link.parent) == ["link.db"]  # noqa: PTH208 - names alone


async def test_a_truncated_wal_is_refused(store: SqliteStore, database: Path) -> None:
    async with open_store(database) as other:
        await other.write(create_pets(MANY))
        beside(database, "-wal").write_bytes(b"")
        with pytest.raises(Unavailable, match="disk I/O error"):
            await store.write(create_pet(BELLA))


# What a process that opens the files does


@pytest.mark.parametrize("lost", [*DELETED, "replaced"], ids="".join)
async def test_a_database_is_not_opened_while_another_process_uses_its_lost_files(
    store: SqliteStore, database: Path, lost: tuple[str, ...] | str
) -> None:
    await store.write(create_pet(BELLA))
    await store.close()
    with IdleUser(database) as other:
        if isinstance(lost, str):
            replace(database, "")
            reason = f"{database} was replaced while process {other.pid} .* uses the old file"
        else:
            delete(database, lost)
            names = ", ".join(str(beside(database, ending)) for ending in lost)
            reason = (
                f"^{names}: deleted while in use, and process {other.pid} .* still uses the old"
            )
        with pytest.raises(Unavailable, match=reason):
            await SqliteStore(database, timeout=50).open()
        assert lost == "replaced" or not any(beside(database, each).exists() for each in lost)
    await store.open()
    assert (await store.write(create_pet(BELLA))).id == 2


@deleting
async def test_a_database_whose_files_are_deleted_during_opening_is_refused(
    store: SqliteStore, database: Path, endings: tuple[str, ...]
) -> None:
    await store.close()

    def delete_while_opening(files: OpenFiles) -> None:
        """Delete files just before SQLite opens them, which makes another log."""
        with files.opening(50):
            delete(database, endings)
            beside(database, "-wal").touch()

    with IdleUser(database), closing(OpenFiles(database)) as files:
        with pytest.raises(Unavailable, match="was deleted while it was opened"):
            delete_while_opening(files)
        assert beside(database, "-wal").exists() == ("-wal" not in endings)
        with pytest.raises(Unavailable, match="still uses the old one"), files.opening(50):
            pass
    await store.open()


async def test_a_database_can_be_opened_while_its_last_user_closes_it(
    store: SqliteStore, database: Path
) -> None:
    await store.close()
    with ExitStack() as user, closing(OpenFiles(database)) as files:
        user.enter_context(IdleUser(database))
        with files.opening(50):
            user.close()
            delete(database, ("-wal", "-shm"))
            beside(database, "-wal").touch()
        assert not files.lost()
    await store.open()


async def test_processes_open_a_database_one_after_another_and_bring_it_into_wal_mode(
    store: SqliteStore, database: Path
) -> None:
    await store.close()
    with closing(apsw.Connection(str(database))) as other:
        assert other.pragma("journal_mode", "delete") == "delete"
    with database.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(Unavailable, match=f"{database}: another process is opening it"):
            await SqliteStore(database, timeout=50).open()
    await store.open()
    await store.write(create_pet(BELLA))
    with closing(apsw.Connection(str(database))) as other:
        assert other.pragma("journal_mode") == "wal"


async def test_a_process_is_reported_with_its_program() -> None:
    here, ended = os.getpid(), 2**30
    program = Path("/proc/self/comm").read_text().strip()
    assert process_text(0) == "a process of another container"
    assert process_text(here) == f"process {here} ({program})"
    assert process_text(ended) == f"process {ended}"


# What a backup and a restore read and leave


RESTORE = """
import os, sys
from pathlib import Path
from petstore.databases.backups import restore

def end(*_):
    {end}

Path.replace = end
restore(Path(sys.argv[1]), Path(sys.argv[2]), lambda *_: None)
"""


def test_the_wal_can_be_truncated_while_a_backup_is_checked(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    SqliteStore(database).migrate()
    service = apsw.Connection(str(database))
    service.execute("INSERT INTO pets (name, category_id) VALUES ('Bella', 1)")
    sizes = []

    def truncate_log(_: apsw.Cursor, sql: str, __: object) -> bool:
        if "integrity_check" in sql:
            service.wal_checkpoint("main", apsw.SQLITE_CHECKPOINT_TRUNCATE)
            sizes.append(Path(f"{database}-wal").stat().st_size)
        return True

    hooks = [lambda connection: connection.set_exec_trace(truncate_log)]
    monkeypatch.setattr(apsw, "connection_hooks", hooks)
    back_up(database, tmp_path / "backup.db", lambda *_: None)
    service.close()
    assert sizes == [0]


@pytest.mark.parametrize(
    "end", ["os.kill(os.getpid(), 9)", "raise OSError"], ids=["killed", "failed"]
)
def test_a_restore_that_ends_just_before_the_rename_keeps_all_acknowledged_changes(
    database: Path, tmp_path: Path, end: str
) -> None:
    backup = tmp_path / "backup.db"
    SqliteStore(database).migrate()
    back_up(database, backup, lambda *_: None)
    with EndlessWriter(database) as writer:
        writer.wait_for(100)
    code = RESTORE.format(end=end)
    assert subprocess.run([sys.executable, "-c", code, backup, database], check=False).returncode
    found = apsw.Connection(str(database)).execute("SELECT id FROM pets").fetchall()
    assert {(pet_id,) for pet_id in writer.acknowledged} <= {*found}
