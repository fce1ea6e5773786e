"""A store with something in every table, and what is in the tables of a store."""

import asyncio
import collections
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import apsw
import asyncpg  # type: ignore[import-untyped]

from petstore.categories.model import CategoryCreate
from petstore.clock import DAY, HOUR
from petstore.databases.private_files import create
from petstore.databases.sqlite import SqliteStore
from petstore.databases.store_copies import COPIED
from petstore.events.model import OPERATOR, Author
from petstore.events.store import Change
from petstore.keys.model import KeyFields
from petstore.keys.store import create_key, revoke_key, rotate_key
from petstore.limits.database import StoredRateLimits
from petstore.limits.decide import State
from petstore.orders.model import OrderCreate, OrderPatch
from petstore.orders.store import place_order, update_order
from petstore.people.model import Browser, PersonCreate
from petstore.people.store import add_person, begin_session, create_invitation
from petstore.pets.model import NewPet
from petstore.pets.store import delete_pet
from petstore.settings import is_postgres, sqlite_path
from petstore.usage.counter import Counter
from support.changes import create_category, create_pet
from support.imported import new_import
from support.keys import stored_key
from support.memory_folder import folder_in_memory
from support.stores import do, open_store

NOW = 1_800_000_000_000
GRACE = Author("person/3", "r-1")
PETS = (
    NewPet("Rex", 1, "available"),
    NewPet("日本語 \U0001f407 \"'\\\t\n", -(2**63), "sold"),
    NewPet("Ada", 2**63 - 1),
    NewPet("Bella", 1, "available"),
    NewPet("Oskar", 1, "available"),
    NewPet("Oskar", 1, "pending"),
)


