"""Every statement finds its rows along an index, so what it costs does not grow with the store."""

import ast
import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import date, datetime
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import apsw
import pytest
from msgspec import UNSET, UnsetType

import petstore
from petstore.backends import create_limiter
from petstore.categories.model import CategoryCreate, CategoryPatch
from petstore.categories.store import get_category, list_categories, search_categories
from petstore.clock import DAY, utc
from petstore.databases.contract import Row, Statement, Unit
from petstore.databases.postgres import postgres_sql
from petstore.databases.schema import TABLES, prune
from petstore.databases.sqlite import SqliteStore
from petstore.events.changes import RecentChanges
from petstore.events.model import ADMIN_EVENT_TYPES, EVENT_TYPES, SERVICE, Position
from petstore.events.search import EventFilter, read_events
from petstore.events.store import (
    Change,
    newest_position,
    read_event,
    recent_events,
)
from petstore.imports.columns import Cells, ImportSettings
from petstore.imports.model import ImportPreview
from petstore.imports.store import (
    Prepared,
    StoredImport,
    add_rows,
    change_settings,
    count_next_pets,
    delete_import,
    get_import,
    list_imports,
    names_here,
    prepare,
    undo_rows,
)
from petstore.interface.idempotency_records import Attempt, SafeRetries
from petstore.interface.messages import encode_json
from petstore.interface.operations import OPERATIONS
from petstore.keys.model import Caller, new_token, operator
from petstore.keys.notices import KeyNotices
from petstore.keys.store import (
    COLUMNS,
    ApiKeyCache,
    change_key,
    create_key,
    find_key,
    list_keys,
    rotate_key,
    rotate_own_key,
    search_keys,
    values_of,
)
from petstore.limits.database import StoredRateLimits
from petstore.orders.buyers import forget_batch, forget_buyer
from petstore.orders.model import OrderCreate, OrderFilter, OrderPatch, OrderStatus
from petstore.orders.store import (
    Reservations,
    count_orders,
    free_if_lapsed,
    free_lapsed,
    get_order,
    list_delivered,
    list_orders,
    place_order,
    search_orders,
    update_order,
)
from petstore.people.model import Browser
from petstore.people.store import (
    begin_session,
    change_person,
    create_invitation,
    end_sessions,
    find_account,
    find_account_by_login,
    find_invited,
    find_person,
    find_session_in_unit,
    list_devices,
    list_people,
    take_invitation,
)
from petstore.pets.model import NewPet, Pet, PetFilter, PetPatch, PetStatus
from petstore.pets.store import (
    delete_pet,
    get_inventory_by_category,
    get_pet,
    list_pets,
    search_pets,
    update_pet,
)
from petstore.sales.model import day_range
from petstore.sales.store import get_sales
from petstore.settings import Settings
from petstore.usage.counter import Counter
from petstore.usage.operations import deprecated_operations, get_usage
from petstore.webhooks.deliveries import (
    DueDelivery,
    Outcome,
    due_deliveries,
    list_deliveries,
    make_deliveries,
    read_backlog,
    recover,
    recover_batch,
    retry,
    save_progress,
)
from petstore.webhooks.model import WebhookCreate, WebhookPatch
from petstore.webhooks.store import (
    LeasedWebhook,
    active_webhooks,
    change_webhook,
    create_webhook,
    delete_webhook,
    get_webhook,
    has_webhooks,
    list_webhooks,
    rotate_webhook,
)
from support.changes import (
    create_category,
    create_pet,
    delete_category,
    update_category,
)
from support.history import read_feed
from support.imported import new_import
from support.keys import OPERATOR, new_key
from support.manual_clock import ManualClock
from support.postgres import PostgresServer, database_name
from support.rows import order_row, statements_of

FAR = 3_500
PAGE = 20
HUNDRED = tuple(range(FAR + 200, FAR, -2))
NOW = 20_000 * DAY

