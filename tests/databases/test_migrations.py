"""Which files become a store, which are refused, and that nothing of either is lost."""

import asyncio
import fcntl
import os
import re
import time
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from pathlib import Path
from threading import Thread

import apsw
import pytest

from petstore.backends import store_at
from petstore.databases import migrations
from petstore.databases.backups import back_up, restore
from petstore.databases.contract import Row, Statement, Unit
from petstore.databases.sqlite import SqliteStore, checkpoint_and_remove_wal
from petstore.databases.sqlite_connection import connected, one_at_a_time
from petstore.databases.sqlite_files import OpenFiles
from petstore.errors import Unavailable, UnusableDatabase
from petstore.events.store import Change
from petstore.interface.idempotency_records import Attempt, SafeRetries
from petstore.orders.model import OrderCreate
from petstore.orders.store import place_order
from petstore.pets.model import NewPet, PetFilter
from petstore.pets.store import get_pet, list_pets
from support.changes import NOW, create_pet
from support.full_stores import columns_of, contents, query
from support.keys import issue_stored
from support.manual_clock import ManualClock
from support.next_version import MIGRATION, become_next_version
from support.other_processes import IdleUser, migrate_at_once
from support.permissions import umask
from support.postgres import PostgresServer
from support.stores import address_of, half_written, leave_half_written, open_store

INDEXES = {
    "sqlite": "SELECT name, sql FROM sqlite_schema ORDER BY name",
    "postgresql": "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1",
}
VERSION = len(migrations.scripts("sqlite"))
MIGRATE = """
import sys
from petstore.backends import store_at
sys.stdin.read()
store_at(sys.argv[1], 20_000).migrate()
"""


def run_sql(database: Path, sql: str) -> list[Row]:
    with closing(apsw.Connection(str(database))) as connection:
        connection.pragma("foreign_keys", "on")
        return connection.execute(sql).fetchall()


NO_DATABASE = "file is not a database"
OTHERS = "made by another program, not by petstore$"
MADE_BY_A_NEWER = (
    f"the database has schema version {VERSION + 1}, made by a newer petstore;"
    f" this one knows versions up to {VERSION}"
)
MISSING = f"the database does not have the schema of version {VERSION}: %s is missing$"


@pytest.mark.parametrize(
    ("content", "sql", "reason"),
    [
        (b"", "CREATE TABLE pets (id INTEGER PRIMARY KEY, name TEXT)", OTHERS),
        (b"", "CREATE TABLE notes (text TEXT); PRAGMA user_version = 1", OTHERS),
        (b"", "CREATE TABLE notes (text TEXT); PRAGMA user_version = 99", OTHERS),
        (b"", "CREATE TABLE notes (text TEXT); PRAGMA application_id = 7", OTHERS),
        (b"", "PRAGMA journal_mode = wal; CREATE TABLE notes (text TEXT)", OTHERS),
        (b"", "PRAGMA user_version = 7", OTHERS),
        (None, f"PRAGMA user_version = {VERSION + 1}", MADE_BY_A_NEWER),
        (None, "DROP TABLE usage", MISSING % "table usage"),
        (None, "DROP TRIGGER pet_moved", MISSING % "trigger pet_moved"),
        (None, "DROP INDEX open_orders", MISSING % "index open_orders"),
        (None, "ALTER TABLE usage DROP COLUMN requests", MISSING % r"column usage\.requests"),
        (b"xy", "", NO_DATABASE),
        (b"name,categoryId\nBella,1\n" * 100, "", NO_DATABASE),
        (bytes(4096), "", NO_DATABASE),
        (b"SQLite format 3\0" * 999, "", NO_DATABASE),
    ],
)
def test_what_is_no_store_or_has_another_schema_is_refused_and_untouched(
    database: Path, content: bytes | None, sql: str, reason: str
) -> None:
    if content is None:
        SqliteStore(database).migrate()
    else:
        database.write_bytes(content)
    if sql:
        run_sql(database, sql)
    before = database.read_bytes()
    with pytest.raises(UnusableDatabase, match=reason) as refusal:
        SqliteStore(database).migrate()
    assert refusal.value.message.startswith(f"{database}: ")
    assert database.read_bytes() == before
    assert list(database.parent.iterdir()) == [database]


def test_a_folder_or_dangling_link_is_refused_and_a_missing_folder_not_created(
    database: Path, tmp_path: Path
) -> None:
    with pytest.raises(Unavailable, match=f"^{tmp_path}: expected a file"):
        SqliteStore(tmp_path).migrate()
    with pytest.raises(UnusableDatabase, match=r"^.*/missing/petstore\.db: there is no folder"):
        SqliteStore(tmp_path / "missing" / "petstore.db").migrate()
    database.symlink_to(tmp_path / "elsewhere.db")
    with pytest.raises(UnusableDatabase, match="it is a link that leads nowhere"):
        SqliteStore(database).migrate()
    assert list(tmp_path.iterdir()) == [database]
    assert not database.exists()


