"""Every statement finds its rows along an index, so what it costs does not grow with the store."""

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import apsw
import pytest

from petstore.clock import DAY
from petstore.databases import api_keys, categories, idempotency_records, orders, pet_imports, pets
from petstore.databases.contract import Statement, Unit
from petstore.databases.rate_limits import select_usage
from petstore.databases.sqlite import SqliteStore
from petstore.domain.api_keys import ApiKey
from petstore.domain.categories import Category, NewCategory
from petstore.domain.orders import NewOrder, OrderFilter, OrderStatus
from petstore.domain.pets import Pet, PetFilter, PetStatus

FAR = 3_500
PAGE = 21
HUNDRED = tuple(range(FAR + 200, FAR, -2))
NOW = 20_000 * DAY

NUMBERS = (
    "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 4000)"
)
FILL = {
    "pets (name, category_id, status)": "'Bella', n % 5, iif(n % 3, 'sold', 'available')",
    "categories (name, name_key)": "'Kind ' || n, 'kind ' || n",
    "orders (pet_id, status, placed_at)": "n % 5, 'cancelled', 0",
    "orders (pet_id, status, placed_at, reserved_until)": "n, 'placed', 0, n",
    "api_keys (name, plan, scopes, environment, created_at)": (
        "'Till', 'free', 'keys:admin', iif(n % 3, 'production', 'staging'), 0"
    ),
    "api_key_tokens (digest, key_id)": "randomblob(32), n",
    "rate_limits": "n, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0",
    "usage": "1 + n % 3, n, 7",
    "api_key_events (key_id, at, actor, action, changes)": "1 + n % 3, 0, 'key 1', 'changed', '{}'",
    "kept_answers": "1 + n % 3, 'key ' || n, x'', x'', n",
}

PET_STATUSES: tuple[PetStatus | None, ...] = (None, "sold")
PET_FILTERS = [
    PetFilter(status, category, ids)
    for status, category, ids in product(PET_STATUSES, (None, 3), (None, (5,), HUNDRED))
]
ORDER_STATUSES: tuple[OrderStatus | None, ...] = (None, "cancelled")
ORDER_FILTERS = [
    OrderFilter(status, pet_id) for status, pet_id in product(ORDER_STATUSES, (None, 3))
]
LISTS: dict[str, Any] = {
    **{
        f"pets-{number}": lambda after, wanted=wanted: pets.select_pets(wanted, after, PAGE)
        for number, wanted in enumerate(PET_FILTERS)
    },
    **{
        f"orders-{number}": lambda after, wanted=wanted: orders.select_orders(wanted, after, PAGE)
        for number, wanted in enumerate(ORDER_FILTERS)
    },
    "categories": lambda after: categories.select_categories(after, PAGE),
    "keys": lambda after: api_keys.select_keys(None, after, PAGE),
    "keys-production": lambda after: api_keys.select_keys("production", after, PAGE),
    "events": lambda after: api_keys.select_events(1, after, PAGE),
}

PET = Pet(7, "Bella", 2, "sold")
CATEGORY = Category(7, "Kind 7")
ORDER = orders.order_of((7, 7, "cancelled", None, 0, None))
KEY = ApiKey(7, "Till", "free", None, None, frozenset(), "production", 0, None, None, None)


def statements_of(unit: Unit[Any]) -> Iterator[Statement]:
    """Return the statements of a unit whose every statement finds one row."""
    rows: Any = None
    try:
        while True:
            yield unit.send(rows)
            rows = [(0, None)]
    except StopIteration:
        pass


BY_KEY: dict[str, Statement] = {
    "select_pet": pets.select_pet(7),
    "select_pet_of_category": pets.select_pet_of_category(2),
    "hold_pet": pets.hold_pet(7),
    "update_pet": pets.update_pet(PET),
    "move_pet": pets.move_pet(7, "sold"),
    "move_pet-after": pets.move_pet(7, "sold", after="available"),
    "delete_pet": pets.delete_pet(7),
    "select_category": categories.select_category(7),
    "select_category_named": categories.select_category_named("Kind 7"),
    "hold_category": categories.hold_category(7),
    "keep_category": categories.keep_category(7),
    "update_category": categories.update_category(CATEGORY),
    "delete_category": categories.delete_category(7),
    "select_order": orders.select_order(7),
    "select_open_order": orders.select_open_order(7),
    "hold_order": orders.hold_order(7),
    "update_order": orders.update_order(ORDER),
    "cancel_lapsed": orders.cancel_lapsed(5, 256),
    "cancel_if_lapsed": orders.cancel_if_lapsed(7, 7),
    "select_key": api_keys.select_key(7),
    "select_key_by_digest": api_keys.select_key_by_digest(b""),
    "update_key": api_keys.update_key(KEY),
    "end_tokens": api_keys.end_tokens(7, NOW),
    "select_record": idempotency_records.select_record(2, "key 7"),
    "complete_record": idempotency_records.complete_record(2, "key 7", b""),
    "delete_records": idempotency_records.delete_records(5, 1000),
    "select_usage": select_usage(7, 20_000),
    **{
        f"begin_import-{number}": statement
        for number, statement in enumerate(statements_of(pet_imports.begin_import(b"", again=True)))
        if not statement.sql.startswith("INSERT")
    },
    "import_batch": next(statements_of(pet_imports.import_batch(b"", range(1), [], None))),
}
INSERTS: dict[str, Statement] = {
    "insert_category": categories.insert_category(NewCategory("New")),
    "insert_order": orders.insert_order(NewOrder(9_999), 0, None),
    "insert_token": api_keys.insert_token(b"token", 7),
    "insert_event": api_keys.insert_event(7, 0, "key 1", "changed", "{}"),
    "claim": idempotency_records.claim(2, "key 7", b"", 0, 0),
}


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[apsw.Connection]:
    """A connection to a store with 4,000 of everything."""
    path: Path = tmp_path_factory.mktemp("plans") / "petstore.db"
    SqliteStore(path).migrate()
    connection = apsw.Connection(str(path))
    connection.pragma("foreign_keys", "on")
    with connection:
        for table, values in FILL.items():
            connection.execute(f"INSERT INTO {table} {NUMBERS} SELECT {values} FROM numbers")  # noqa: S608
    yield connection
    connection.close()