NUMBERS = (
    "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 4000)"
)
FILL = {
    "pets (name, category_id, status)": "'Bella Old', n % 5, iif(n % 3, 'sold', 'available')",
    "pet_words": "iif(n % 2, 'bel', 'bella'), n",
    "order_words": "'j', n",
    "categories (name, name_key)": "'Kind ' || n, 'kind ' || n",
    "orders (pet_id, status, placed_at)": "n % 5, 'cancelled', 0",
    "orders (pet_id, status, placed_at, reserved_until)": "n, 'placed', n, n",
    "orders (pet_id, status, placed_at, buyer, amount, delivered_at, category_id)": (
        "n % 5, 'delivered', n, 'Jane', 5, n, n % 7"
    ),
    "callers (kind)": "'key'",
    "callers (id, kind)": "n + 6_000, 'person'",
    "api_keys (id, name, plan, scopes, environment, created_at)": (
        "n, 'Till', 'free', 'keys:admin', iif(n % 3, 'production', 'staging'), 0"
    ),
    "people (id, name, login, login_key, role, environment, created_at)": (
        "n, 'Grace', 'login ' || n, 'login ' || n, 'clerk', iif(n % 3, 'production', 'staging'), 0"
    ),
    "api_key_tokens (digest, key_id, expires_at)": "randomblob(32), n, n",
    "rate_limits": "n, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0",
    "usage": "1 + n % 3, n, 7",
    "events (id, type, at, resource, data, actor, key_id)": (
        "printf('evt_%024x', n), iif(n % 3, 'pet.created', 'order.placed'), n,"
        " iif(n % 2, 'pet/7', 'pet/' || n), '{}', iif(n % 2, 'key/7', 'person/' || n),"
        " iif(n % 100, NULL, -1)"
    ),
    "webhooks (key_id, url, types, created_at, enabled, secret_version, position, failures,"
    " environment)": ("1 + n % 3, 'https://shop.example', '', 0, 1, 1, 4000, 0, 'production'"),
    "webhook_deliveries (webhook_id, sequence, event_id, type, resource, state, created_at,"
    " attempts, due_at)": (
        "1 + n % 3, n, 'evt_' || n, 'pet.created', 'pet/7', iif(n % 2, 'pending', 'failed'),"
        " n, 0, n"
    ),
    "imports (caller_id, digest, file_name, settings, records, done, created_at, touched_at)": (
        "1 + n % 3, CAST(n AS BLOB), '', json('{}'), 1, 1, n, n"
    ),
    "import_batches (import_id, first, records)": "n, 100, '[]'",
    "idempotency_records": "1 + n % 3, 'key ' || n, x'', x'', n",
    "counts": "iif(n % 2, 'deprecated', 'response'), n, 'getPet', n, 7, '[1,\"shop/1\",\"r1\"]'",
    "key_notices": "n, 'banned', n, n",
    "console_sessions": "randomblob(32), 'key', n, x'', '', n, n, n, 0",
    "invitations (digest, person_id, expires_at)": "randomblob(32), n, n",
}