def test_migrating_again_changes_nothing(database: Path) -> None:
    SqliteStore(database).migrate()
    database.chmod(0o640)
    before = database.read_bytes()
    SqliteStore(database).migrate()
    assert database.read_bytes() == before
    assert database.stat().st_mode & 0o777 == 0o640
    with closing(apsw.Connection(str(database))) as connection:
        marks = ("application_id", "user_version", "journal_mode")
        assert [connection.pragma(mark) for mark in marks] == [0x50455453, VERSION, "wal"]


def test_a_migration_waits_for_another_one_but_not_for_ever(database: Path) -> None:
    folder = os.open(database.parent, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    begun = time.monotonic()
    with one_at_a_time(database, 50):
        assert time.monotonic() - begun >= 0.05
    waiting = Thread(target=SqliteStore(database).migrate)
    waiting.start()
    waiting.join(0.1)
    assert waiting.is_alive()
    os.close(folder)
    waiting.join()
    SqliteStore(database).schema()


def test_half_of_a_change_is_never_read_and_undone_once_its_process_was_killed(
    database: Path,
) -> None:
    with half_written(database), pytest.raises(UnusableDatabase, match="database is locked"):
        SqliteStore(database, timeout=50).schema()
    database.unlink()
    leave_half_written(database)
    assert SqliteStore(database).schema() == (VERSION, VERSION)
    assert run_sql(database, "SELECT count(*) FROM categories") == [(0,)]


def test_a_store_without_a_log_that_another_program_reads_can_be_opened(database: Path) -> None:
    SqliteStore(database).migrate()
    run_sql(database, "PRAGMA journal_mode = delete")
    with IdleUser(database, reads=True):
        with connected(database, 50) as connection:
            assert connection.pragma("journal_mode") == "delete"
            assert SqliteStore(database, timeout=50).schema() == (VERSION, VERSION)
        log = database.with_name("petstore.db-wal")  # which its maker makes just now
        with closing(OpenFiles(database)) as files:
            with files.opening(50):
                log.touch()
            assert log.exists()


def test_a_log_is_put_away_once_another_process_has_opened_it(database: Path) -> None:
    SqliteStore(database).migrate()
    log = database.with_name("petstore.db-wal")
    with IdleUser(database):
        assert log.exists()
    with database.open("rb") as file, ThreadPoolExecutor() as threads:
        fcntl.flock(file, fcntl.LOCK_EX)
        putting_away = threads.submit(checkpoint_and_remove_wal, database)
        assert wait([putting_away], 0.1).not_done
        fcntl.flock(file, fcntl.LOCK_UN)
        putting_away.result()
    assert not log.exists()


@pytest.mark.each_database
def test_several_processes_can_create_a_store_at_once(
    database_kind: str, request: pytest.FixtureRequest, database: Path
) -> None:
    database.touch()
    one, other = f"sqlite:///{database}", f"sqlite:///{database.with_name('new.db')}"
    if database_kind == "postgresql":
        postgres: PostgresServer = request.getfixturevalue("postgres")
        one, other = postgres.new_store(), postgres.new_database()
    migrate_at_once(MIGRATE, other)
    store_at(one, 10_000).migrate()
    sql = INDEXES[database_kind]
    assert query(other, sql) == query(one, sql) != []
    assert columns_of(other) == columns_of(one)


OF_OTHERS = """
    CREATE TABLE _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER);
    CREATE TABLE _litestream_lock (id INTEGER);
    CREATE TABLE "my notes" (pet_id INTEGER REFERENCES pets (id));
    CREATE INDEX "by name" ON pets (name);
    CREATE VIEW names AS SELECT name FROM pets;
    ALTER TABLE usage ADD COLUMN remark TEXT;
    ANALYZE
"""


@pytest.mark.anyio
async def test_what_others_put_into_a_store_is_theirs(database: Path) -> None:
    async with open_store(database) as store:
        run_sql(database, OF_OTHERS)
        await store.write(create_pet(NewPet("Rex", 1)))
    for action in (back_up, restore):
        moved = database.with_name(f"{action.__name__}.db")
        action(database, moved, lambda *_: None)
        database = moved
        async with open_store(database) as store:
            assert len((await list_pets(store, PetFilter(), None, 20)).items) == 1
        assert run_sql(database, "SELECT count(*) FROM _litestream_seq") == [(0,)]


# What the schema itself sees to


@pytest.mark.parametrize(
    "sql",
    [
        # A second open order for a pet.
        "INSERT INTO orders (pet_id, status, placed_at) VALUES (1, 'placed', 0)",
        "INSERT INTO orders (pet_id, status, placed_at) VALUES (1, 'approved', 0)",
        "UPDATE orders SET status = 'approved', pet_id = 2",
        "UPDATE orders SET status = 'approved' WHERE status = 'delivered'",
        "INSERT INTO orders (pet_id, status, placed_at) VALUES (3, 'lost', 0)",
        "INSERT INTO orders (pet_id, status, placed_at) VALUES ('x', 'placed', 0)",
        "INSERT INTO pets (name, category_id, status) VALUES ('Bella', 1, 'lost')",
        "INSERT INTO categories (name, name_key) VALUES ('Dogs', 'dogs'), ('DOGS', 'dogs')",
        "INSERT INTO idempotency_records VALUES (99, 'a', x'', x'', 0)",
        "INSERT INTO inventory VALUES ('sold', 7)",
    ],
)
def test_the_database_refuses_rows_that_break_a_constraint(database: Path, sql: str) -> None:
    SqliteStore(database).migrate()
    for status in ("delivered", "cancelled", "cancelled", "placed"):
        order = "INSERT INTO orders (pet_id, status, placed_at) VALUES (1, '{}', 0)"
        run_sql(database, order.format(status))
    with pytest.raises(apsw.ConstraintError):
        run_sql(database, sql)


@pytest.mark.anyio
async def test_only_the_owner_can_read_a_new_database_and_the_files_beside_it(
    database: Path,
) -> None:
    with umask(0):
        async with open_store(database) as store:
            await store.write(create_pet(NewPet("Rex", 1)))
            modes = {path.name: path.stat().st_mode & 0o777 for path in database.parent.iterdir()}
    assert modes == {f"petstore.db{ending}": 0o600 for ending in ("", "-wal", "-shm")}


# The next version beside this one


MIGRATE_TO_NEXT = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
import pytest
from support.next_version import become_next_version
become_next_version(pytest.MonkeyPatch())
{MIGRATE}"""


@pytest.mark.each_database
def test_a_migration_keeps_all_rows_and_lets_running_processes_work_but_none_start(
    database_kind: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    fixture = "postgres_url" if database_kind == "postgresql" else "database"
    address = address_of(request.getfixturevalue(fixture))
    bella, clock = NewPet("Bella", 1, "available"), ManualClock()

    def sell() -> Unit[bytes]:
        pet = yield from create_pet(bella)
        yield from place_order(Change(NOW), OrderCreate(pet.id))
        return b""

    def found() -> tuple[dict[str, list[str]], dict[str, list[Row]]]:
        return columns_of(address), contents(address)

    async def use() -> None:
        async with open_store(address) as store:
            key = await issue_stored(store, clock)
            await store.write(create_pet(bella))
            before = await asyncio.to_thread(found)
            with monkeypatch.context() as patch:
                become_next_version(patch, f"{MIGRATION}; CREATE TABLE orders (mine TEXT)")
                with pytest.raises(UnusableDatabase, match="orders"):
                    await asyncio.to_thread(store_at(address, 10_000).migrate)
            assert await asyncio.to_thread(found) == before
            await asyncio.to_thread(migrate_at_once, MIGRATE_TO_NEXT, address)
            _, kept = await asyncio.to_thread(found)
            wider = {name: before[1][name] for name in ("pets", "api_keys")}
            assert kept | wider == before[1]
            await SafeRetries(store, clock).once(Attempt(key, "retry", b""), sell())
            assert (await get_pet(store, 2)).status == "pending"
            replaced = store_at(address, 10_000)  # a worker that takes the place of a killed one
            await replaced.open()
            await issue_stored(replaced, clock)
            await replaced.close()
            added = await store.read(Statement("SELECT added_later FROM pets ORDER BY id"))
            assert added == [("Bella",), (None,)]

    asyncio.run(use())
    newer = f"schema version {VERSION + 1}, made by a newer"
    with pytest.raises(UnusableDatabase, match=newer) as refusal:
        store_at(address, 10_000).migrate()
    page = (Path(__file__).parents[2] / "docs/upgrading.md").read_text()
    said = refusal.value.message.partition("the database has")[2]
    assert re.sub("[0-9]+", "N", said) in re.sub("[0-9]+", "N", page)
    become_next_version(monkeypatch)
    store_at(address, 10_000).migrate()
    assert len(query(address, "SELECT id FROM pets")) == 2
