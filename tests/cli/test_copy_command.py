"""``petstore copy``: a whole store in another database, or nothing of it."""

import asyncio
import re
import signal
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from petstore.backends import store_at
from petstore.cli.main import main
from petstore.databases.contract import Row, Store
from petstore.databases.copies.contract import COPIED, CopiedTable
from petstore.databases.copies.postgres import open_postgres
from petstore.databases.copies.sqlite import open_sqlite
from petstore.databases.schema import TABLES
from petstore.databases.sqlite import SqliteStore
from petstore.databases.store_copies import copy_store
from petstore.errors import InternalError, Unavailable
from petstore.keys.store import unconditional
from petstore.orders.store import cancel_order
from petstore.pets.model import NewPet
from petstore.pets.store import get_inventory
from petstore.settings import is_postgres
from support.changes import create_pet
from support.full_disk import full_disk
from support.full_stores import (
    ANIMALS,
    assert_of_one_moment,
    columns_of,
    contents,
    make_full_store,
    query,
)
from support.postgres import PostgresServer, Psql, database_name
from support.servers import StartServer
from support.steady_buyers import Buyers
from support.terminal import Terminal, shown_on_terminal
from support.waiting import within

LAST_ANIMAL = len(ANIMALS) + 2  # one was deleted, one imported


def copy(source: str, target: str) -> Result:
    """Copy a store by the command, run in this process."""
    return CliRunner().invoke(main, ("copy", "--from", source, "--to", target))


def refused(source: str, target: str, status: int = 1) -> str:
    """Copy in vain, and return the one line that says why."""
    result = copy(source, target)
    assert result.exit_code == status, result.output
    assert isinstance(result.exception, SystemExit)
    assert result.stdout == ""
    return result.stderr.rpartition("Error: ")[2].rstrip("\n")


@pytest.fixture
def full(tmp_path: Path) -> str:
    """The address of a SQLite store with something in every table."""
    path = tmp_path / "full.db"
    make_full_store(path)
    return f"sqlite:///{path}"


@pytest.fixture
def address(request: pytest.FixtureRequest, database: Path) -> Callable[[str], str]:
    """Give the address of an empty database of a kind."""

    def url_of(kind: str) -> str:
        if kind == "sqlite":
            return f"sqlite:///{database}"
        url: str = request.getfixturevalue("postgres_url")
        return url if kind == "postgresql" else f"{url}?pgbouncer=true"

    return url_of


@pytest.mark.parametrize("option", ["--from", "--to"])
def test_an_invalid_database_is_refused(full: str, option: str) -> None:
    addresses = {"--from": full, "--to": full, option: "mysql://root:secret@host/x"}
    words = refused(addresses["--from"], addresses["--to"], status=2)
    assert words.startswith(f"Invalid value for '{option}'")
    assert "expected sqlite:///relative.db" in words
    assert "secret" not in words


def test_a_missing_source_is_refused(tmp_path: Path, database: Path) -> None:
    words = refused(f"sqlite:///{tmp_path / 'none.db'}", f"sqlite:///{database}")
    assert words.startswith(f"there is no store at {tmp_path / 'none.db'}")
    assert not database.exists()


def test_a_source_that_is_not_a_store_is_refused_and_unchanged(
    postgres: PostgresServer, database: Path
) -> None:
    source = postgres.new_database()
    words = refused(source, f"sqlite:///{database}")
    assert words.startswith("there is no store in that database; petstore serve or ")
    assert query(source, "SELECT * FROM pg_tables WHERE schemaname = 'public'") == []
    assert not database.exists()


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_target_that_is_not_empty_is_refused(
    full: str, address: Callable[[str], str], kind: str
) -> None:
    target = address(kind)
    store_at(target, 10_000).migrate()

    async def add(store: Store) -> None:
        await store.write(create_pet(NewPet("Mine", 1), strict_categories=False))

    in_store(target, add)
    before = contents(target)
    assert refused(full, target).startswith("the target is not empty: it has rows in pets")
    assert contents(target) == before


