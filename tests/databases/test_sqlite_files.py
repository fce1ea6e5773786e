"""Files deleted under a running service: nothing acknowledged is lost, and no two sets are used."""

import asyncio
import fcntl
import os
import re
import resource
import shutil
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import apsw
import pytest

from petstore.databases.backups import back_up, restore
from petstore.databases.sqlite import SqliteStore
from petstore.databases.sqlite_files import OpenFiles, process_text
from petstore.errors import Unavailable
from petstore.pets.model import NewPet
from support.changes import create_pet, create_pets
from support.endless_writer import EndlessWriter
from support.idle_user import IdleUser
from support.pet_rows import select_pets
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


def beside(database: Path, ending: str) -> Path:
    return database.with_name(database.name + ending)


async def delete_under_writers(database: Path, endings: tuple[str, ...]) -> None:
    """Delete files, and wait until a writer has another log.

    If it were killed before, nobody could save the log; and what it acknowledges may be read from
    its pipe much later.
    """
    delete(database, endings)
    await eventually(beside(database, "-wal").exists)


async def ids_in(database: Path) -> set[int]:
    async with open_store(database) as store:
        return {row[0] for row in await store.read(select_pets(1_000_000))}


def with_copy(database: Path) -> Path:
    """Return a copy of the database as its operator recovers it from a saved log."""
    recovered = database.with_name("recovered.db")
    shutil.copyfile(database, recovered)
    shutil.copyfile(beside(database, "-wal-saved"), beside(recovered, "-wal"))
    with closing(apsw.Connection(str(recovered))) as connection:
        assert connection.pragma("integrity_check") == "ok"
    return recovered


async def ids_with_copy(database: Path) -> set[int]:
    return await ids_in(with_copy(database))


async def ids_without_log(database: Path) -> set[int]:
    """Return what a power cut would leave if the log had lost its name for good."""
    alone = database.with_name("alone.db")
    shutil.copyfile(database, alone)
    return await ids_in(alone)


def delete_while_opening(files: OpenFiles, database: Path, endings: tuple[str, ...]) -> None:
    """Delete files just before SQLite opens them, which makes another log."""
    with files.opening(50):
        delete(database, endings)
        beside(database, "-wal").touch()