PET_STATUSES: tuple[PetStatus | UnsetType, ...] = (UNSET, "sold")
CATEGORIES: tuple[int | UnsetType, ...] = (UNSET, 3)
IDS: tuple[tuple[int, ...] | UnsetType, ...] = (UNSET, (5,), HUNDRED)
HAS_STATUS: tuple[bool | UnsetType, ...] = (UNSET, False, True)
PET_FILTERS = [
    PetFilter(status, category, ids, has_status)
    for status, category, ids, has_status in product(PET_STATUSES, CATEGORIES, IDS, HAS_STATUS)
    if has_status is not False or status is UNSET
]
MOMENTS: tuple[datetime | UnsetType, ...] = (UNSET, utc(NOW))
ORDER_STATUSES: tuple[OrderStatus | UnsetType, ...] = (UNSET, "cancelled")
ORDER_FILTERS = [
    OrderFilter(status, pet_id, placed_before)
    for status, pet_id, placed_before in product(ORDER_STATUSES, CATEGORIES, MOMENTS)
]
CLOCK = ManualClock()
IN_PARTS = re.compile("COMPOUND|LEFT|RIGHT|UNION|MERGE|CO-ROUTINE|SCAN (found|part)").match
WEEK = day_range(date(2024, 10, 1), date(2024, 10, 7), ZoneInfo("UTC"), utc(NOW))
KEY = Caller("Till", id=7, scopes=frozenset({"keys:admin"}), environment="production", created_at=0)
HOLDER = Caller("Shop", id=1, environment="production", created_at=0)
LISTS: dict[str, Any] = {
    **{
        f"pets-{number}": lambda store, after, wanted=wanted: list_pets(store, wanted, after, PAGE)
        for number, wanted in enumerate(PET_FILTERS)
    },
    **{
        f"orders-{number}": lambda store, after, wanted=wanted: list_orders(
            store, wanted, after, PAGE
        )
        for number, wanted in enumerate(ORDER_FILTERS)
    },
    **{
        f"newest-{number}": lambda store, after, wanted=wanted: list_pets(
            store, wanted, after and 4_001 - after, PAGE, newest_first=True
        )
        for number, wanted in enumerate(PET_FILTERS)
        if wanted.ids is not HUNDRED
    },
    **{
        f"newest-orders-{number}": lambda store, after, wanted=wanted: list_orders(
            store, wanted, after and 4_001 - after, PAGE, newest_first=True
        )
        for number, wanted in enumerate(ORDER_FILTERS)
    },
    **{
        f"search-{number}": lambda store, after, text=text, wanted=wanted: search_pets(
            store, text, wanted, after, PAGE
        )
        for number, (text, wanted) in enumerate(
            product(
                ("Bel", "bella old"),
                (PetFilter(), PetFilter("sold"), PetFilter("sold", 3), PetFilter(has_status=False)),
            )
        )
    },
    **{
        f"buyers-{number}": lambda store, after, wanted=wanted: search_orders(
            store, "J", wanted, after, PAGE
        )
        for number, wanted in enumerate((OrderFilter(), OrderFilter("delivered", 3)))
    },
    **{
        f"delivered-{number}": lambda store, after, wanted=wanted: list_delivered(
            store, wanted, after and (4_001 - after, after), PAGE
        )
        for number, wanted in enumerate(
            (OrderFilter(delivered_since=utc(0)), OrderFilter("returned", delivered_since=utc(0)))
        )
    },
    "categories": lambda store, after: list_categories(store, after, PAGE),
    "keys by name": lambda store, after: search_keys(store, "production", "", after, PAGE, NOW),
    "keys": lambda store, after: list_keys(store, None, after, PAGE, CLOCK),
    "keys-production": lambda store, after: list_keys(store, "production", after, PAGE, CLOCK),
    "people": lambda store, after: list_people(store, None, after, PAGE),
    "people-production": lambda store, after: list_people(store, "production", after, PAGE),
    "webhooks": lambda store, after: list_webhooks(store, HOLDER, after, PAGE),
    "webhooks of everybody": lambda store, after: list_webhooks(store, KEY, after, PAGE),
    "imports": lambda store, after: list_imports(store, 1, after and 4_001 - after, PAGE),
    "deliveries": lambda store, after: list_deliveries(store, 1, UNSET, after, PAGE),
    "deliveries-failed": lambda store, after: list_deliveries(store, 1, "failed", after, PAGE),
}

IMPORT_SETTINGS = ImportSettings("UTF-8", [], 2, unknown_categories="create")
IMPORT_ROW = (
    7,
    "pets.csv",
    encode_json(IMPORT_SETTINGS).decode(),
    "{}",
    9,
    *[0] * 5,
    "[]",
    None,
    None,
    0,
)
STORED_IMPORT = StoredImport(
    7, "pets.csv", IMPORT_SETTINGS, ImportPreview(), 9, 0, 0, 0, 0, 0, [], None, None, 0
)
KEY_ROW = tuple(values_of(KEY)[name] for name in COLUMNS)
PERSON_ROW = (7, "Grace", "production", 0, "clerk", None)
RECOVERING = LeasedWebhook(1, 7, "pets:read", "", "", 1, None, 9, None, 5, *[None] * 3)
WEBHOOK_ROW = (7, "https://shop.example", "", None, 0, None, 0, None, None, 7, "key")
NEVER_USED = (None, None, None, None, "x7Qm")
DEPRECATED = deprecated_operations(OPERATIONS)
ROWS: dict[str, list[Row]] = {
    "count_pet_words": [(0, 200, 9_999)],
    "insert_pet": [(9_999,)],
    "lock_pet": [(7, "Bella", 2, *[None] * (len(Pet.__struct_fields__) - 3))],
    "insert_pets": [(9_999, "New", 7, None)],
    "update_pet_status": [(7, "Bella", 2, "pending")],
    "release_pets": [(7, "Bella", 2, "available")],
    "insert_category": [(9_999,)],
    "lock_category": [(7, "Kind 7", None)],
    "lock_categories": [(7,)],
    "insert_order": [(9_999,)],
    "lock_order": [order_row(7, 7)],
    "lock_lapsed_order": [order_row(7, 7, reserved_until=5)],
    "lock_lapsed_orders": [order_row(7, 7, reserved_until=5)],
    "lock_orders_with_old_buyers": [order_row(7, 7, "cancelled", buyer="Jane")],
    "lock_orders_of_buyer": [order_row(7, 7, "cancelled", buyer="Jane")],
    "insert_caller": [(9_999,)],
    "select_key": [(*KEY_ROW, *NEVER_USED)],
    "select_session": [("key", 7, b"digest of a token", b"", "", 0, 0, 1, 0)],
    "select_invitation": [(7, None, None, None)],
    "select_account": [],
    "select_newest_token": [(1,)],
    "count_events": [(0,)],
    "select_start_of_feed": [(1,)],
    "select_kept_position": [(1, 1, None)],
    "select_person": [(*PERSON_ROW, None, "grace", True)],
    "select_key_by_digest": [(*KEY_ROW, None)],
    "select_key_revision": [(1,)],
    "select_last_event": [(9, "evt_0123456789abcdef01234567")],
    "lock_webhook": [WEBHOOK_ROW],
    "count_webhooks": [(0,)],
    "lock_key": [("production",)],
    "insert_webhook": [WEBHOOK_ROW],
    "rotate_webhook": [(2,)],
    "select_oldest_event": [(1,)],
    "select_newest_event": [(4000,)],
    "move_recovery": [(9,)],
    "select_time_of_event": [(5,)],
    "select_delivery_to_retry": [(9, "evt_9")],
    "insert_retried_delivery": [
        (9, "e", "pet.created", "pet/7", "pending", 0, 0, None, 0, *[None] * 3)
    ],
    "lock_import": [IMPORT_ROW],
    "select_import": [IMPORT_ROW],
    "update_import": [IMPORT_ROW],
    "update_undone_import": [IMPORT_ROW],
    "update_import_settings": [IMPORT_ROW],
    "insert_import": [IMPORT_ROW],
    "count_unfinished_imports": [(0,)],
    "select_import_outcome": [("[]", "[]")],
    "select_import_pets": [(0, '[{"id": 7, "name": "Bella", "categoryId": 2}]')],
    "select_pets_without_words": [(7, "Bella")],
}
"""What the recorded operations find."""


