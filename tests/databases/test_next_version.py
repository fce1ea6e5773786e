"""The next version beside this one, on the same database."""

import asyncio
from pathlib import Path

import pytest

from petstore.backends import store_at
from petstore.databases.contract import Statement
from petstore.databases.migrations import scripts
from petstore.errors import UnusableDatabase
from petstore.events.store import Change
from petstore.orders.model import OrderCreate
from petstore.orders.store import place_order
from petstore.pets.model import NewPet
from petstore.pets.store import get_pet
from support.changes import NOW, create_pet
from support.full_stores import columns_of, contents, query
from support.next_version import MIGRATION, become_next_version
from support.other_processes import migrate_at_once
from support.stores import open_store

pytestmark = pytest.mark.each_database

VERSION = len(scripts("sqlite"))
BELLA = NewPet("Bella", 1, "available")
MIGRATE = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
import pytest
from petstore.backends import store_at
from support.next_version import become_next_version
become_next_version(pytest.MonkeyPatch())
sys.stdin.read()
store_at(sys.argv[1], 20_000).migrate()
"""


@pytest.fixture
def address(database_kind: str, request: pytest.FixtureRequest) -> str:
    if database_kind == "sqlite":
        found = f"sqlite:///{request.getfixturevalue('tmp_path')}/petstore.db"
    else:
        found = request.getfixturevalue("postgres_url")
    asyncio.run(add_pet(found))
    return found


async def add_pet(address: str) -> None:
    async with open_store(address) as store:
        await store.write(create_pet(BELLA))


def test_the_next_version_keeps_all_rows(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = contents(address)
    migrate_at_once(MIGRATE, address)
    after = contents(address)
    assert after | {"pets": before["pets"]} == before
    become_next_version(monkeypatch)
    store_at(address, 10_000).migrate()
    assert query(address, "SELECT name, added_later FROM pets") == [("Bella", "Bella")]


def test_a_migration_that_fails_changes_nothing(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = columns_of(address), contents(address)
    become_next_version(monkeypatch, f"{MIGRATION}; CREATE TABLE orders (mine TEXT)")
    with pytest.raises(UnusableDatabase, match="orders"):
        store_at(address, 10_000).migrate()
    assert (columns_of(address), contents(address)) == before


def test_a_running_process_of_this_version_works_on_but_none_starts(address: str) -> None:
    async def sell() -> None:
        async with open_store(address) as store:
            await asyncio.to_thread(migrate_at_once, MIGRATE, address)
            pet = await store.write(create_pet(BELLA))
            await store.write(place_order(Change(NOW), OrderCreate(pet.id)))
            assert (await get_pet(store, pet.id)).status == "pending"
            assert len(await store.read(Statement("SELECT added_later FROM pets"))) == 2

    asyncio.run(sell())
    newer = f"schema version {VERSION + 1}, made by a newer"
    with pytest.raises(UnusableDatabase, match=newer):
        store_at(address, 10_000).migrate()
