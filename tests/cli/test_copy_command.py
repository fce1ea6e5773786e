"""``petstore copy``: a whole store in PostgreSQL, or nothing of it."""

import asyncio
import re
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from click.testing import Result

from petstore.databases.contract import Row, Store
from petstore.databases.sqlite import SqliteStore
from petstore.databases.store_copies import COPIED, copy_store
from petstore.errors import InternalError
from petstore.events.store import Change
from petstore.orders.store import cancel_order
from petstore.pets.model import NewPet
from petstore.pets.store import get_inventory
from petstore.settings import sqlite_path
from support.changes import create_pet
from support.full_stores import PETS, contents, make_full_store, query
from support.postgres import PostgresServer, database_name
from support.shop import Shop
from support.stores import open_store
from support.terminal import Terminal, shown_on_terminal
from support.waiting import within


def copy(source: str, target: str) -> Result:
    return Shop("", "")("copy", "--from", source, "--to", target)


def refused(source: str, target: str, status: int = 1) -> str:
    return Shop("", "").fail("copy", "--from", source, "--to", target, status=status)


@pytest.fixture
def full(tmp_path: Path) -> str:
    """The address of a SQLite store with something in every table."""
    path = tmp_path / "full.db"
    make_full_store(path)
    return f"sqlite:///{path}"


@pytest.mark.parametrize(
    ("option", "url", "expected"),
    [
        ("--from", "mysql://root:secret@host/x", "expected sqlite:///relative.db"),
        ("--from", "postgresql://db/shop", "expected a SQLite file"),
        ("--to", "mysql://root:secret@host/x", "expected postgresql://user@host/name"),
        ("--to", "sqlite:///other.db", "petstore backup copies a store to a file"),
    ],
)
def test_an_invalid_database_is_refused(full: str, option: str, url: str, expected: str) -> None:
    addresses = {"--from": full, "--to": "postgresql://db/shop", option: url}
    words = refused(addresses["--from"], addresses["--to"], status=2)
    assert words.startswith(f"Invalid value for '{option}'")
    assert expected in words
    assert "secret" not in words


def test_a_password_is_never_shown(full: str, postgres: PostgresServer) -> None:
    target = postgres.url("nowhere").replace("petstore@", "petstore:geheim@")
    for result in (copy(full, target), copy(target, full), copy(full, target.replace("@", "/x@"))):
        assert result.exit_code in {1, 2}
        assert "geheim" not in result.output


@pytest.mark.parametrize("options", ["", "?pgbouncer=true"])
def test_every_row_is_copied_and_the_next_ids_follow(
    full: str, postgres: PostgresServer, options: str
) -> None:
    before = contents(full)
    # What others added to the source stays there.
    query(full, "ALTER TABLE usage ADD COLUMN remark TEXT; CREATE TABLE _litestream_seq (id)")
    reached = postgres.new_database()
    result = copy(full, reached + options)
    assert result.exit_code == 0, result.output
    there = contents(reached)
    assert there == before
    assert all(there.values())
    rows = sum(len(there[table.name]) for table in COPIED)
    *table, said = result.stdout.splitlines()
    assert said == f"{rows} rows copied; every table has the same count and digest on both sides."
    assert re.fullmatch(r"pets +7 +[0-9a-f]{32} *", table[1])

    async def use(store: Store) -> None:
        pet = await store.write(create_pet(NewPet("New", 1, "sold"), strict_categories=False))
        assert pet.id == len(PETS) + 3  # one was deleted, one imported
        await store.write(cancel_order(Change(0), 1))
        inventory = await get_inventory(store)
        assert (inventory.available, inventory.pending, inventory.sold) == (2, 1, 3)

    in_store(reached, use)