def units() -> Iterator[Unit[Any]]:
    """Yield units of work that use every statement but those of ``reads``."""
    yield create_pet(NewPet("New New", 7))
    yield update_pet(Change(NOW, strict_categories=True), 7, PetPatch("Old Rex", 7))
    yield delete_pet(Change(NOW), 7)
    yield create_category(CategoryCreate("New"))
    yield update_category(7, CategoryPatch("New"))
    yield delete_category(7)
    yield place_order(Change(NOW), OrderCreate(9_999))
    yield place_order(Change(NOW), OrderCreate(9_999, buyer="Jane", complete=True))
    yield update_order(Change(NOW), 7, OrderPatch(status="cancelled"))
    yield from_sold(update_order(Change(1), 7, OrderPatch(status="returned")))
    yield forget_batch(NOW, NOW)
    yield free_if_lapsed(7, 7)
    yield free_lapsed(5)
    yield create_key(new_key(), "production", OPERATOR)
    yield change_key(7, {"name": "new"}, OPERATOR)
    yield rotate_key(7, NOW, OPERATOR)
    yield rotate_own_key(NOW, found_own, b"a token", OPERATOR)
    yield change_person(7, {"login": "hopper"}, OPERATOR)
    yield new_import(7, b"7", NOW)
    yield change_settings(
        STORED_IMPORT, 7, IMPORT_SETTINGS, 0, ImportPreview(), NOW, Change(0).check
    )
    yield add_rows(
        STORED_IMPORT,
        7,
        Prepared([Cells("New", "dogs", "", 7, "")], {}, {}),
        9,
        now=NOW,
        by=SERVICE,
    )
    yield undo_rows(STORED_IMPORT, 7, 9, now=NOW, by=SERVICE)
    yield delete_import(Change(0, caller=operator("production")), 7)
    yield create_webhook(WebhookCreate("https://shop.example"), 7, 0)
    yield change_webhook(Change(0), 7, WebhookPatch(enabled=True))
    yield rotate_webhook(Change(0), 7, 0)
    yield delete_webhook(Change(0), 7)
    yield from_enabled(retry(Change(0), 1, 9))
    yield from_enabled(recover(Change(0), 1, 9))
    yield recover_batch("", RECOVERING, 0)
    yield from (prune(table, 5 * table.time_unit) for table in TABLES if table.time)
    yield from signing_in()


def signing_in() -> Iterator[Unit[Any]]:
    """Yield what begins, finds and ends sessions."""
    yield begin_session(KEY, b"digest of a token", NOW, Browser())
    yield find_session_in_unit(b"digest of a cookie", NOW)
    yield list_devices(7, NOW)
    yield end_sessions(7)
    yield end_sessions(7, only=b"digest of a cookie")
    yield find_account(7)
    yield find_account_by_login("grace", "production")
    yield create_invitation(OPERATOR, 7)
    yield find_invited("secret", "production", NOW)
    yield take_invitation("secret")