def test_what_others_added_to_the_source_stays_there(full: str, postgres_url: str) -> None:
    before = contents(full)
    query(full, "ALTER TABLE usage ADD COLUMN remark TEXT; CREATE TABLE _litestream_seq (id)")
    assert copy(full, postgres_url).exit_code == 0
    assert contents(postgres_url) == before


def test_a_password_is_never_shown(full: str, postgres: PostgresServer) -> None:
    target = postgres.url("nowhere").replace("petstore@", "petstore:geheim@")
    for result in (copy(full, target), copy(target, full), copy(full, target.replace("@", "/x@"))):
        assert result.exit_code == 1
        assert "geheim" not in result.output


@pytest.mark.parametrize(
    ("source_kind", "target_kind"),
    [
        ("sqlite", "sqlite"),
        ("sqlite", "postgresql"),
        ("postgresql", "sqlite"),
        ("postgresql", "pooled"),
    ],
)
def test_every_row_is_copied(
    full: str,
    postgres: PostgresServer,
    address: Callable[[str], str],
    source_kind: str,
    target_kind: str,
) -> None:
    source = full
    if source_kind == "postgresql":
        source = postgres.new_database()
        assert copy(full, source).exit_code == 0
    target = address(target_kind)
    result = copy(source, target)
    assert result.exit_code == 0, result.output
    reached = target.partition("?")[0]
    there = contents(reached)
    assert there == contents(full)
    assert all(there.values())
    rows = sum(len(there[table.name]) for table in COPIED)
    *table, said = result.stdout.splitlines()
    assert said == f"{rows} rows copied; every table has the same count and digest on both sides."
    assert re.fullmatch(r"pets +7 +[0-9a-f]{32} *", table[1])


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_the_copy_continues_with_the_next_ids_of_the_source(
    full: str, address: Callable[[str], str], kind: str
) -> None:
    target = address(kind)
    assert copy(full, target).exit_code == 0

    async def go_on(store: Store) -> None:
        pet = await store.write(create_pet(NewPet("New", 1, "sold"), strict_categories=False))
        assert pet.id == LAST_ANIMAL + 1
        await store.write(cancel_order(1, 0, unconditional))
        inventory = await get_inventory(store)
        assert (inventory.available, inventory.pending, inventory.sold) == (2, 1, 3)

    in_store(target, go_on)


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_target_that_assigned_ids_before_does_not_reuse_them(
    tmp_path: Path, address: Callable[[str], str], kind: str
) -> None:
    SqliteStore(tmp_path / "new.db").migrate()
    target = address(kind)
    store_at(target, 10_000).migrate()

    async def add(store: Store) -> None:
        pet = await store.write(create_pet(NewPet("Mine", 1), strict_categories=False))
        assert pet.id == next(ids)

    ids = iter((1, 2))
    in_store(target, add)
    for table in ("pets", "events"):
        query(target, f"DELETE FROM {table}")  # noqa: S608 - a name
    assert copy(f"sqlite:///{tmp_path / 'new.db'}", target).exit_code == 0
    in_store(target, add)


def test_a_copy_has_the_indexes_and_triggers_of_a_new_store(full: str, database: Path) -> None:
    assert copy(full, f"sqlite:///{database}").exit_code == 0
    schema = "SELECT type, name, sql FROM sqlite_schema ORDER BY name"
    assert query(f"sqlite:///{database}", schema) == query(full, schema)


def test_the_copy_updates_the_statistics_of_postgresql(full: str, postgres_url: str) -> None:
    assert copy(full, postgres_url).exit_code == 0
    counted = "SELECT reltuples::int FROM pg_class WHERE relname = 'pets'"
    assert query(postgres_url, counted) == [(7,)]


def test_every_copied_table_has_the_same_columns_in_both_databases(
    full: str, postgres_url: str
) -> None:
    copied = {table.name for table in COPIED}
    apart = {"petstore_schema", "sqlite_sequence"} | {each.name for each in TABLES} - copied
    in_sqlite, in_postgres = (
        {table: columns for table, columns in columns_of(database).items() if table not in apart}
        for database in (full, postgres_url)
    )
    assert set(in_sqlite) == copied
    assert in_sqlite == in_postgres


