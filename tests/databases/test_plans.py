"""Every statement finds its rows along an index, so what it costs does not grow with the store.

On PostgreSQL whatever the statistics are. There, what is filtered gathers at one end of the ids:
where the planner trusts its statistics and walks along the primary key, it passes over half of a
table.
"""

import ast
import asyncio
import json
import re
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from datetime import date
from functools import partial
from itertools import count, product
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeAlias
from zoneinfo import ZoneInfo

import apsw
import pytest
from msgspec import UNSET
from msgspec.structs import replace

import petstore
from petstore.backends import create_limiter
from petstore.categories.model import CategoryCreate, CategoryPatch
from petstore.categories.store import find_named, get_category, list_categories
from petstore.clock import DAY, utc
from petstore.databases.contract import Row, Statement, Unit
from petstore.databases.pages import LAST_ID
from petstore.databases.postgres import postgres_sql
from petstore.databases.postgres_connection import connect
from petstore.databases.schema import TABLES, prune
from petstore.databases.sqlite import SqliteStore
from petstore.errors import CursorExpired
from petstore.events.changes import RecentChanges
from petstore.events.model import ADMIN_EVENT_TYPES, EVENT_TYPES, SERVICE, Position
from petstore.events.search import EventFilter, read_events
from petstore.events.store import Change, newest_position, read_event, recent_events
from petstore.imports import store as imports
from petstore.imports.columns import Cells, ImportSettings
from petstore.imports.model import ImportPreview
from petstore.interface.idempotency_records import Attempt, SafeRetries
from petstore.interface.messages import encode_json
from petstore.interface.operations import OPERATIONS
from petstore.keys import store as keys
from petstore.keys.model import SCOPES, Caller, new_token, operator
from petstore.keys.notices import KeyNotices
from petstore.limits.database import StoredRateLimits
from petstore.orders import store as orders
from petstore.orders.buyers import forget_batch, forget_buyer
from petstore.orders.model import OrderCreate, OrderFilter, OrderPatch
from petstore.people import store as people
from petstore.people.model import Browser
from petstore.pets import store as pets
from petstore.pets.model import NewPet, Pet, PetFilter, PetPatch
from petstore.sales.model import day_range
from petstore.sales.store import get_sales
from petstore.settings import Settings
from petstore.usage.counter import Counter, list_uses
from petstore.usage.operations import deprecated_operations, get_usage
from petstore.webhooks import deliveries
from petstore.webhooks import store as webhooks
from petstore.webhooks.model import WebhookCreate, WebhookPatch
from support.changes import create_category, create_pet, delete_category, update_category
from support.history import read_feed
from support.imported import new_import
from support.keys import OPERATOR, new_key
from support.manual_clock import ManualClock
from support.postgres import PostgresServer, database_name
from support.rows import order_row, statements_of

PAGE = 20
NOW = 20_000 * DAY
PACE = 10 * 60_000  # ms between one order and the next
CLOCK = ManualClock()
DEPRECATED = deprecated_operations(OPERATIONS)

# A store in SQLite has 4,000 of everything; one on PostgreSQL has so many, and the first half of
# them differs from the second one.
FAR = 3_500
COUNT = 40_000
HALF = COUNT // 2
FEW = 200
HUNDRED = tuple(range(FAR + 200, FAR, -2))