def found_own() -> Unit[Caller]:
    return (yield from find_key(b"a token")) or KEY


def from_enabled(unit: Unit[Any]) -> Unit[Any]:
    statement = next(unit)
    try:
        while True:
            rows = yield statement
            is_webhook = statement.name == "lock_webhook"
            statement = unit.send([(*WEBHOOK_ROW[:4], 1, *WEBHOOK_ROW[5:])] if is_webhook else rows)
    except StopIteration as finished:
        return finished.value


def from_sold(unit: Unit[Any]) -> Unit[None]:
    """Run a unit of work on an order that was just sold over the counter."""
    yield next(unit)
    rows: list[Row] = [order_row(7, 7, "delivered", delivered_at=0)]
    with suppress(StopIteration):
        while True:
            rows = yield unit.send(rows)


def reply() -> Unit[bytes]:
    """Do nothing, and respond with nothing."""
    yield from ()
    return b""


def recorded() -> dict[str, list[Statement]]:
    attempt = Attempt(KEY, "key 7", b"")
    retries = {"insert_idempotency_record": [(7,)]}
    replays = {"select_idempotency_record": [(b"", b"")]}
    statements = [
        *(one for unit in units() for one in statements_of(partial_write(unit), ROWS)),
        *statements_of(lambda store: get_pet(store, 7)),
        *statements_of(lambda store: get_category(store, 7)),
        *statements_of(lambda store: get_import(store, 7, 7), ROWS),
        *statements_of(lambda store: prepare(store, STORED_IMPORT, {}), ROWS),
        *statements_of(lambda store: names_here(store, {"bella", "rex"})),
        *statements_of(lambda store: count_next_pets(store, 7), ROWS),
        *statements_of(lambda store: find_person(store, 7, None), ROWS),
        *statements_of(lambda store: get_order(store, 7)),
        *statements_of(get_inventory_by_category),
        *statements_of(lambda store: forget_buyer(store, "Jane", CLOCK, SERVICE), ROWS),
        *statements_of(lambda store: get_sales(store, WEEK, "day", "USD")),
        *statements_of(lambda store: get_sales(store, WEEK, "category", "USD")),
        *statements_of(lambda store: search_categories(store, "Kind", None, PAGE)),
        *statements_of(
            lambda store: count_orders(store, OrderFilter("delivered", 3), PAGE),
            {"count_orders": [(7,)]},
        ),
        *statements_of(newest_position, ROWS),
        *statements_of(lambda store: recent_events(store, 9)),
        *statements_of(lambda store: RecentChanges(store).catch_up()),
        *statements_of(lambda store: get_webhook(store, 7, KEY), {"select_webhook": [WEBHOOK_ROW]}),
        *statements_of(has_webhooks),
        *statements_of(lambda store: read_feed(store, ("pet.created",), 7, None, PAGE), ROWS),
        *statements_of(lambda store: Reservations(store, CLOCK).refresh()),
        *statements_of(lambda store: ApiKeyCache(store, CLOCK, "production").refresh(), ROWS),
        *statements_of(
            lambda store: ApiKeyCache(store, CLOCK, "production").find(
                new_token("production").encode()
            ),
            ROWS,
        ),
        *statements_of(lambda store: SafeRetries(store, CLOCK).once(attempt, reply()), retries),
        *statements_of(lambda store: SafeRetries(store, CLOCK).once(attempt, reply()), replays),
        *statements_of(lambda store: StoredRateLimits(store).load(7)),
        *statements_of(usage),
        *statements_of(
            lambda store: KeyNotices(store, lambda: NOW, DEPRECATED).look(),
            {
                "select_last_key": [(7,)],
                "select_recent_deprecated_calls": [(7, "getPet")],
                "upsert_key_notices": [(7, "deprecation.used getPet", 12 * 2024 + 10)],
                "select_deprecated_uses_of_key": [(7, "getPet", "Till", 1, '[1,"shop/1","r1"]')],
            },
        ),
    ]
    by_name: dict[str, list[Statement]] = {}
    for statement in statements:
        by_name.setdefault(statement.name, []).append(statement)
    return by_name


async def usage(store: Any) -> None:
    counter, limiter = Counter(store), create_limiter(Settings(), store, CLOCK)
    counter.count("deprecated", 7, "getPet", 1, (NOW, b"shop/1", "r1"))
    await counter.save()
    parts: Any = {"store": store, "limiter": limiter, "clock": CLOCK, "counter": counter}
    services: Any = SimpleNamespace(**parts, deprecated=DEPRECATED)
    await get_usage(services, KEY, await limiter.look(KEY))