def plan(connection: apsw.Connection, statement: Statement) -> list[str]:
    rows = connection.execute("EXPLAIN QUERY PLAN " + statement.sql, statement.parameters)
    return [str(detail) for *_, detail in rows]


def steps(connection: apsw.Connection, statement: Statement) -> int:
    """Count the steps that SQLite's virtual machine takes; what it changes is undone."""
    count = 0

    def step() -> bool:
        nonlocal count
        count += 1
        return False

    connection.execute("BEGIN")
    connection.set_progress_handler(step, 1)
    connection.execute(statement.sql, statement.parameters).fetchall()
    connection.set_progress_handler(None)
    connection.execute("ROLLBACK")
    return count


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("after", [None, FAR])
def test_no_page_is_sorted_or_searched_row_by_row(
    connection: apsw.Connection, name: str, after: int | None
) -> None:
    statement = LISTS[name](after)
    details = plan(connection, statement)
    if " WHERE " in statement.sql:
        assert details[0].startswith("SEARCH "), details
    else:
        assert details[0].startswith("SCAN "), details  # the first rows of all, in order of id
    if "JOIN" in statement.sql:
        assert details.pop().startswith("SEARCH r USING INTEGER PRIMARY KEY"), details
    assert len(details) == 1, details


@pytest.mark.parametrize("name", LISTS)
def test_a_page_far_away_costs_what_the_first_costs(connection: apsw.Connection, name: str) -> None:
    first = steps(connection, LISTS[name](None))
    assert steps(connection, LISTS[name](FAR)) < 1.2 * first


@pytest.mark.parametrize(
    ("statement", "columns"),
    [
        (pets.select_pets(PetFilter("sold", 3), FAR, PAGE), "category_id=? AND status=?"),
        (orders.select_orders(OrderFilter("cancelled", 3), FAR, PAGE), "pet_id=? AND status=?"),
    ],
    ids=["pets", "orders"],
)
def test_two_filters_are_searched_at_once(
    connection: apsw.Connection, statement: Statement, columns: str
) -> None:
    (detail,) = plan(connection, statement)
    assert f"({columns} AND rowid>?)" in detail


def test_a_hundred_ids_cost_a_hundred_searches(connection: apsw.Connection) -> None:
    wanted = pets.select_pets(PetFilter(ids=HUNDRED), None, 101)
    assert steps(connection, wanted) < 20 * len(HUNDRED)


@pytest.mark.parametrize("name", BY_KEY)
def test_what_is_looked_up_or_changed_is_searched(connection: apsw.Connection, name: str) -> None:
    details = plan(connection, BY_KEY[name])
    assert any(detail.startswith("SEARCH ") for detail in details), details
    assert not any("SCAN" in detail or "TEMP B-TREE" in detail for detail in details), details


@pytest.mark.parametrize("name", [*BY_KEY, *INSERTS])
def test_what_is_looked_up_or_changed_costs_little(connection: apsw.Connection, name: str) -> None:
    assert steps(connection, {**BY_KEY, **INSERTS}[name]) < 600


def test_the_next_lapse_is_the_first_entry_of_an_index(connection: apsw.Connection) -> None:
    (detail,) = plan(connection, orders.SELECT_NEXT_LAPSE)
    assert "USING COVERING INDEX orders_by_end" in detail
    assert steps(connection, orders.SELECT_NEXT_LAPSE) < 20


def test_the_inventory_is_not_counted(connection: apsw.Connection) -> None:
    assert steps(connection, pets.SELECT_INVENTORY) < 100


@pytest.mark.parametrize("statement", [api_keys.SELECT_REVISION, api_keys.NOTE_CHANGE])
def test_the_revision_is_one_row(connection: apsw.Connection, statement: Statement) -> None:
    assert steps(connection, statement) < 30