def test_a_row_that_the_target_cannot_store_leaves_it_empty(full: str, postgres_url: str) -> None:
    query(full, "INSERT INTO usage VALUES (1, 1, 1)")
    query(full, "UPDATE api_key_events SET actor = 'a' || char(0) || 'b'")
    words = refused(full, postgres_url)
    assert words == 'PostgreSQL: invalid byte sequence for encoding "UTF8": 0x00 (SQLSTATE 22021)'
    assert only_the_revision(contents(postgres_url))


def test_a_broken_reference_leaves_the_target_empty(full: str, database: Path) -> None:
    query(full, "PRAGMA foreign_keys = off; INSERT INTO usage VALUES (99, 1, 1)")
    words = refused(full, f"sqlite:///{database}")
    assert words == f"{database}: FOREIGN KEY constraint failed"
    assert only_the_revision(contents(f"sqlite:///{database}"))


def test_a_full_disk_leaves_the_target_empty(full: str, database: Path) -> None:
    SqliteStore(database).migrate()
    with full_disk():
        assert refused(full, f"sqlite:///{database}") == f"{database}: disk I/O error"
    assert only_the_revision(contents(f"sqlite:///{database}"))
    assert copy(full, f"sqlite:///{database}").exit_code == 0


@pytest.mark.parametrize("lost", ["source", "target"])
def test_a_lost_connection_leaves_the_target_empty(
    full: str, postgres: PostgresServer, postgres_url: str, lost: str
) -> None:
    source = postgres.new_database()
    assert copy(full, source).exit_code == 0
    database = database_name({"source": source, "target": postgres_url}[lost])

    def cut(_: int, __: int) -> None:
        postgres.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"  # noqa: S608 - a name
            f" WHERE datname = '{database}'"
        )

    async def run() -> None:
        async with (
            open_postgres(source, to_fill=False) as sending,
            open_postgres(postgres_url, to_fill=True) as receiving,
        ):
            await copy_store(sending, receiving, cut)

    with pytest.raises(Unavailable, match="PostgreSQL: "):
        asyncio.run(run())
    assert only_the_revision(contents(postgres_url))
    assert copy(source, postgres_url).exit_code == 0


RECORD = (
    "INSERT INTO events_outbox (id, type, at, resource, data)"
    " VALUES ('{}', 'pet.created', 1, 'pet/1', '{{}}');"
)


def test_unpublished_events_are_copied_with_the_next_sequences(
    postgres: PostgresServer, postgres_url: str, database: Path
) -> None:
    name, target = database_name(postgres_url), f"sqlite:///{database}"
    SqliteStore(database).migrate()
    postgres.sql(
        "INSERT INTO events (sequence, id, type, at, resource, data)"
        " VALUES (7, 'published', 'pet.created', 1, 'pet/1', '{}')",
        name,
    )
    with postgres.transaction(name, RECORD.format("in progress")):
        begun = Psql(postgres.psql(name))
        begun.run(f"BEGIN; {RECORD.format('begun')}")
        postgres.sql(RECORD.format("between"), name)
        begun.close(f"{RECORD.format('ended')} COMMIT;\n")
        asyncio.run(copied(postgres_url, database))
    assert query(target, "SELECT sequence, id FROM events ORDER BY sequence") == [
        (7, "published"),
        (8, "between"),
        (9, "begun"),
        (10, "ended"),
    ]


async def copied(source: str, target: Path) -> None:
    """Copy a store as it is, without publishing its events."""
    async with (
        open_postgres(source, to_fill=False) as sending,
        open_sqlite(target, to_fill=True) as receiving,
    ):
        await copy_store(sending, receiving, lambda *_: None)