def partial_write(unit: Unit[Any]) -> Any:
    return lambda store: store.write(unit)


RECORDED = recorded()
IN_BATCHES = (
    "select_idempotency_records",
    *(
        "select_recent_events",
        "select_changes",
        "select_last_pending_delivery",
        "select_active_keys",
    ),
    *("lock_orders_with_old_buyers", "lock_orders_of_buyer"),
    *("select_oldest_rows", "delete_oldest_rows"),
)
IN_LARGE_BATCHES = ("insert_recovered_deliveries",)
UNSEARCHED = ("select_inventory", "select_category_inventory", "select_names_here")
# Their rows are grouped.
GROUPED = ("select_sales_by_day", "select_sales_by_category")
ONE_ROW = ("select_key_revision", "update_key_revision", "select_start_of_feed")
IN_ORDER = ("select_next_lapse", "select_oldest_rows")
INSERTS = [name for name in RECORDED if name.startswith(("insert_", "upsert_"))]
BY_INDEX = [
    name for name in RECORDED if name not in (*ONE_ROW, *INSERTS, *IN_ORDER, *UNSEARCHED, *GROUPED)
]


def page_of(name: str, after: int | None) -> Statement:
    return statements_of(lambda store: LISTS[name](store, after), ROWS)[-1]


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[apsw.Connection]:
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
    try:
        connection.execute(statement.sql, statement.parameters).fetchall()
    finally:
        connection.set_progress_handler(None)
        connection.execute("ROLLBACK")
    return count


@pytest.mark.parametrize("name", LISTS)
def test_no_page_is_sorted_or_searched_row_by_row(connection: apsw.Connection, name: str) -> None:
    for statement in (page_of(name, None), page_of(name, FAR)):
        details = [each for each in plan(connection, statement) if not IN_PARTS(each)]
        if name.startswith(("webhooks", "keys", "people")):  # each with a look-up of its caller
            details, owner = details[:-2], details[-2:]
            assert owner[1] == "SEARCH callers USING INTEGER PRIMARY KEY (rowid=?)"
        if "AS parts" in statement.sql:  # a page of each part is sorted
            details = [each for each in details if each != "USE TEMP B-TREE FOR ORDER BY"]
        # The last parameter is the limit.
        if len(statement.parameters) > 1 or "WHERE status IS NULL" in statement.sql:
            assert details[0].startswith("SEARCH "), details
        else:
            assert details[0].startswith("SCAN "), details  # the first rows of all, in order of id
        if "JOIN" in statement.sql:
            assert re.match("SEARCH [prk] USING INTEGER PRIMARY KEY", details.pop()), details
        assert len(details) == 1 + statement.sql.count(" UNION ALL "), details
        assert all(each.startswith("SEARCH ") for each in details[1:]), details


@pytest.mark.parametrize("name", LISTS)
def test_the_last_page_costs_as_much_as_the_first(connection: apsw.Connection, name: str) -> None:
    first = max(steps(connection, page_of(name, after)) for after in (None, 1))
    assert steps(connection, page_of(name, FAR)) < 1.2 * first


@pytest.mark.parametrize(
    ("operation", "columns"),
    [
        (
            lambda store: list_pets(store, PetFilter("sold", 3), FAR, PAGE),
            "category_id=? AND status=?",
        ),
        (
            lambda store: list_orders(store, OrderFilter("cancelled", 3), FAR, PAGE),
            "pet_id=? AND status=?",
        ),
    ],
    ids=["pets", "orders"],
)
def test_two_filters_use_one_index(
    connection: apsw.Connection, operation: Any, columns: str
) -> None:
    (detail,) = plan(connection, *statements_of(operation))
    assert f"({columns} AND rowid>?)" in detail


def test_a_hundred_ids_cost_a_hundred_searches(connection: apsw.Connection) -> None:
    (wanted,) = statements_of(lambda store: list_pets(store, PetFilter(ids=HUNDRED), None, 100))
    assert steps(connection, wanted) < 20 * len(HUNDRED)


def test_a_search_starts_at_its_position_among_the_pets_of_a_word(
    connection: apsw.Connection,
) -> None:
    details = plan(connection, page_of("search-0", FAR))
    assert any("PRIMARY KEY (term=? AND item_id>?)" in detail for detail in details), details