@contextmanager
def no_more_files() -> Iterator[None]:
    """Let this process open no further file, until the block ends."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@deleting
async def test_kill_9_loses_no_change_acknowledged_before_or_after_a_file_was_deleted(
    database: Path, endings: tuple[str, ...]
) -> None:
    with EndlessWriter(database) as writer:
        writer.wait_for(200)
        await delete_under_writers(database, endings)
        writer.wait_for(200)
    found = await ids_in(database)
    assert len(writer.acknowledged) >= 400
    assert set(writer.acknowledged) <= found


@pytest.mark.parametrize("endings", DELETED[:2], ids="".join)
async def test_processes_that_share_a_database_recover_together_from_a_deleted_file(
    database: Path, endings: tuple[str, ...]
) -> None:
    with EndlessWriter(database) as first, EndlessWriter(database) as second:
        for writer in (first, second):
            writer.wait_for(50)
        await delete_under_writers(database, endings)
        for writer in (first, second, first, second):
            writer.wait_for(50)
    found = await ids_in(database)
    assert set(first.acknowledged) | set(second.acknowledged) <= found
    assert set(first.acknowledged).isdisjoint(second.acknowledged)
    assert apsw.Connection(str(database)).pragma("integrity_check") == "ok"


@deleting
async def test_new_files_are_not_opened_while_another_process_uses_deleted_ones(
    store: SqliteStore, database: Path, endings: tuple[str, ...]
) -> None:
    await store.write(create_pet(BELLA))
    await store.close()
    names = ", ".join(str(beside(database, ending)) for ending in endings)
    with IdleUser(database) as other:
        delete(database, endings)
        reason = (
            f"^{names}: deleted while in use, and process {other.pid} .* still uses the old one$"
        )
        with pytest.raises(Unavailable, match=reason):
            await SqliteStore(database, timeout=50).open()
        assert not any(beside(database, ending).exists() for ending in endings)
    await store.open()
    assert (await store.write(create_pet(BELLA))).id == 2


@deleting
async def test_changes_are_refused_until_no_other_process_uses_deleted_files(
    store: SqliteStore, database: Path, endings: tuple[str, ...]
) -> None:
    await store.write(create_pet(BELLA))
    with IdleUser(database) as other, impatient(store):
        delete(database, endings)
        reason = f"process {other.pid} .* still uses"
        # On a busy machine, a change may be refused before its reason is known.
        late = "did not confirm the change in time"
        for refused, why in (
            (store.check(), reason),
            (store.write(create_pet(BELLA)), f"{reason}|{late}"),
            (store.check(), reason),
        ):
            with pytest.raises(Unavailable, match=why):
                await refused
        if "-wal" in endings:
            assert await ids_without_log(database) == {1}
    assert (await store.write(create_pet(BELLA))).id == 2
    await store.check()


async def test_a_database_that_replaces_one_in_use_is_not_opened(
    store: SqliteStore, database: Path
) -> None:
    await store.write(create_pet(BELLA))
    await store.close()
    with IdleUser(database) as other:
        shutil.copyfile(database, database.with_name("copy.db")).replace(database)
        reason = f"{database} was replaced while process {other.pid} .* uses the old file"
        with pytest.raises(Unavailable, match=reason):
            await SqliteStore(database, timeout=50).open()
    await store.open()


@deleting
async def test_a_database_whose_files_are_deleted_during_opening_is_refused(
    store: SqliteStore, database: Path, endings: tuple[str, ...]
) -> None:
    await store.close()
    with IdleUser(database), closing(OpenFiles(database)) as files:
        with pytest.raises(Unavailable, match="was deleted while it was opened"):
            delete_while_opening(files, database, endings)
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
        assert files.log_is_in_place()
    await store.open()


async def test_processes_open_a_database_one_after_another(
    store: SqliteStore, database: Path
) -> None:
    await store.close()
    with database.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(Unavailable, match=f"{database}: another process is opening it"):
            await SqliteStore(database, timeout=50).open()
    await store.open()


@deleting
async def test_the_log_says_which_file_was_deleted(
    store: SqliteStore, database: Path, endings: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    await store.write(create_pet(BELLA))
    delete(database, endings)
    await store.check()
    assert (await store.write(create_pet(BELLA))).id == 2
    names = ", ".join(str(beside(database, ending)) for ending in endings)
    (message,) = caplog.messages
    assert message.startswith(f"{names}: deleted while in use; changes wait until")
    assert len(await store.read(select_pets(10))) == 2


@deleting
async def test_a_commit_to_a_deleted_wal_is_saved_before_it_is_acknowledged(
    connections: list[apsw.Connection],
    store: SqliteStore,
    database: Path,
    endings: tuple[str, ...],
) -> None:
    def commit() -> bool:
        delete(database, endings)
        return False

    connections[-2].set_commit_hook(commit)
    pets = await asyncio.gather(*(store.write(create_pet(BELLA)) for _ in range(3)))
    connections[-2].set_commit_hook(None)
    assert {pet.id for pet in pets} == {1, 2, 3}
    if "-wal" in endings:
        assert await ids_without_log(database) == {1, 2, 3}
    assert (await store.write(create_pet(BELLA))).id == 4


async def test_the_readiness_check_saves_a_deleted_wal(store: SqliteStore, database: Path) -> None:
    await store.write(create_pet(BELLA))
    delete(database, ("-wal",))
    await store.check()
    assert await ids_without_log(database) == {1}


async def test_recreated_files_change_the_version(store: SqliteStore, database: Path) -> None:
    seen = {await store.version()}
    for _ in range(3):
        delete(database, ("-wal", "-shm"))
        await store.check()
        version = await store.version()
        assert version not in seen
        seen.add(version)


async def test_a_replaced_wal_is_refused_until_the_original_is_back(
    store: SqliteStore, database: Path
) -> None:
    await store.write(create_pet(BELLA))
    log = beside(database, "-wal")
    aside = log.rename(database.with_name("aside"))
    log.touch()
    reason = f"{log} was replaced while in use: restart the service"
    for _ in range(2):
        with pytest.raises(Unavailable, match=reason):
            await store.write(create_pet(BELLA))
    with pytest.raises(Unavailable, match=reason):
        await store.check()
    assert len(await store.read(select_pets(10))) == 1
    aside.replace(log)
    assert (await store.write(create_pet(BELLA))).id == 2
    await store.check()


async def test_a_truncated_wal_is_refused(store: SqliteStore, database: Path) -> None:
    async with open_store(database) as other:
        await other.write(create_pets(MANY))
        beside(database, "-wal").write_bytes(b"")
        with pytest.raises(Unavailable, match="disk I/O error"):
            await store.write(create_pet(BELLA))


async def test_without_free_file_descriptors_changes_are_refused(
    store: SqliteStore, database: Path
) -> None:
    await store.write(create_pet(BELLA))
    delete(database, ("-wal", "-shm"))
    with no_more_files():
        with pytest.raises(Unavailable):
            await store.write(create_pet(BELLA))
        for refused in (
            store.check(),
            store.version(),
            store.read(select_pets(10)),
        ):
            with pytest.raises(Unavailable):
                await refused
    assert (await store.write(create_pet(BELLA))).id == 2
    await store.check()


async def test_the_files_of_a_symlinked_database_are_beside_its_target(
    tmp_path: Path, database: Path
) -> None:
    link = tmp_path / "folder" / "link.db"
    link.parent.mkdir()
    SqliteStore(database).migrate()
    link.symlink_to(database)
    async with open_store(link) as store:
        await store.write(create_pet(BELLA))
        delete(database, ("-wal",))
        assert (await store.write(create_pet(BELLA))).id == 2
        assert await ids_without_log(database) == {1}
        assert os.listdir(link.parent) == ["link.db"]  # noqa: PTH208 - names alone


async def test_a_deleted_wal_that_another_program_reads_is_copied_until_it_ends(
    store: SqliteStore, database: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    await store.write(create_pet(BELLA))
    with IdleUser(database, reads=True) as other, impatient(store):
        await store.write(create_pets(MANY))
        delete(database, ("-wal",))
        made = beside(database, "-wal-saved")
        written = []
        for _ in range(3):
            with pytest.raises(Unavailable, match=f"process {other.pid} .* still uses the old one"):
                await store.write(create_pet(BELLA))
            written.append(made.stat().st_ino)
        assert len({*written}) == 1, "an unchanged log was copied again"
        assert made.stat().st_mode & 0o777 == 0o600
        assert await ids_with_copy(database) == {*range(1, 1002)}
        assert len(await store.read(select_pets(10))) == 10
    assert (await store.write(create_pet(BELLA))).id == 1002
    assert not made.exists()
    warning, info = caplog.messages
    assert f"{database}-wal: deleted while in use, and process {other.pid} " in warning
    assert info == f"{database}: new files are open beside it; changes continue"


async def test_a_commit_to_a_deleted_wal_is_saved_while_another_program_reads_it(
    connections: list[apsw.Connection], store: SqliteStore, database: Path
) -> None:
    def commit() -> bool:
        delete(database, ("-wal",))
        return False

    await store.write(create_pet(BELLA))
    with IdleUser(database, reads=True):
        connections[-2].set_commit_hook(commit)
        assert (await store.write(create_pet(BELLA))).id == 2
        connections[-2].set_commit_hook(None)
        assert await ids_with_copy(database) == {1, 2}


async def test_a_change_by_another_process_to_a_deleted_wal_is_copied(
    connections: list[apsw.Connection], store: SqliteStore, database: Path
) -> None:
    """It has begun before the log was deleted, and ends after others have noticed that."""
    await store.write(create_pet(BELLA))
    late = connections[-2].execute
    async with open_store(database) as second:
        with IdleUser(database, reads=True), impatient(store), impatient(second):
            await store.write(create_pet(BELLA))
            delete(database, ("-wal",))
            with pytest.raises(Unavailable):
                await second.check()
            late("UPDATE pets SET name = 'late'")
            with pytest.raises(Unavailable):
                await second.check()
            with closing(apsw.Connection(str(with_copy(database)))) as recovered:
                assert recovered.execute("SELECT name FROM pets").fetchall() == [("late",)] * 2


async def test_while_a_deleted_log_is_in_use_its_users_are_named_and_not_the_copy_of_it(
    store: SqliteStore, database: Path
) -> None:
    await store.close()
    with IdleUser(database, reads=True) as one, IdleUser(database) as other:
        delete(database, ("-wal",))
        beside(database, "-wal-saved").touch(0o600)
        with pytest.raises(Unavailable, match="-wal: deleted while in use, and ") as refusal:
            await SqliteStore(database, timeout=50).open()
        for user in (one, other):
            assert f"process {user.pid} (" in str(refusal.value)
    beside(database, "-wal-saved").unlink()
    await store.open()


async def test_a_wal_that_cannot_be_checkpointed_is_copied_when_the_store_closes(
    store: SqliteStore, database: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await store.write(create_pet(BELLA))
    with IdleUser(database, reads=True):
        await store.write(create_pets(MANY))
        delete(database, ("-wal", "-shm"))
        await store.close()
        assert caplog.messages[-1].endswith(f"rename it to {database}-wal, and start again")
        assert await ids_with_copy(database) == {*range(1, 1002)}
    beside(database, "-wal-saved").unlink()
    await store.open()


async def test_a_deleted_wal_is_saved_on_close_even_if_another_process_opens_the_database(
    store: SqliteStore, database: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await store.write(create_pet(BELLA))
    with IdleUser(database, reads=True), database.open("rb") as file, impatient(store):
        await store.write(create_pet(BELLA))
        delete(database, ("-wal",))
        fcntl.flock(file, fcntl.LOCK_EX)
        await store.close()
        assert await ids_with_copy(database) == {1, 2}
    assert caplog.messages[-1].endswith(f"rename it to {database}-wal, and start again")
    beside(database, "-wal-saved").unlink()
    await store.open()


async def test_a_store_that_was_put_into_rollback_mode_is_in_wal_mode_once_it_is_open(
    store: SqliteStore, database: Path
) -> None:
    await store.close()
    with closing(apsw.Connection(str(database))) as other:
        assert other.pragma("journal_mode", "delete") == "delete"
    await store.open()
    await store.write(create_pet(BELLA))
    with closing(apsw.Connection(str(database))) as other:
        assert other.pragma("journal_mode") == "wal"


async def test_a_deleted_wal_that_cannot_be_saved_on_close_is_logged(
    store: SqliteStore, database: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await store.write(create_pet(BELLA))
    with IdleUser(database, reads=True):
        await store.write(create_pet(BELLA))
        delete(database, ("-wal",))
        beside(database, "-wal-saved.part").mkdir()
        await store.close()
    (message,) = caplog.messages
    assert message.startswith(f"{database}: its log was not saved: ")
    await store.open()


async def test_a_database_is_not_opened_without_the_changes_of_a_saved_wal(
    store: SqliteStore, database: Path
) -> None:
    await store.write(create_pet(BELLA))
    await store.close()
    saved = beside(database, "-wal-saved")
    saved.touch(0o600)
    resume_hint = (
        f"{saved} has confirmed changes that are not in {database}. Once no process uses the"
        f" database, rename it to {database}-wal, and start again"
    )
    with pytest.raises(Unavailable, match=f"^{re.escape(resume_hint)}$"):
        await store.open()
    for refused in (store.migrate, store.schema):  # at once: to wait would not help
        with pytest.raises(Unavailable, match="confirmed changes"):
            refused()
    still_used = pytest.raises(Unavailable, match=r"\(process \d+ .* still does\)")
    with IdleUser(database), still_used:
        await SqliteStore(database, timeout=50).open()
    saved.unlink()
    await store.open()


async def test_a_restored_database_does_not_keep_the_saved_wal_of_the_old_one(
    tmp_path: Path, database: Path
) -> None:
    async with open_store(database) as store:
        await store.write(create_pet(BELLA))
    back_up(database, tmp_path / "backup.db", lambda _, __: None)
    beside(database, "-wal-saved").touch(0o600)
    restore(tmp_path / "backup.db", database, lambda _, __: None)
    assert await ids_in(database) == {1}


async def test_a_read_while_the_files_are_closed_is_refused_with_the_reason(
    store: SqliteStore, database: Path
) -> None:
    with IdleUser(database), impatient(store):
        delete(database, ("-shm",))
        with pytest.raises(Unavailable):
            await store.check()
        for refused in (store.read(select_pets(10)), store.version()):
            with pytest.raises(Unavailable, match=r"its files are being opened again$"):
                await refused


async def test_a_change_waits_for_a_short_read_of_another_program_after_a_deletion(
    store: SqliteStore, database: Path
) -> None:
    await store.write(create_pet(BELLA))
    with IdleUser(database, reads=True):
        await store.write(create_pet(BELLA))
        delete(database, ("-wal",))
        change = asyncio.create_task(store.write(create_pet(BELLA)))
        await eventually(beside(database, "-wal-saved").exists)
    assert (await change).id == 3


async def test_a_deleted_wal_is_saved_while_another_program_has_the_write_lock(
    store: SqliteStore, database: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await store.write(create_pet(BELLA))
    with locked(database, store):
        delete(database, ("-wal",))
        for _ in range(2):  # the second one begins after the log was saved
            with pytest.raises(Unavailable):
                await store.write(create_pet(BELLA))
        assert await ids_without_log(database) == {1}
    (message,) = caplog.messages
    assert message.startswith(f"{database}-wal: deleted while in use")


async def test_a_deleted_wal_is_copied_while_another_program_checkpoints_it(
    store: SqliteStore, database: Path
) -> None:
    waits, ended = threading.Event(), threading.Event()

    def wait(_: int) -> bool:
        waits.set()
        return not ended.wait(0.01)

    await store.write(create_pet(BELLA))
    with IdleUser(database, reads=True), closing(apsw.Connection(str(database))) as other:
        await store.write(create_pet(BELLA))
        other.pragma("schema_version")  # SQLite opens the log only to read it
        other.set_busy_handler(wait)
        mode = apsw.SQLITE_CHECKPOINT_RESTART
        checkpoint = asyncio.create_task(asyncio.to_thread(other.wal_checkpoint, "main", mode))
        await eventually(waits.is_set)
        delete(database, ("-wal",))
        with impatient(store), pytest.raises(Unavailable):
            await store.write(create_pet(BELLA))
        await eventually(beside(database, "-wal-saved").exists)
        assert await ids_with_copy(database) == {1, 2}
        ended.set()
        with pytest.raises(apsw.BusyError):
            await checkpoint
    await store.check()
    assert (await store.write(create_pet(BELLA))).id == 3


@pytest.mark.parametrize(
    ("pid", "text"),
    [
        (0, "a process of another container"),
        (os.getpid(), f"process {os.getpid()} ({Path('/proc/self/comm').read_text().strip()})"),
        (2**30, f"process {2**30}"),
    ],
    ids=["elsewhere", "here", "ended"],
)
async def test_a_process_is_reported_with_its_program(pid: int, text: str) -> None:
    assert process_text(pid) == text


async def test_processes_save_a_deleted_wal_one_after_another(
    store: SqliteStore, database: Path
) -> None:
    """Otherwise one could remove the copy that another has just made."""
    await store.write(create_pet(BELLA))
    delete(database, ("-wal",))
    with database.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with impatient(store), pytest.raises(Unavailable, match="another process is opening it"):
            await store.check()
        assert len(await store.read(select_pets(10))) == 1, "the old files are closed"
    assert (await store.write(create_pet(BELLA))).id == 2


async def test_reads_of_a_closed_store_are_refused(store: SqliteStore) -> None:
    await store.close()
    for refused in (store.read(select_pets(10)), store.version()):
        with pytest.raises(Unavailable):
            await refused
    await store.open()