async def fill(store: SqliteStore) -> str:
    """Put something into every table of an empty store; return the token of a key that is valid.

    The last pet was deleted, so no pet has the highest id ever assigned.
    """
    for pet in PETS:
        await store.write(create_pet(pet, strict_categories=False, by=GRACE))
    gone = await store.write(create_pet(NewPet("Gone", 1, "available"), strict_categories=False))
    await store.write(delete_pet(Change(NOW), gone.id))
    await store.write(create_category(CategoryCreate("Dogs", "Loyal")))
    await store.write(create_category(CategoryCreate("Élans")))
    await store.write(place_order(Change(NOW, reservation_minutes=1440), OrderCreate(1)))
    new = OrderCreate(4, buyer="Jäne", note="a\nb", amount=500)
    await store.write(place_order(Change(NOW, currency="EUR"), new))
    for patch in (OrderPatch(status="approved"), OrderPatch(status="delivered")):
        await store.write(update_order(Change(0), 2, patch))
    await store.write(create_pet(NewPet("Imported", 3)))
    token = await _keys(store)
    await StoredRateLimits(store).save(
        [(1, State(day=20_000, day_used=5, banned_until=NOW)), (2, State())]
    )
    await store.write(
        do("INSERT INTO idempotency_records VALUES (1, 'A-b', ?1, ?2, ?3)", b"\0\xff", b"{}", NOW)
    )
    await store.write(new_import(1, b"digest of a file", NOW))
    key = await stored_key(store, 1)
    await store.write(begin_session(key, b"digest of a token", NOW, Browser()))
    await store.write(create_invitation(Change(NOW), 1))
    counter = Counter(store)
    counter.count("deprecated", 1, "getPet", NOW // HOUR, (NOW, b"shop/1", "r1"))
    await counter.save()
    await store.write(do("INSERT INTO feed_start VALUES (1, 1)"))
    await store.write(do("INSERT INTO key_notices VALUES (1, 'banned', ?1, ?1)", NOW))
    await store.write(
        do(
            "INSERT INTO webhooks VALUES (1, 1, 'https://example.com/', '', NULL, ?1,"
            " 1, NULL, 1, NULL, 0, NULL, 0, NULL, NULL, NULL, NULL, NULL, 'production')",
            NOW,
        )
    )
    await store.write(
        do(
            "INSERT INTO webhook_deliveries VALUES (1, 1, 1, 'evt_1', 'pet.created', 'pet/1',"
            " 'failed', ?1, 1, ?1, ?1, ?1, 500, 'no', NULL)",
            NOW,
        )
    )
    return token


async def _keys(store: SqliteStore) -> str:
    me = Change(NOW, OPERATOR)
    new = KeyFields[int]("app", "pro", allowed_networks=("203.0.113.0/24",))
    await store.write(create_key(new, "production", me))
    rotated = await store.write(rotate_key(1, DAY, me))
    await store.write(create_key(new, "production", me))
    await store.write(revoke_key(2, me))
    person = PersonCreate("Grace", "grace@shop.example", "clerk")
    await store.write(add_person(person, me, "production"))
    await store.write(do("UPDATE people SET password = 'no hash'"))
    return rotated.token


def make_full_store(path: Path) -> str:
    """Make a store with something in every table in the file ``path``; return a token."""
    content, token = _full_file()
    with create(path) as file:
        file.write(content)
    return token


@cache
def _full_file() -> tuple[bytes, str]:
    async def run(path: Path) -> str:
        async with open_store(path) as store:
            return await fill(store)

    with folder_in_memory() as folder:
        path = folder / "full.db"
        token = asyncio.run(run(path))
        return path.read_bytes(), token


def contents(database: str) -> dict[str, list[tuple[Any, ...]]]:
    columns = columns_of(database)
    selects = {
        table.name: f"SELECT {', '.join(columns[table.name])} FROM {table.name}"  # noqa: S608
        for table in COPIED
    }
    selects["inventory"] = (
        "SELECT status, CAST(sum(pets) AS BIGINT) FROM inventory"
        " GROUP BY status HAVING sum(pets) <> 0"
    )
    selects["category_inventory"] = (
        "SELECT category_id, CAST(sum(available) AS BIGINT), CAST(sum(pending) AS BIGINT),"
        " CAST(sum(sold) AS BIGINT) FROM category_inventory GROUP BY category_id"
    )
    return {name: sorted(query(database, sql), key=repr) for name, sql in selects.items()}


def assert_of_one_moment(
    there: dict[str, list[tuple[Any, ...]]], pets: list[int], orders: list[int]
) -> None:
    """Check contents that were taken under the load of ``Customers``.

    The ``pets`` and ``orders`` that were acknowledged before are in them, and every pet agrees
    with its order and with the inventory.
    """
    statuses = {number: status for number, *_, status in there["pets"]}
    # The key is first, and the other columns are in alphabetical order: seven follow this one.
    ordered = {row[0]: row[-8] for row in there["orders"]}
    assert set(pets) <= set(statuses)
    assert set(orders) <= set(ordered)
    held = [pet_id for pet_id, status in statuses.items() if status == "pending"]
    assert sorted(ordered.values()) == sorted(held)
    assert dict(there["inventory"]) == collections.Counter(statuses.values())


def query(database: str, sql: str) -> list[tuple[Any, ...]]:
    if not is_postgres(database):
        with closing(apsw.Connection(str(sqlite_path(database)))) as connection:
            return connection.execute(sql).fetchall()

    async def fetch() -> list[tuple[Any, ...]]:
        connection = await asyncpg.connect(database)
        try:
            return [tuple(row) for row in await connection.fetch(sql)]
        finally:
            await connection.close()

    return asyncio.run(fetch())


def columns_of(database: str) -> dict[str, list[str]]:
    """Return the columns of each table of a store: its id, and the others by name."""
    sql = (
        "SELECT table_name::text, column_name::text FROM information_schema.columns"
        " WHERE table_schema = 'public'"
        if is_postgres(database)
        # A table that an FTS5 table keeps its own data in is a shadow.
        else "SELECT t.name, c.name FROM pragma_table_list t, pragma_table_info(t.name) c"
        " WHERE t.schema = 'main' AND t.type <> 'shadow' AND t.name <> 'sqlite_schema'"
    )
    columns: dict[str, list[str]] = {}
    for table, column in sorted(query(database, sql), key=lambda row: (row[1] != "id", row[1])):
        columns.setdefault(table, []).append(column)
    return columns
