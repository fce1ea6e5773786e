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
from support.stores import address_of, open_store

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


@pytest.mark.each_database
def test_a_migration_keeps_all_rows_and_lets_running_processes_work_but_none_start(
    database_kind: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    fixture = "postgres_url" if database_kind == "postgresql" else "database"
    address = address_of(request.getfixturevalue(fixture))
    bella = NewPet("Bella", 1, "available")

    async def use() -> None:
        async with open_store(address) as store:
            await store.write(create_pet(bella))
            before = await asyncio.to_thread(lambda: (columns_of(address), contents(address)))
            with monkeypatch.context() as patch:
                become_next_version(patch, f"{MIGRATION}; CREATE TABLE orders (mine TEXT)")
                with pytest.raises(UnusableDatabase, match="orders"):
                    await asyncio.to_thread(store_at(address, 10_000).migrate)
            after = await asyncio.to_thread(lambda: (columns_of(address), contents(address)))
            assert after == before
            await asyncio.to_thread(migrate_at_once, MIGRATE, address)
            kept = await asyncio.to_thread(contents, address)
            assert kept | {"pets": before[1]["pets"]} == before[1]
            pet = await store.write(create_pet(bella))
            await store.write(place_order(Change(NOW), OrderCreate(pet.id)))
            assert (await get_pet(store, pet.id)).status == "pending"
            added = await store.read(Statement("SELECT added_later FROM pets ORDER BY id"))
            assert added == [("Bella",), (None,)]

    asyncio.run(use())
    newer = f"schema version {len(scripts('sqlite')) + 1}, made by a newer"
    with pytest.raises(UnusableDatabase, match=newer):
        store_at(address, 10_000).migrate()
    become_next_version(monkeypatch)
    store_at(address, 10_000).migrate()
    assert len(query(address, "SELECT id FROM pets")) == 2