NUMBERS = (
    "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 4000)"
)
FILL_SQLITE = {
    "pets (name, category_id, status)": "'Bella Old', n % 5, iif(n % 3, 'sold', 'available')",
    "pet_words (rowid, terms)": "n, iif(n % 2, 'bel', 'rex')",
    "order_words (rowid, terms)": "n, iif(n % 2, 'bel', 'rex')",
    "categories (name, name_key)": "'Kind ' || n, 'kind ' || n",
    "orders (pet_id, status, placed_at)": "n % 5, 'cancelled', 0",
    "orders (pet_id, status, placed_at, reserved_until)": "n, 'placed', n, n",
    "orders (pet_id, status, placed_at, buyer, amount, delivered_at, category_id)": (
        f"n % 5, 'delivered', n, 'Jane', 5, {PACE} * n, n % 7"
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
        " iif(n % 2, 'pet/1', 'pet/' || n), '{}', iif(n % 2, 'key/1', 'person/' || n),"
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

OLD, FIRST = f"n <= {HALF}", f"n <= {FEW}"
FILL_POSTGRESQL = {
    "pets (name, category_id, status)": (
        f"'Bella', CASE WHEN {FIRST} THEN 1000 + n ELSE n % 5 END, CASE WHEN {FIRST} THEN 'pending'"
        f" WHEN {OLD} THEN 'sold' WHEN n < {COUNT - 5_000} THEN 'available' END"
    ),
    "pet_words": f"CASE WHEN {FIRST} THEN 'ada' WHEN {OLD} THEN 'bel' ELSE 'rex' END, n",
    "order_words": f"CASE WHEN {FIRST} THEN 'ada' WHEN {OLD} THEN 'bel' ELSE 'rex' END, n",
    "categories (name, name_key)": "'Kind ' || n, 'kind ' || n",
    "orders (pet_id, status, placed_at, buyer, delivered_at, returned_at, amount, category_id)": (
        f"CASE WHEN {FIRST} THEN 1000 + n ELSE n % 5 END,"
        f" CASE WHEN {OLD} THEN 'delivered' ELSE 'cancelled' END, {PACE} * CAST(n AS BIGINT),"
        " 'Jane',"
        f" CASE WHEN {OLD} THEN {PACE} * CAST(n AS BIGINT) END,"
        f" CASE WHEN {OLD} THEN {PACE} * CAST(n AS BIGINT) END, 5, n % 5"
    ),
    "callers (kind)": "'key'",
    "api_keys (id, name, plan, scopes, environment, created_at)": (
        f"n, 'Till', 'free', 'pets:read', CASE WHEN {OLD} THEN 'staging' ELSE 'production' END, 0"
    ),
    "people (id, name, login, login_key, role, environment, created_at)": (
        "n, 'Grace', 'login ' || n, 'login ' || n, 'clerk',"
        f" CASE WHEN {OLD} THEN 'staging' ELSE 'production' END, 0"
    ),
    "rate_limits": "n, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0",
    "events (sequence, id, type, at, resource, data, actor, key_id)": (
        "n, 'evt_' || lpad(n::text, 24, '0'), 'pet.created', n,"
        f" CASE WHEN {FIRST} THEN 'pet/' || n WHEN {OLD} THEN 'pet/1' ELSE 'pet/2' END, '{{}}',"
        f" CASE WHEN {FIRST} THEN 'key/' || n WHEN {OLD} THEN 'key/1' ELSE 'person/2' END,"
        f" CASE WHEN {OLD} THEN -1 END"
    ),
    "webhooks (key_id, url, types, created_at, enabled, secret_version, position, failures,"
    " environment)": (
        f"CASE WHEN {FIRST} THEN n WHEN {OLD} THEN 1 ELSE 2 END, 'https://shop.example', '', 0, 1,"
        " 1, 4000, 0, 'production'"
    ),
    "webhook_deliveries (webhook_id, sequence, event_id, type, resource, state, created_at,"
    " attempts, due_at)": (
        f"CASE WHEN {FIRST} THEN n WHEN {OLD} THEN 1 ELSE 2 END, n, 'evt_' || n, 'pet.created',"
        " 'pet/' || n, 'pending', n, 0, n"
    ),
    "key_notices": f"n, 'key.banned', n, {CLOCK()} + n",
    "counts": (
        "CASE WHEN n % 2 = 0 THEN 'deprecated' ELSE 'response' END,"
        f" n, 'getPet', {CLOCK() // 3_600_000}, 1, '[1,\"shop/1\",\"r1\"]'"
    ),
}

_PETS: Iterable[tuple[Any, ...]] = product(
    [*product((UNSET, "sold", "available"), [UNSET]), (UNSET, False), (UNSET, True)],
    (UNSET, 3),
    (UNSET, HUNDRED),
)
PET_FILTERS = {
    f"{status} {has_status} {kind}{' ids' if ids else ''}": PetFilter(status, kind, ids, has_status)
    for (status, has_status), kind, ids in _PETS
}
CHOICES: tuple[tuple[Any, ...], ...] = (
    (UNSET, "delivered", "cancelled"),
    (UNSET, 3),
    (UNSET, utc(HALF * PACE)),
)
ORDER_FILTERS = {f"{wanted}": OrderFilter(*wanted) for wanted in product(*CHOICES)}
FEED_FILTERS = [
    *(EventFilter(EVENT_TYPES, (1, -1), f"pet/{number}") for number in (7, 1, 2, 9)),
    *(EventFilter(EVENT_TYPES, (1, -1), actor=by) for by in ("key/1", "person/2", "key/0")),
    EventFilter(EVENT_TYPES, (1, -1), "pet/1", "key/1"),
    EventFilter(ADMIN_EVENT_TYPES, (1, -1)),
    EventFilter(EVENT_TYPES, (1, -1)),
]

List: TypeAlias = Callable[..., Coroutine[Any, Any, Any]]
Reads: TypeAlias = dict[str, Callable[[Any], Coroutine[Any, Any, Any]]]


def pages(read: Any, *wanted: Any, limit: int = PAGE, **options: Any) -> List:
    """Return how to read a page of a list of what is ``wanted``, after a position."""
    return lambda store, after: read(store, *wanted, after, limit, **options)


def pages_of_delivered(wanted: OrderFilter) -> List:
    return lambda store, after: orders.list_delivered(
        store, wanted, after and (PACE * after, 5), PAGE
    )


KEY = Caller("Till", id=1, environment="production", created_at=0)
ADMIN = replace(KEY, scopes=frozenset(SCOPES))
LISTS: dict[str, List] = {
    **{
        f"{how} {read.__name__} {name}": pages(read, wanted, **options)
        for read, filters, how, options in (
            (pets.list_pets, PET_FILTERS, "oldest", {}),
            (pets.list_pets, PET_FILTERS, "newest", {"newest_first": True}),
            (pets.list_pets, PET_FILTERS, "a hundred", {"limit": 100}),
            (orders.list_orders, ORDER_FILTERS, "oldest", {}),
            (orders.list_orders, ORDER_FILTERS, "newest", {"newest_first": True}),
        )
        for name, wanted in filters.items()
    },
    "newest delivered": pages_of_delivered(OrderFilter(delivered_since=utc(0))),
    **{
        f"{search.__name__} {text}": pages(search, text, everything)
        for search, everything in (
            (pets.search_pets, PetFilter()),
            (orders.search_orders, OrderFilter()),
        )
        for text in ("ada", "bel", "rex")
    },
    "categories": pages(list_categories),
    **{
        f"keys of {place}": pages(keys.list_keys, place, "", now=NOW)
        for place in ("staging", "production")
    },
    **{f"people of {place}": pages(people.list_people, place) for place in (None, "production")},
    **{
        f"webhooks of {name}": pages(webhooks.list_webhooks, caller)
        for name, caller in (("old", KEY), ("new", replace(KEY, id=2)), ("everybody", ADMIN))
    },
    **{
        f"deliveries {wanted}": pages(deliveries.list_deliveries, *wanted)
        for wanted in ((1, UNSET), (2, UNSET), (1, "failed"))
    },
}
LISTS_OF_SQLITE = {
    name: read
    for name, read in LISTS.items()
    if not (name.startswith("newest") and "ids" in name)  # a hundred ids are sorted
} | {
    "search bel rex": pages(pets.search_pets, "bel rex", PetFilter()),
    "search sold bel": pages(pets.search_pets, "bel", PetFilter("sold", 3)),
    "newest returned": pages_of_delivered(OrderFilter("returned", delivered_since=utc(0))),
    "newest imports": pages(imports.list_imports, 1),
    "keys by name": pages(keys.list_keys, "production", "a", now=NOW),
}
LISTS_OF_POSTGRESQL = LISTS | {
    # Each row takes a look-up.
    "deprecated uses": lambda store, after: list_uses(
        store, DEPRECATED, None, after and 1000 * after, PAGE, CLOCK()
    )
}

# In the middle of the deliveries, of which 144 are on each day.
DAYS = day_range(date(1970, 3, 1), date(1970, 3, 2), ZoneInfo("UTC"), utc(0))
READS: Reads = {
    "categories by name": lambda store: find_named(store, "Kind 7"),
    "newest event": newest_position,
    "recent changes": lambda store: RecentChanges(store).catch_up(),
    "sales by day": lambda store: get_sales(store, DAYS, "day", "USD"),
    "sales by category": lambda store: get_sales(store, DAYS, "category", "USD"),
    "old buyers": lambda store: store.write(forget_batch(HALF * PACE, 0)),
    "a buyer": lambda store: forget_buyer(store, "Rex", CLOCK, SERVICE),
}


def webhook(webhook_id: int) -> webhooks.LeasedWebhook:
    """Return a webhook whose deliveries are made."""
    return webhooks.LeasedWebhook(webhook_id, 1, "pets:read", "", "", 1, None, COUNT, *[None] * 5)


DELIVERY, NEXT = (
    deliveries.DueDelivery(n, 2, n, "evt_1", "pet.created", f"pet/{n}", 0, 0)
    for n in (COUNT, COUNT - 1)
)
READS_OF_A_DELIVERER: Reads = {
    "due deliveries": lambda store: deliveries.due_deliveries(store, 2, 2 * COUNT),
    "backlog": lambda store: deliveries.read_backlog(store, [webhook(1), webhook(2)]),
    "outcomes": lambda store: store.write(
        deliveries.save_progress([deliveries.Outcome(DELIVERY, "succeeded", 0, 0)], [NEXT], 0)
    ),
}

IMPORT_SETTINGS = ImportSettings("UTF-8", [], 2, unknown_categories="create")
IMPORT_ROW = (7, 7, "pets.csv", encode_json(IMPORT_SETTINGS).decode(), "{}", 9, *[0] * 6, "[]")
IMPORT_ROW += (None, None)
STORED_IMPORT = imports.StoredImport(7, 7, "pets.csv", IMPORT_SETTINGS, ImportPreview(), 9, 0, 0, 0)
KEY_ROW = tuple(keys.values_of(ADMIN)[name] for name in keys.COLUMNS)
SOLD_ROW = order_row(7, 7, "cancelled", buyer="Jane")
WEBHOOK_ROW = (2, "https://shop.example", "", None, 0, None, 0, None, None, 7, "key")
_ROWS: tuple[tuple[Row, str], ...] = (
    ((0,), "count_events count_webhooks count_unfinished_imports"),
    ((1,), "select_newest_token select_start_of_feed select_key_revision select_oldest_event"),
    ((1,), "move_webhook"),
    ((5,), "select_time_of_event"),
    ((7,), "lock_categories count_orders select_last_key"),
    ((9,), "move_recovery"),
    ((4000,), "select_newest_event"),
    ((9_999,), "insert_pet insert_category insert_order insert_caller"),
    ((COUNT,), "update_delivery"),
    ((0, 200, 9_999), "count_pet_words"),
    ((7, "Bella", 2, *[None] * (len(Pet.__struct_fields__) - 3)), "lock_pet lock_pet_words"),
    ((9_999, "New", 7, None), "insert_pets"),
    ((7, "Bella", 2, "pending"), "update_pet_status"),
    ((7, "Bella", 2, "available"), "release_pets"),
    ((7, "Kind 7", None), "lock_category"),
    (order_row(7, 7), "lock_order"),
    (order_row(7, 7, reserved_until=5), "lock_lapsed_order lock_lapsed_orders"),
    (SOLD_ROW, "lock_orders_with_old_buyers lock_orders_of_buyer lock_order_words"),
    (("production",), "lock_key"),
    ((*KEY_ROW, None, None, None, None, "x7Qm"), "select_key"),
    ((*KEY_ROW, None), "select_key_by_digest"),
    (("key", 7, b"digest of a token", b"", "", 0, 0, 1, 0), "select_session"),
    ((7, None, None, None), "select_invitation"),
    ((7, "Grace", "production", 0, "clerk", None, None, "grace", True), "select_person"),
    ((1, 1, None), "select_kept_position"),
    ((9, "evt_0123456789abcdef01234567"), "select_last_event"),
    (WEBHOOK_ROW, "lock_webhook insert_webhook select_webhook update_webhook_health"),
    ((2,), "rotate_webhook"),
    ((0, None, None, 1, 1, None), "select_webhook_health"),
    ((None, None, 0), "select_backlog"),
    ((9, "evt_9"), "select_delivery_to_retry"),
    (
        (9, "e", "pet.created", "pet/7", "pending", 0, 0, None, 0, *[None] * 3),
        "insert_retried_delivery",
    ),
    (IMPORT_ROW, "lock_import select_import insert_import update_import update_undone_import"),
    (IMPORT_ROW, "update_import_settings"),
    (("[]", "[]"), "select_import_outcome"),
    ((0, '[{"id": 7, "name": "Bella", "categoryId": 2}]'), "select_import_pets"),
    ((7, "getPet"), "select_recent_deprecated_calls"),
    ((7, "deprecation.used getPet", 12 * 2024 + 10), "upsert_key_notices"),
    ((7, "getPet", "Till", 1, '[1,"shop/1","r1"]'), "select_deprecated_uses_of_key"),
)
FOUND: dict[str, list[Row]] = {name: [row] for row, names in _ROWS for name in names.split()}
"""What the recorded operations find."""
ENABLED: dict[str, list[Row]] = {"lock_webhook": [(*WEBHOOK_ROW[:4], 1, *WEBHOOK_ROW[5:])]}


def units() -> Iterator[Unit[Any]]:
    """Yield units of work that use every statement except the statements of ``reads``."""
    yield create_pet(NewPet("New New", 7))
    yield pets.update_pet(Change(NOW, strict_categories=True), 7, PetPatch("Old Rex", 7))
    yield pets.delete_pet(Change(NOW), 7)
    yield create_category(CategoryCreate("New"))
    yield update_category(7, CategoryPatch("New"))
    yield delete_category(7)
    yield orders.place_order(Change(NOW), OrderCreate(9_999))
    yield orders.place_order(Change(NOW), OrderCreate(9_999, buyer="Jane", complete=True))
    yield orders.update_order(Change(NOW), 7, OrderPatch(status="cancelled"))
    yield orders.free_if_lapsed(7, 7)
    yield orders.free_lapsed(5)
    yield keys.create_key(new_key(), "production", OPERATOR)
    yield keys.change_key(7, {"name": "new"}, OPERATOR)
    yield keys.rotate_key(7, NOW, OPERATOR)
    yield keys.rotate_own_key(NOW, found_own, b"a token", OPERATOR)
    yield people.change_person(7, {"login": "hopper"}, OPERATOR)
    yield new_import(7, b"7", NOW)
    yield imports.change_settings(
        STORED_IMPORT, IMPORT_SETTINGS, 0, ImportPreview(), NOW, Change(0).check
    )
    rows = imports.Prepared([Cells("New", "dogs", "", 7, "")], {})
    yield imports.add_rows(STORED_IMPORT, rows, 9, now=NOW, by=SERVICE)
    yield imports.undo_rows(STORED_IMPORT, 9, now=NOW, by=SERVICE)
    yield pets.PETS_BY_WORD.index_items([7], {})
    yield orders.ORDERS_BY_WORD.index_items([7], {})
    yield imports.delete_import(Change(0, caller=operator("production")), 7)
    yield webhooks.create_webhook(WebhookCreate("https://shop.example"), 7, 0)
    yield webhooks.change_webhook(Change(0), 7, WebhookPatch(enabled=True))
    yield webhooks.rotate_webhook(Change(0), 7, 0)
    yield webhooks.delete_webhook(Change(0), 7)
    yield deliveries.recover_batch("", webhook(1)._replace(position=9, recovered_to=5), 0)
    yield from (prune(table, 5 * table.time_unit) for table in TABLES if table.time)
    yield people.begin_session(ADMIN, b"digest of a token", NOW, Browser())
    yield people.find_session_in_unit(b"digest of a cookie", NOW)
    yield people.list_devices(7, NOW)
    yield people.end_sessions(7)
    yield people.end_sessions(7, only=b"digest of a cookie")
    yield people.find_account(7)
    yield people.find_account_by_login("grace", "production")
    yield people.create_invitation(OPERATOR, 7)
    yield people.find_invited("secret", "production", NOW)
    yield people.take_invitation("secret")


def found_own() -> Unit[Caller]:
    return (yield from keys.find_key(b"a token")) or ADMIN


async def retry(store: Any) -> None:
    def reply() -> Unit[bytes]:
        yield from ()
        return b""

    await SafeRetries(store, CLOCK).once(Attempt(ADMIN, "key 7", b""), reply())


def recorded() -> dict[str, list[Statement]]:
    token = new_token("production").encode()
    returned = orders.update_order(Change(1), 7, OrderPatch(status="returned"))
    sold: dict[str, list[Row]] = {"lock_order": [order_row(7, 7, "delivered", delivered_at=0)]}
    reads: list[Any] = [
        *map(partial_write, units()),
        *READS.values(),
        *READS_OF_A_DELIVERER.values(),
        partial_write(deliveries.make_deliveries("me", [webhook(1)], 10, 0)),
        lambda store: read_event(store, 1, "evt_1"),
        lambda store: pets.get_pet(store, 7),
        lambda store: get_category(store, 7),
        lambda store: imports.get_import(store, 7, 7),
        lambda store: imports.prepare(store, STORED_IMPORT),
        lambda store: imports.names_here(store, {"bella", "rex"}),
        lambda store: imports.count_next_pets(store, 7),
        lambda store: people.find_person(store, 7, None),
        lambda store: orders.get_order(store, 7),
        pets.get_inventory_by_category,
        lambda store: orders.count_orders(store, OrderFilter("delivered", 3), PAGE),
        lambda store: recent_events(store, 9),
        lambda store: webhooks.get_webhook(store, 7, ADMIN),
        webhooks.has_webhooks,
        lambda store: read_feed(store, ("pet.created",), 7, None, PAGE),
        lambda store: orders.Reservations(store, CLOCK).refresh(),
        lambda store: keys.ApiKeyCache(store, CLOCK, "production").refresh(),
        lambda store: keys.ApiKeyCache(store, CLOCK, "production").find(token),
        lambda store: StoredRateLimits(store).load(7),
        usage,
        lambda store: KeyNotices(store, lambda: NOW, DEPRECATED).look(),
    ]
    statements = [
        *(one for read in reads for one in statements_of(read, FOUND)),
        *statements_of(retry, {"insert_idempotency_record": [(7,)]}),
        *statements_of(retry, {"select_idempotency_record": [(b"", b"")]}),
        *statements_of(partial_write(returned), FOUND | sold),
        *statements_of(partial_write(deliveries.retry(Change(0), 1, 9)), FOUND | ENABLED),
        *statements_of(partial_write(deliveries.recover(Change(0), 1, 9)), FOUND | ENABLED),
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
    await get_usage(services, KEY, await limiter.look(ADMIN))


def partial_write(unit: Unit[Any]) -> Any:
    return lambda store: store.write(unit)


RECORDED = recorded()
IN_BATCHES = (
    *("select_recent_events", "select_changes", "search_orders"),
    *("select_last_pending_delivery", "select_active_keys", "lock_orders_with_old_buyers"),
    *("lock_orders_of_buyer", "select_oldest_rows", "delete_oldest_rows", "select_due_deliveries"),
)
READ_AS_A_WHOLE = (
    *("SCAN json_each VIRTUAL TABLE INDEX 1:", "SCAN CONSTANT ROW"),
    "SCAN webhooks USING INDEX webhooks_failing",
)
IN_LARGE_BATCHES = ("insert_recovered_deliveries",)
UNSEARCHED = ("select_inventory", "select_category_inventory", "select_names_here")
# Their rows are grouped.
GROUPED = ("select_sales_by_day", "select_sales_by_category")
ONE_ROW = ("select_key_revision", "update_key_revision", "select_start_of_feed")
IN_ORDER = ("select_next_lapse", "select_oldest_rows")
INSERTS = [name for name in RECORDED if name.startswith(("insert_", "upsert_", "index_", "queue_"))]
BY_INDEX = [
    name for name in RECORDED if name not in (*ONE_ROW, *INSERTS, *IN_ORDER, *UNSEARCHED, *GROUPED)
]


def page_of(name: str, after: int | None) -> Statement:
    if name.startswith("newest"):
        after = after and 4_001 - after
    return statements_of(partial(LISTS_OF_SQLITE[name], after=after), FOUND)[-1]


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[apsw.Connection]:
    path: Path = tmp_path_factory.mktemp("plans") / "petstore.db"
    SqliteStore(path).migrate()
    connection = apsw.Connection(str(path))
    connection.pragma("foreign_keys", "on")
    with connection:
        for table, values in FILL_SQLITE.items():
            connection.execute(f"INSERT INTO {table} {NUMBERS} SELECT {values} FROM numbers")  # noqa: S608
    yield connection
    connection.close()


def plan(connection: apsw.Connection, statement: Statement) -> list[str]:
    rows = connection.execute("EXPLAIN QUERY PLAN " + statement.sql, statement.parameters)
    # An FTS5 table is searched if its plan has the MATCH or the rowid.
    return [
        re.sub(r"SCAN (\w+ VIRTUAL TABLE INDEX \d+:[M=])", r"SEARCH \1", str(detail))
        for *_, detail in rows
    ]


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


IN_PARTS = re.compile("COMPOUND|LEFT|RIGHT|UNION|MERGE|CO-ROUTINE|SCAN (found|part)").match


@pytest.mark.parametrize("name", LISTS_OF_SQLITE)
def test_no_page_is_sorted_or_searched_row_by_row_and_the_last_costs_as_much_as_the_first(
    connection: apsw.Connection, name: str
) -> None:
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
        assert len(details) == 1 + statement.sql.count(" UNION "), details
        assert all(each.startswith("SEARCH ") for each in details[1:]), details
    first = max(steps(connection, page_of(name, after)) for after in (None, 1))
    assert steps(connection, page_of(name, FAR)) < 1.2 * first


@pytest.mark.parametrize(
    ("read", "columns"),
    [
        (pages(pets.list_pets, PetFilter("sold", 3)), "category_id=? AND status=?"),
        (pages(pets.list_pets, PetFilter(has_status=False)), "status=?"),
        (
            pages(pets.list_pets, PetFilter(category_id=3, has_status=False)),
            "category_id=? AND status=?",
        ),
        (pages(orders.list_orders, OrderFilter("cancelled", 3)), "pet_id=? AND status=?"),
    ],
)
def test_all_filters_use_one_index(connection: apsw.Connection, read: List, columns: str) -> None:
    (detail,) = plan(connection, *statements_of(partial(read, after=FAR)))
    assert f"({columns} AND rowid>?)" in detail


@pytest.mark.parametrize("has_status", [UNSET, True, False])
def test_a_hundred_ids_cost_a_hundred_searches(
    connection: apsw.Connection, has_status: Any
) -> None:
    wanted = PetFilter(ids=HUNDRED, has_status=has_status)
    (statement,) = statements_of(partial(pages(pets.list_pets, wanted, limit=100), after=None))
    assert steps(connection, statement) < 30 * len(HUNDRED)


@pytest.mark.parametrize("name", [*BY_INDEX, *INSERTS])
def test_lookups_and_changes_use_an_index_and_read_few_rows(
    connection: apsw.Connection, name: str
) -> None:
    most = 60_000 if name in IN_BATCHES else 100_000 if name in IN_LARGE_BATCHES else 600
    for statement in RECORDED[name]:
        assert steps(connection, statement) < most
        if name in INSERTS:
            continue
        details = plan(connection, statement)
        assert any(detail.startswith("SEARCH ") for detail in details), details
        parts = re.findall(r"(?:MATERIALIZE|CO-ROUTINE) (\w+)", "\n".join(details))
        batches = [*(f"SCAN {part}" for part in parts), *READ_AS_A_WHOLE]
        assert not [each for each in details if "SCAN" in each and each not in batches], details
        # The rows of one key are sorted, and the page of each part.
        if name != "select_counts" and "AS parts" not in statement.sql:
            assert not any("TEMP B-TREE" in detail for detail in details), details


@pytest.mark.parametrize("newest_first", [False, True])
@pytest.mark.parametrize("position", [5, 2000, 3998])
@pytest.mark.parametrize("wanted", FEED_FILTERS, ids=[str(each[2:]) for each in FEED_FILTERS])
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
    rows = FOUND | {
        "select_end_of_search": [(low if newest_first else 4000,)],
        "select_last_event": [(position, event_id)],
        "select_kept_position": [(1, 1, event_id)],
    }
    statements = statements_of(
        lambda store: read_events(store, wanted, after, 20, newest_first=newest_first), rows
    )
    assert 3 <= len(statements) <= 5
    for statement in statements:
        most = 40_000 if statement.name == "select_end_of_search" else 1200
        if statement.name == "select_events":
            most = 40_000
        assert steps(connection, statement) < most, statement.name
        assert not any("TEMP B-TREE" in detail for detail in plan(connection, statement))


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("select_next_lapse", 20),
        *((name, 30) for name in ONE_ROW),
        ("select_inventory", 100),
        ("select_category_inventory", 100_000),
    ],
)
def test_what_is_read_as_a_whole_is_small(
    connection: apsw.Connection, name: str, most: int
) -> None:
    for statement in RECORDED[name]:
        assert steps(connection, statement) < most
        if name == "select_next_lapse":
            (detail,) = plan(connection, statement)
            assert "USING COVERING INDEX orders_by_end" in detail


@pytest.mark.parametrize("name", GROUPED)
def test_sales_are_read_from_an_index_alone(connection: apsw.Connection, name: str) -> None:
    for statement in RECORDED[name]:
        search, *rest = plan(connection, statement)
        index = "return" if "refund" in statement.sql else "delivery"
        assert search.startswith(f"SEARCH orders USING COVERING INDEX orders_by_{index}"), search
        assert rest == ["USE TEMP B-TREE FOR GROUP BY"]


def test_every_statement_has_a_name_without_caller_data() -> None:
    source, found = Path(petstore.__file__).parent, 0
    # These have a function that makes statements, and takes their names from its callers.
    take_names = ("databases/pages.py", "events/search.py", "imports/store.py")
    fixed = r"'[a-z]+(_[a-z]+)*'|_[A-Z]+|f'[a-z]+_\{(self\.)?(table|items)\}'"
    for path in sorted(source.rglob("*.py")):
        module = f"{path.relative_to(source)}"
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "Statement":
                found += 1
                given = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
                name = given.get("name", "none")
                is_taken = name == "name" and module in take_names
                assert is_taken or re.fullmatch(fixed, name), f"{module}:{node.lineno}: {name}"
    assert found > 40


# On PostgreSQL


def search_of_feed(
    wanted: EventFilter, position: int
) -> Callable[[Any], Coroutine[Any, Any, None]]:
    async def read(store: Any) -> None:
        with suppress(CursorExpired):  # the recorded statements find no event at the position
            await read_events(store, wanted, Position(position, bytes(4)), PAGE)
        newest = Position(COUNT - 1, bytes(4))  # the last one that they find is behind it
        await read_events(store, wanted, newest, PAGE, newest_first=True)
        await read_events(store, wanted, None, PAGE, newest_first=True)

    return read


READS_OF_CONSOLE: Reads = READS | {
    "two words": lambda store: pets.search_pets(store, "bel rex", PetFilter(), HALF - 5, PAGE),
    "recent events": lambda store: recent_events(store, COUNT - 10),
    **{
        f"events {wanted[2:]} {position}": search_of_feed(wanted, position)
        for wanted, position in product(FEED_FILTERS, (5, HALF, COUNT - 5))
    },
}
OF_BUYER = [order_row(n, 7, "cancelled", buyer="Rex") for n in range(HALF, HALF + 99)]
FOUND_FAR: dict[str, list[Row]] = (
    FOUND
    | ENABLED
    | {
        "count_pet_words": [(0, 200, COUNT)],
        "select_end_of_search": [(0,)],
        "select_last_event": [(COUNT, "evt_0123456789abcdef01234567")],
        "select_later_order": [(HALF + 1,)],
        "lock_orders_of_buyer": OF_BUYER,
        "lock_orders_with_old_buyers": OF_BUYER,
    }
)
# 21 rows, each on a page of its own, twice with an index of three levels for a joined table.
MOST_BLOCKS = 150
# A hundred deliveries, each with a look-up of the one before it.
# All webhooks are read for the backlog.
MANY = {"select_due_deliveries": 600, "select_backlog": 650} | {
    # A search that looks at more than it shows.
    "search_orders": 700,
    "search_pets": 900,
    # The rows of two days, none of them known to be visible.
    **dict.fromkeys(("select_sales_by_day", "select_sales_by_category"), 400),
    # A hundred orders are locked or changed, some of them in several indexes.
    **dict.fromkeys(("lock_orders_with_old_buyers", "lock_orders_of_buyer"), 600),
    "insert_events": 600,
    "forget_buyers": 3_000,
}


def fill(server: PostgresServer, database: str, *, is_outdated: bool) -> None:
    """Fill a store of which the planner has no statistics, or outdated ones."""
    server.sql("ALTER TABLE pets DISABLE TRIGGER USER", database)
    for table in FILL_POSTGRESQL:
        name = table.partition(" ")[0]
        server.sql(f"ALTER TABLE {name} SET (autovacuum_enabled = off)", database)
    _insert(server, database, 1, FEW)
    server.sql("UPDATE webhook_deliveries SET state = 'succeeded'", database)
    if is_outdated:
        server.sql("VACUUM ANALYZE", database)
    _insert(server, database, FEW + 1, COUNT)


def _insert(server: PostgresServer, database: str, first: int, last: int, tables: str = "") -> None:
    statements = [
        f"INSERT INTO {table} SELECT {values} FROM generate_series({first}, {last}) n"  # noqa: S608
        for table, values in FILL_POSTGRESQL.items()
        if table.startswith(tables)
    ]
    server.sql("; ".join(statements), database)


class Planner:
    """A connection as the service has it, which tells what a statement reads."""

    def __init__(self, url: str) -> None:
        self._numbers = count()
        self._loop = asyncio.new_event_loop()
        self._connection = self._loop.run_until_complete(connect(url, 10, 10_000))

    def close(self) -> None:
        self._loop.run_until_complete(self._connection.close())
        self._loop.close()

    def require_few_blocks(self, statement: Statement, most: int = MOST_BLOCKS) -> None:
        execute = self.prepare(statement)
        for mode in ("force_custom_plan", "force_generic_plan"):
            self.run(f"SET plan_cache_mode = {mode}")
            self.require_few_blocks_of(execute, most)

    def prepare(self, statement: Statement) -> str:
        page = f"page_{next(self._numbers)}"
        self.run(f"PREPARE {page} AS {postgres_sql(statement.sql)}")
        return f"EXECUTE {page}{in_brackets(statement)}"

    def run(self, sql: str) -> list[Any]:
        rows: list[Any] = self._loop.run_until_complete(self._connection.fetch(sql))
        return rows

    def require_few_blocks_of(self, execute: str, most: int = MOST_BLOCKS) -> None:
        self.run("BEGIN")
        ((explained,),) = self.run(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {execute}")
        self.run("ROLLBACK")
        plan = json.loads(explained)[0]["Plan"]
        blocks = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
        assert blocks < most, f"{execute} {json.dumps(plan, indent=1)}"


def in_brackets(statement: Statement) -> str:
    values = ("NULL" if each is None else f"'{each!s}'" for each in statement.parameters)
    return f" ({', '.join(values)})" if statement.parameters else ""


MakePlanner: TypeAlias = Callable[..., AbstractContextManager[Planner]]
"""Makes a planner of a store of its own, with statistics of a kind, after a change of its rows."""

each_statistics = pytest.mark.parametrize("statistics", ["present", "outdated", "missing"])


@pytest.fixture(scope="module")
def planning(postgres: PostgresServer) -> Iterator[MakePlanner]:
    originals: dict[bool, str] = {}

    @contextmanager
    def planning(statistics: str, change: str = "") -> Iterator[Planner]:
        is_outdated = statistics == "outdated"
        if is_outdated not in originals:
            originals[is_outdated] = database_name(postgres.new_store())
            fill(postgres, originals[is_outdated], is_outdated=is_outdated)
        url = postgres.new_database(f"TEMPLATE {originals[is_outdated]} STRATEGY FILE_COPY")
        database = database_name(url)
        postgres.sql(change, database)
        if change or statistics == "present":  # else each statement would read what was changed
            postgres.sql(f"VACUUM {'ANALYZE' * (statistics == 'present')}", database)
        with closing(Planner(url)) as planner:
            yield planner
        postgres.sql(f"DROP DATABASE {database}")

    yield planning
    for database in originals.values():
        postgres.sql(f"DROP DATABASE {database}")


# Each is one test: were its cases spread over the workers of a run, each worker would fill stores.


@each_statistics
def test_each_page_and_each_query_beside_lists_reads_few_blocks(
    planning: MakePlanner, statistics: str
) -> None:
    at_once = FOUND_FAR | {"select_oldest_event": [(1,)], "select_newest_event": [(COUNT,)]}
    positions = (None, 500, HALF - 5, COUNT - 500, COUNT)
    with planning(statistics) as planner:
        for read, position in product(LISTS_OF_POSTGRESQL.values(), positions):
            for statement in statements_of(partial(read, after=position), FOUND_FAR):
                planner.require_few_blocks(statement)
        for reading in (READS_OF_CONSOLE | READS_OF_A_DELIVERER).values():
            for statement in statements_of(reading, FOUND_FAR):
                planner.require_few_blocks(statement, MANY.get(statement.name, MOST_BLOCKS))
        for since, at in ((5, 5), (LAST_ID, 0)):
            recovering = partial_write(deliveries.recover(Change(0), 2, since))
            *search, _ = statements_of(recovering, at_once | {"select_time_of_event": [(at,)]})
            assert sum(statement.name == "select_time_of_event" for statement in search) > 10
            for statement in search:
                planner.require_few_blocks(statement)


@each_statistics
def test_what_a_webhook_has_missed_is_found_in_few_blocks(
    planning: MakePlanner, statistics: str
) -> None:
    ends = "CASE sequence % 2 WHEN 0 THEN 'failed' ELSE 'succeeded' END"
    with planning(statistics, f"UPDATE webhook_deliveries SET state = {ends}") as planner:  # noqa: S608
        for after in (HALF + 5, HALF + 9_999, COUNT - 25):
            found = FOUND_FAR | {
                "move_recovery": [(after + 20,)],
                "select_delivery_to_retry": [(after, f"evt_{after:024d}")],
            }
            recovering = webhook(2)._replace(recovered_to=after, position=after + 20)
            for unit in (
                deliveries.recover_batch("", recovering, 0),
                deliveries.retry(Change(0), 2, 9),
            ):
                for statement in statements_of(partial_write(unit), found):
                    # Ten rows are added, each to the indexes of the table.
                    most = 600 if "recovered" in statement.name else MOST_BLOCKS
                    planner.require_few_blocks(statement, most)


def test_a_cached_plan_from_a_small_table_does_not_scan_a_large_one(
    postgres: PostgresServer, postgres_url: str
) -> None:
    database, few = database_name(postgres_url), 20
    postgres.sql(
        "ALTER TABLE pets SET (autovacuum_enabled = off); ALTER TABLE pets DISABLE TRIGGER USER",
        database,
    )
    _insert(postgres, database, 1, few, "pet")
    postgres.sql("VACUUM ANALYZE pets", database)
    planner = Planner(postgres_url)
    lists = [
        planner.prepare(*statements_of(partial(pages(pets.list_pets, wanted), after=None)))
        for wanted in PET_FILTERS.values()
    ]
    for page in lists * 7:
        planner.run(page)
    _insert(postgres, database, few + 1, COUNT, "pet")
    for page in lists:
        planner.require_few_blocks_of(page)
    planner.close()


def test_postgresql_finds_the_rows_of_a_batch_by_row_id(
    postgres: PostgresServer, postgres_url: str
) -> None:
    """By their keys, each was compared with a whole table that had been empty when analyzed."""
    database, names = database_name(postgres_url), {"delete_aged_rows", "delete_sessions_beyond"}
    large = "SET enable_seqscan = off"  # here the tables are empty, where a scan is as good
    in_batches = {each.sql: each for name in names for each in RECORDED[name]}
    for sql, each in in_batches.items():
        prepare = f"PREPARE batch AS {postgres_sql(sql)}"
        plan = postgres.sql(
            f"{large}; {prepare}; EXPLAIN EXECUTE batch{in_brackets(each)}", database
        )
        assert "Tid Scan on " in plan, plan
        assert "Nested Loop" not in plan, plan