def test_a_target_with_rows_is_refused_and_the_ids_of_deleted_ones_are_not_reused(
    full: str, tmp_path: Path, postgres_url: str
) -> None:
    async def add(store: Store) -> None:
        pet = await store.write(create_pet(NewPet("Mine", 1), strict_categories=False))
        assert pet.id == next(ids)

    ids = iter((1, 2))
    in_store(postgres_url, add)
    before = contents(postgres_url)
    assert refused(full, postgres_url).startswith("the target is not empty: it has rows in pets")
    assert contents(postgres_url) == before
    for table in ("pets", "pet_words_queue", "events"):
        query(postgres_url, f"DELETE FROM {table}")  # noqa: S608 - a name
    SqliteStore(tmp_path / "new.db").migrate()
    assert copy(f"sqlite:///{tmp_path / 'new.db'}", postgres_url).exit_code == 0
    in_store(postgres_url, add)


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        (
            "INSERT INTO usage VALUES (1, 1, 1); UPDATE events SET actor = 'a' || char(0) || 'b'",
            'PostgreSQL: invalid byte sequence for encoding "UTF8": 0x00 (SQLSTATE 22021)',
        ),
        (
            "PRAGMA foreign_keys = off; INSERT INTO usage VALUES (99, 1, 1)",
            "violates foreign key constraint",
        ),
    ],
)
def test_a_row_that_the_target_cannot_store_leaves_it_empty(
    full: str, postgres_url: str, sql: str, reason: str
) -> None:
    query(full, sql)
    assert reason in refused(full, postgres_url)
    assert only_the_revision(contents(postgres_url))


def test_a_copy_that_differs_from_its_source_is_rolled_back(
    full: str, postgres: PostgresServer, postgres_url: str
) -> None:
    postgres.sql(
        "CREATE FUNCTION skip() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;"
        " CREATE TRIGGER skip BEFORE INSERT ON orders FOR EACH ROW WHEN (NEW.id = 1)"
        " EXECUTE FUNCTION skip()",
        database_name(postgres_url),
    )
    words = r"orders did not arrive as it was sent: .* nothing was copied"
    with pytest.raises(InternalError, match=words):
        asyncio.run(copy_store(sqlite_path(full), postgres_url, lambda *_: None))
    assert only_the_revision(contents(postgres_url))


def test_changes_of_the_source_during_the_copy_are_not_copied(full: str, postgres_url: str) -> None:
    before = contents(full)
    changes = iter(("DELETE FROM orders", "UPDATE pets SET name = 'changed'"))

    def change(_: int, __: int) -> None:
        if sql := next(changes, None):
            query(full, sql)

    asyncio.run(copy_store(sqlite_path(full), postgres_url, change))
    assert contents(postgres_url) == before
    assert contents(full)["orders"] == []


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_an_interrupted_copy_leaves_nothing_and_can_be_run_again(
    full: str, tmp_path: Path, postgres_url: str, end: signal.Signals
) -> None:
    query(
        full,
        "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40000)"
        " INSERT INTO pets (name, category_id) SELECT 'pet ' || i, i FROM n",
    )
    with Terminal("copy", "--from", full, "--to", postgres_url, cwd=tmp_path) as terminal:
        assert within(30, lambda: re.search(r": [1-9][0-9,]* of ", terminal.text)), terminal.text
        terminal.process.send_signal(end)
        assert terminal.wait() == (130 if end == signal.SIGINT else -end)
    assert ("Error: interrupted: nothing was copied" in terminal.text) == (end == signal.SIGINT)
    assert only_the_revision(contents(postgres_url))
    shown = shown_on_terminal("copy", "--from", full, "--to", postgres_url)
    assert re.search(r"Copying: ([0-9,]+) of \1\n", shown.text)
    assert "rows copied; every table" in shown.text
    assert query(postgres_url, "SELECT count(*) FROM pets") == [(40_007,)]


def only_the_revision(there: dict[str, list[Row]]) -> bool:
    """Return whether a store is as it was made."""
    return [name for name, rows in there.items() if rows] == ["api_key_revision"]


def in_store(database: str, action: Callable[[Store], Awaitable[None]]) -> None:
    async def run() -> None:
        async with open_store(database) as store:
            await action(store)

    asyncio.run(run())