def test_a_copy_that_differs_from_its_source_is_rolled_back(
    full: str, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    SqliteStore(database).migrate()

    async def run() -> None:
        async with (
            open_sqlite(Path(full.removeprefix("sqlite:///")), to_fill=False) as source,
            open_sqlite(database, to_fill=True) as target,
        ):
            add = target.add

            async def add_all_but_one_animal(table: CopiedTable, rows: Sequence[Row]) -> None:
                await add(table, rows[:-1] if table.name == "pets" else rows)

            monkeypatch.setattr(target, "add", add_all_but_one_animal)
            await copy_store(source, target, lambda *_: None)

    words = r"pets did not arrive as it was sent: 7 rows .* were sent, 6 with .* nothing was copied"
    with pytest.raises(InternalError, match=words):
        asyncio.run(run())
    assert only_the_revision(contents(f"sqlite:///{database}"))


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_changes_of_the_source_during_the_copy_are_not_copied(
    full: str, tmp_path: Path, postgres: PostgresServer, kind: str
) -> None:
    source = full
    if kind == "postgresql":
        source = postgres.new_database()
        assert copy(full, source).exit_code == 0
    before = contents(source)
    target = tmp_path / "target.db"
    SqliteStore(target).migrate()
    changes = iter(("DELETE FROM orders", "UPDATE pets SET name = 'changed'"))

    def change(_: int, __: int) -> None:
        if sql := next(changes, None):
            if is_postgres(source):
                postgres.sql(sql, database_name(source))
            else:
                query(source, sql)

    async def run() -> None:
        opened = (
            open_postgres(source, to_fill=False)
            if is_postgres(source)
            else open_sqlite(Path(full.removeprefix("sqlite:///")), to_fill=False)
        )
        async with opened as sending, open_sqlite(target, to_fill=True) as receiving:
            await copy_store(sending, receiving, change)

    asyncio.run(run())
    assert contents(f"sqlite:///{target}") == before
    assert contents(source)["orders"] == []


def test_a_store_in_use_is_copied_as_it_was_at_one_moment(
    start: StartServer, postgres_url: str
) -> None:
    server = start()
    with Buyers(server, server.issue()) as buyers:
        assert within(30, lambda: len(buyers.orders) > 20)
        pets_before, orders_before = list(buyers.pets), list(buyers.orders)
        made = copy(server.database, postgres_url)
        assert made.exit_code == 0, made.output
        buyers.order_more(1)
    assert 503 not in buyers.statuses
    assert_of_one_moment(contents(postgres_url), pets_before, orders_before)


@pytest.mark.parametrize(
    ("kind", "end"),
    [("postgresql", signal.SIGKILL), ("sqlite", signal.SIGKILL), ("sqlite", signal.SIGINT)],
)
def test_an_interrupted_copy_leaves_nothing_and_can_be_run_again(
    full: str, tmp_path: Path, address: Callable[[str], str], kind: str, end: signal.Signals
) -> None:
    query(
        full,
        "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40000)"
        " INSERT INTO pets (name, category_id) SELECT 'animal ' || i, i FROM n",
    )
    target = address(kind)
    with Terminal("copy", "--from", full, "--to", target, cwd=tmp_path) as terminal:
        assert within(30, lambda: re.search(r" [1-9][0-9]?% ", terminal.text)), terminal.text
        terminal.process.send_signal(end)
        assert terminal.wait() == (1 if end == signal.SIGINT else -end)
    assert ("Error: interrupted: nothing was copied" in terminal.text) == (end == signal.SIGINT)
    assert only_the_revision(contents(target))
    shown = shown_on_terminal("copy", "--from", full, "--to", target)
    assert shown.status == 0
    assert "Copying" in shown.text
    assert "100%" in shown.text
    assert "rows copied; every table" in shown.text
    assert query(target, "SELECT count(*) FROM pets") == [(40_007,)]


def test_database_urls_can_come_from_the_environment(full: str, database: Path) -> None:
    addresses = {"PETSTORE_FROM": full, "PETSTORE_TO": f"sqlite:///{database}"}
    copied = CliRunner().invoke(main, ["copy"], env=addresses)
    assert (copied.exit_code, copied.stderr) == (0, "")
    assert contents(f"sqlite:///{database}") == contents(full)


def only_the_revision(there: dict[str, list[Row]]) -> bool:
    """Return whether a store is as it was made."""
    return [name for name, rows in there.items() if rows] == ["api_key_revision"]


def in_store(database: str, action: Callable[[Store], Awaitable[None]]) -> None:
    """Do something in a store."""

    async def run() -> None:
        store = store_at(database, 10_000)
        await store.open()
        try:
            await action(store)
        finally:
            await store.close()

    asyncio.run(run())