@pytest.mark.parametrize(
    "wanted", [PetFilter(has_status=False), PetFilter(category_id=3, has_status=False)]
)
def test_pets_without_a_status_are_found_by_the_index_of_their_filters(
    connection: apsw.Connection, wanted: PetFilter
) -> None:
    (statement,) = statements_of(lambda store: list_pets(store, wanted, FAR, PAGE))
    (detail,) = plan(connection, statement)
    assert "status=? AND rowid>?" in detail


@pytest.mark.parametrize("has_status", [True, False])
def test_a_hundred_ids_with_or_without_a_status_cost_a_hundred_searches(
    connection: apsw.Connection, *, has_status: bool
) -> None:
    wanted = PetFilter(ids=HUNDRED, has_status=has_status)
    (statement,) = statements_of(lambda store: list_pets(store, wanted, None, 100))
    assert steps(connection, statement) < 30 * len(HUNDRED)


BATCHES = {
    *("delete_aged_rows", "delete_sessions_beyond"),
}


def test_postgresql_finds_the_rows_of_a_batch_by_row_id(
    postgres: PostgresServer, postgres_url: str
) -> None:
    """By their keys, each was compared with a whole table that had been empty when analyzed."""
    database = database_name(postgres_url)
    large = "SET enable_seqscan = off"  # here the tables are empty, where a scan is as good
    session = statements_of(partial_write(begin_session(KEY, b"token", NOW, Browser())))
    statements = [one for name in RECORDED for one in (*RECORDED[name], *session)]
    in_batches = {each.sql: each for each in statements if each.name in BATCHES}
    assert {each.name for each in in_batches.values()} == BATCHES
    for sql, each in in_batches.items():
        values = ", ".join(f"'{value!s}'" for value in each.parameters)
        prepare = f"PREPARE batch AS {postgres_sql(sql)}"
        plan = postgres.sql(f"{large}; {prepare}; EXPLAIN EXECUTE batch ({values})", database)
        assert "Tid Scan on " in plan, plan
        assert "Nested Loop" not in plan, plan


@pytest.mark.parametrize("name", BY_INDEX)
def test_lookups_and_changes_use_an_index(connection: apsw.Connection, name: str) -> None:
    for statement in RECORDED[name]:
        details = plan(connection, statement)
        assert any(detail.startswith("SEARCH ") for detail in details), details
        batches = [
            f"SCAN {name}"
            for name in re.findall(r"(?:MATERIALIZE|CO-ROUTINE) (\w+)", "\n".join(details))
        ] + ["SCAN json_each VIRTUAL TABLE INDEX 1:"]
        scans = [each for each in details if "SCAN" in each and each not in batches]
        assert not scans, details
        if name != "select_counts":  # those of one key are sorted
            assert not any("TEMP B-TREE" in detail for detail in details), details


@pytest.mark.parametrize("name", [*BY_INDEX, *INSERTS])
def test_lookups_and_changes_read_few_rows(connection: apsw.Connection, name: str) -> None:
    most = 60_000 if name in IN_BATCHES else 100_000 if name in IN_LARGE_BATCHES else 600
    assert all(steps(connection, statement) < most for statement in RECORDED[name])


FOUND_IN_FEED = [
    *(EventFilter(EVENT_TYPES, (1, -1), f"pet/{number}") for number in (7, 8, 4000, 5000)),
    *(EventFilter(EVENT_TYPES, (1, -1), actor=actor) for actor in ("key/7", "person/8", "key/9")),
    EventFilter(EVENT_TYPES, (1, -1), "pet/7", "key/7"),
    EventFilter(ADMIN_EVENT_TYPES, (1, -1)),
    EventFilter(EVENT_TYPES, (1, 1)),
]


