"""Orders and animals that a process of version 2.0.0 changes beside newer ones, or left behind."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from petstore.clock import DAY, HOUR, system_clock
from petstore.databases.contract import Statement, Store, Unit
from petstore.databases.migrations import APPLICATION_ID, scripts
from petstore.databases.postgres import PostgresStore
from petstore.databases.sqlite import SqliteStore
from petstore.keys.store import unconditional
from petstore.orders.model import OrderCreate, OrderPatch
from petstore.orders.store import place_order, update_order
from petstore.pets.model import NewPet
from petstore.pets.store import get_inventory_by_category
from support.changes import create_pet
from support.postgres import PostgresServer, database_name
from support.stores import do, open_store

pytestmark = pytest.mark.anyio

BEFORE = 15
# What version 2.0.0 did.
UPDATE = (
    "UPDATE orders SET status = ?1, ship_date = ?2,"
    " reserved_until = CASE WHEN ?1 = 'placed' THEN reserved_until END WHERE id = ?3"
)
LAPSE = "UPDATE orders SET status = 'cancelled', reserved_until = NULL WHERE id IN (?1)"
INSERT = (
    "INSERT INTO orders (pet_id, status, ship_date, placed_at, reserved_until)"
    " VALUES (?1, 'placed', ?2, ?3, ?4)"
)
TIMES = Statement("SELECT approved_at, delivered_at, cancelled_at, category_id FROM orders")
SHOP = """
    INSERT INTO pets (name, category_id, status) VALUES ('Bella', 7, 'sold'), ('Rex', 7, 'sold'),
        ('Ada', 9, 'available'), ('Max', 9, NULL);
    INSERT INTO orders (pet_id, status, placed_at) VALUES (1, 'delivered', 5), (2, 'cancelled', 6),
        (2, 'cancelled', 7), (2, 'delivered', 8), (3, 'placed', 9);
    INSERT INTO events (sequence, id, type, at, resource, data) VALUES
        (1, 'a', 'order.approved', 15, 'order/1', '{}'), (2, 'b', 'pet.updated', 16, 'pet/1', '{}'),
        (3, 'c', 'order.delivered', 25, 'order/1', '{}'),
        (4, 'd', 'order.cancelled', 35, 'order/2', '{}'),
        (5, 'e', 'order.lapsed', 45, 'order/3', '{}'),
        (6, 'f', 'order.placed', 46, 'order/5', '{}');
"""


def old_sqlite(path: Path) -> str:
    with closing(apsw.Connection(str(path))) as connection:
        for script in scripts("sqlite")[:BEFORE]:
            connection.execute(script)
        connection.execute(SHOP)
        connection.pragma("application_id", APPLICATION_ID)
        connection.pragma("user_version", BEFORE)
        connection.pragma("journal_mode", "wal")
    SqliteStore(path).migrate()
    return f"sqlite:///{path}"


def old_postgres(server: PostgresServer) -> str:
    url = server.new_database()
    for script in scripts("postgres")[:BEFORE]:
        server.sql(script, database_name(url))
    server.sql(
        f"{SHOP} CREATE TABLE petstore_schema AS SELECT {BEFORE} AS version", database_name(url)
    )
    PostgresStore(url).migrate()
    return url


@pytest.fixture
def migrated(database_kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a store of the schema before, which was just brought up to date."""
    if database_kind == "sqlite":
        return old_sqlite(tmp_path / "old.db")
    return old_postgres(request.getfixturevalue("postgres"))


@pytest.mark.each_database
async def test_a_migrated_order_has_the_times_that_its_events_tell(migrated: str) -> None:
    async with open_store(migrated) as store:
        assert await store.read(Statement(f"{TIMES.sql} ORDER BY id")) == [
            (15, 25, None, None),
            (None, None, 35, None),
            (None, None, 45, None),
            (None, None, None, None),  # its events are no longer kept
            (None, None, None, None),
        ]


@pytest.mark.each_database
async def test_the_migration_counts_the_animals_that_are_there(migrated: str) -> None:
    async with open_store(migrated) as store:
        found = await get_inventory_by_category(store)
        assert [(row.category_id, row.available, row.sold) for row in found.categories or []] == [
            *((7, 0, 2), (9, 1, 0)),
        ]


@pytest.fixture
async def pet_id(store: Store) -> int:
    """An animal of category 7 that is available."""
    return (await store.write(create_pet(NewPet("Bella", 7, "available")))).id


def old_move(status: str) -> Unit[Any]:
    return do(UPDATE, status, None, 1)


async def times(store: Store) -> list[Any]:
    ((*found, category),) = await store.read(TIMES)
    now = system_clock()
    return [value if value is None or value < now - HOUR else "now" for value in found] + [category]


@pytest.mark.each_database
@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        (["approved"], ["now", None, None, None]),
        (["approved", "delivered"], ["now", "now", None, 7]),
        (["approved", "cancelled"], ["now", None, "now", None]),
        (["cancelled"], [None, None, "now", None]),
        (["placed"], [None, None, None, None]),
    ],
)
async def test_an_older_process_leaves_the_times_of_its_moves(
    store: Store, pet_id: int, statuses: list[str], expected: list[Any]
) -> None:
    await store.write(do(INSERT, pet_id, None, 30_000, system_clock() + DAY))
    for status in statuses:
        await store.write(old_move(status))
    assert await times(store) == expected


@pytest.mark.each_database
async def test_an_order_that_an_older_process_lets_lapse_was_cancelled_at_that_time(
    store: Store, pet_id: int
) -> None:
    await store.write(do(INSERT, pet_id, None, 30_000, 90_000))
    await store.write(do(LAPSE, 1))
    assert await times(store) == [None, None, 90_000, None]


@pytest.mark.each_database
@pytest.mark.parametrize(
    ("status", "expected"),
    [("approved", [5, None, None, None]), ("cancelled", [None, None, 5, None])],
)
async def test_a_time_that_is_known_is_kept(
    store: Store, pet_id: int, status: Any, expected: list[Any]
) -> None:
    await store.write(place_order(OrderCreate(pet_id), 0, 0))
    await store.write(update_order(1, OrderPatch(status=status), 5, unconditional))
    assert await times(store) == expected


@pytest.mark.each_database
@pytest.mark.parametrize(
    "change", [lambda: old_move("approved"), lambda: do(UPDATE, "placed", "2030-01-01", 1)]
)
async def test_an_older_process_keeps_what_it_does_not_know(
    store: Store, pet_id: int, change: Callable[[], Unit[Any]]
) -> None:
    new = OrderCreate(pet_id, buyer="Jane", note="Hi", amount=5)
    await store.write(place_order(new, 0, 0))
    await store.write(change())
    rows = await store.read(
        Statement("SELECT buyer, buyer_key, note, amount, currency FROM orders")
    )
    assert rows == [("Jane", "jane", "Hi", 5, "USD")]