@pytest.mark.parametrize("newest_first", [False, True])
@pytest.mark.parametrize("position", [5, 2000, 3998])
@pytest.mark.parametrize("wanted", FOUND_IN_FEED, ids=[str(each[2:]) for each in FOUND_IN_FEED])
def test_a_search_of_the_feed_costs_the_same_anywhere(
    connection: apsw.Connection,
    wanted: EventFilter,
    position: int,
    newest_first: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    """But for the index entries of those that a search may look at."""
    event_id = f"evt_{position:024x}"
    after = Position.behind(position, event_id)
    low = 2000 if newest_first and position > 2000 else 0
    found = ROWS | {
        "select_end_of_search": [(low if newest_first else 4000,)],
        "select_last_event": [(position, event_id)],
        "select_kept_position": [(1, 1, event_id)],
    }
    statements = statements_of(
        lambda store: read_events(store, wanted, after, 20, newest_first=newest_first), found
    )
    assert 3 <= len(statements) <= 5
    for statement in statements:
        most = 40_000 if statement.name == "select_end_of_search" else 1200
        if statement.name == "select_events":
            most = 40_000
        assert steps(connection, statement) < most, statement.name
        assert not any("TEMP B-TREE" in detail for detail in plan(connection, statement))


def test_the_next_lapse_is_the_first_entry_of_an_index(connection: apsw.Connection) -> None:
    (statement,) = RECORDED["select_next_lapse"]
    (detail,) = plan(connection, statement)
    assert "USING COVERING INDEX orders_by_end" in detail
    assert steps(connection, statement) < 20


def test_the_inventory_is_read_without_counting_pets(connection: apsw.Connection) -> None:
    assert all(steps(connection, statement) < 100 for statement in RECORDED["select_inventory"])
    (by_category,) = RECORDED["select_category_inventory"]
    assert steps(connection, by_category) < 100_000


@pytest.mark.parametrize("name", GROUPED)
def test_sales_are_read_from_an_index_alone(connection: apsw.Connection, name: str) -> None:
    for statement in RECORDED[name]:
        search, *rest = plan(connection, statement)
        index = "return" if "refund" in statement.sql else "delivery"
        assert search.startswith(f"SEARCH orders USING COVERING INDEX orders_by_{index}"), search
        assert rest == ["USE TEMP B-TREE FOR GROUP BY"]


@pytest.mark.parametrize("name", ONE_ROW)
def test_reading_the_revision_takes_few_steps(connection: apsw.Connection, name: str) -> None:
    assert all(steps(connection, statement) < 30 for statement in RECORDED[name])


DELIVERY = DueDelivery(1, 1, 1, "evt_1", "pet.created", "pet/1", 0, 0)
DELIVERER = LeasedWebhook(1, 1, "pets:read", "", "", 1, None, 0, None, None, "me", None, None)

FOUND_BY_A_DELIVERER: dict[str, list[Row]] = {
    "select_backlog": [(None, None, 0)],
    "move_webhook": [(1,)],
    "update_delivery": [(1,)],
    "select_webhook_health": [(0, None, None, 1, 1, None)],
    "update_webhook_health": [WEBHOOK_ROW],
}


def test_no_statement_of_a_deliverer_scans_deliveries_or_events(
    connection: apsw.Connection,
) -> None:
    outcomes = [Outcome(DELIVERY, "succeeded", 0, 0)]
    operations: tuple[Any, ...] = (
        lambda store: active_webhooks(store, "production", 0),
        lambda store: due_deliveries(store, 1, 0),
        lambda store: read_event(store, 1, "evt_1"),
        lambda store: read_backlog(store, [DELIVERER]),
        partial_write(make_deliveries("me", [DELIVERER], 10, 0)),
        partial_write(save_progress(outcomes, [DELIVERY], 0)),
    )
    found = [statements_of(each, FOUND_BY_A_DELIVERER) for each in operations]
    statements = [statement for some in found for statement in some]
    assert len(statements) == 11, [statement.name for statement in statements]
    for statement in statements:
        scans = ("SCAN d", "SCAN e", "SCAN webhook_")
        steps = plan(connection, statement)
        assert [step for step in steps if step.startswith(scans)] == [], statement.name


SOURCE = Path(petstore.__file__).parent
TAKE_NAMES = ("databases/pages.py", "events/search.py", "imports/store.py")
"""The modules with a function that makes statements, and takes their names from its callers."""
IS_OF_TABLE = re.compile(r"f'[a-z]+_\{(self\.)?(table|items)\}'").fullmatch
IS_FIXED = re.compile(r"[a-z]+(_[a-z]+)*").fullmatch


def statements() -> Iterator[tuple[str, ast.Call]]:
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "Statement":
                yield f"{path.relative_to(SOURCE)}:{node.lineno}", node


def test_every_statement_has_a_name_without_caller_data() -> None:
    found = dict(statements())
    assert len(found) > 40
    for location, call in found.items():
        given = {keyword.arg: keyword.value for keyword in call.keywords}
        assert "name" in given, f"{location}: expected name="
        name = given["name"]
        text = ast.unparse(name)
        is_parameter = text == "name" and location.partition(":")[0] in TAKE_NAMES
        is_table = IS_OF_TABLE(text) is not None
        is_constant = re.fullmatch("_[A-Z]+", text) is not None
        assert is_parameter or is_table or is_constant or IS_FIXED(ast.literal_eval(name)), location
