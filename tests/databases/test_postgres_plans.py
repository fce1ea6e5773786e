"""On PostgreSQL each page of a list reads about its own rows, whatever the statistics are.

What is filtered gathers at one end of the ids: where the planner trusts its statistics and walks
along the primary key, it passes over half of a table.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import date
from functools import partial
from itertools import count, product
from operator import methodcaller
from typing import Any, TypeAlias
from zoneinfo import ZoneInfo

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from petstore.categories.store import list_categories, search_categories
from petstore.clock import utc
from petstore.databases.contract import Row, Statement
from petstore.databases.pages import LAST_ID
from petstore.databases.postgres import postgres_sql
from petstore.databases.postgres_connection import connect
from petstore.errors import CursorExpired
from petstore.events.changes import RecentChanges
from petstore.events.model import ADMIN_EVENT_TYPES, EVENT_TYPES, SERVICE, Position
from petstore.events.search import EventFilter, read_events
from petstore.events.store import Change, newest_position, recent_events
from petstore.interface.operations import OPERATIONS
from petstore.keys.model import SCOPES, Caller
from petstore.keys.store import list_keys
from petstore.orders.buyers import forget_batch, forget_buyer
from petstore.orders.model import OrderFilter
from petstore.orders.store import list_delivered, list_orders, search_orders
from petstore.people.store import list_people
from petstore.pets.model import PetFilter
from petstore.pets.store import list_pets, search_pets
from petstore.sales.model import day_range
from petstore.sales.store import get_sales
from petstore.usage.counter import list_uses
from petstore.usage.operations import deprecated_operations
from petstore.webhooks.deliveries import (
    DueDelivery,
    Outcome,
    due_deliveries,
    list_deliveries,
    read_backlog,
    recover,
    recover_batch,
    retry,
    save_progress,
)
from petstore.webhooks.store import LeasedWebhook, list_webhooks
from support.manual_clock import ManualClock
from support.postgres import PostgresServer, database_name
from support.rows import order_row, statements_of

ROWS = 40_000
HALF = ROWS // 2
FEW = 200
PAGE = 20
# 21 rows, each on a page of its own, twice with an index of three levels for a joined table.
MOST_BLOCKS = 150
_EXPLAIN = "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON)"
CLOCK = ManualClock()
PACE = 10 * 60_000  # ms between one order and the next
DEPRECATED = deprecated_operations(OPERATIONS)

OLD, FIRST = f"n <= {HALF}", f"n <= {FEW}"
FILL = {
    "pets (name, category_id, status)": (
        f"'Bella', CASE WHEN {FIRST} THEN 1000 + n ELSE n % 5 END, CASE WHEN {FIRST} THEN 'pending'"
        f" WHEN {OLD} THEN 'sold' WHEN n < {ROWS - 5_000} THEN 'available' END"
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

POSITIONS = (None, 500, HALF - 5, ROWS - 500, ROWS)
PET_FILTERS = {
    "": PetFilter(),
    "sold": PetFilter("sold"),
    "available": PetFilter("available"),
    "category": PetFilter(UNSET, 3),
    "sold-category": PetFilter("sold", 3),
    "available-category": PetFilter("available", 3),
    "ids": PetFilter("sold", 3, tuple(range(HALF + 100, HALF - 100, -2))),
    "without-status": PetFilter(has_status=False),
    "without-status-category": PetFilter(category_id=3, has_status=False),
    "with-status": PetFilter(has_status=True),
    "with-status-category": PetFilter(category_id=3, has_status=True),
}
ORDER_FILTERS = {
    "": OrderFilter(),
    "delivered": OrderFilter("delivered"),
    "cancelled": OrderFilter("cancelled"),
    "pet": OrderFilter(UNSET, 3),
    "delivered-pet": OrderFilter("delivered", 3),
    "cancelled-pet": OrderFilter("cancelled", 3),
    "before": OrderFilter(placed_before=utc(HALF * PACE)),
    "delivered-before": OrderFilter("delivered", placed_before=utc(HALF * PACE)),
    "cancelled-before": OrderFilter("cancelled", placed_before=utc(HALF * PACE)),
    "pet-before": OrderFilter(UNSET, 3, utc(HALF * PACE)),
    "cancelled-pet-before": OrderFilter("cancelled", 3, utc(HALF * PACE)),
}
List: TypeAlias = Callable[..., Coroutine[Any, Any, Any]]
Reads: TypeAlias = dict[str, Callable[[Any], Coroutine[Any, Any, Any]]]
Copy: TypeAlias = Callable[[str], str]
"""Makes a store of its own, with statistics of a kind, and returns the name of its database."""


def pets(wanted: PetFilter, limit: int = PAGE, *, newest_first: bool = False) -> List:
    return lambda store, after: list_pets(store, wanted, after, limit, newest_first=newest_first)


def orders(wanted: OrderFilter, *, newest_first: bool = False) -> List:
    return lambda store, after: list_orders(store, wanted, after, PAGE, newest_first=newest_first)


def search(prefix: str) -> List:
    return lambda store, after: search_pets(store, prefix, PetFilter(), after, PAGE)


def buyers(prefix: str) -> List:
    return lambda store, after: search_orders(store, prefix, OrderFilter(), after, PAGE)


async def events_of(wanted: EventFilter, position: int, store: Any) -> None:
    with suppress(CursorExpired):  # the recorded statements find no event at the position
        await read_events(store, wanted, Position(position, bytes(4)), PAGE)
    newest = Position(ROWS - 1, bytes(4))  # the last one that they find is behind it
    await read_events(store, wanted, newest, PAGE, newest_first=True)
    await read_events(store, wanted, None, PAGE, newest_first=True)


async def delivered(before: int | None, store: Any) -> None:
    place = None if before is None else (before, 5)
    await list_delivered(store, OrderFilter(delivered_since=utc(0)), place, PAGE)


OLD_KEY, NEW_KEY = (Caller("Till", id=n, environment="production", created_at=0) for n in (1, 2))
ADMIN = replace(OLD_KEY, scopes=frozenset(SCOPES))
LISTS: dict[str, List] = {
    **{f"pets {name}": pets(wanted) for name, wanted in PET_FILTERS.items()},
    **{f"a hundred pets {name}": pets(wanted, 100) for name, wanted in PET_FILTERS.items()},
    **{
        f"newest pets {name}": pets(wanted, newest_first=True)
        for name, wanted in PET_FILTERS.items()
    },
    **{f"orders {name}": orders(wanted) for name, wanted in ORDER_FILTERS.items()},
    **{
        f"newest orders {name}": orders(wanted, newest_first=True)
        for name, wanted in ORDER_FILTERS.items()
    },
    **{f"search {prefix}": search(prefix) for prefix in ("ada", "bel", "rex")},
    **{f"buyers {prefix}": buyers(prefix) for prefix in ("ada", "bel", "rex")},
    "categories": lambda store, after: list_categories(store, after, PAGE),
    "keys": lambda store, after: list_keys(store, None, after, PAGE, CLOCK),
    "staging keys": lambda store, after: list_keys(store, "staging", after, PAGE, CLOCK),
    "production keys": lambda store, after: list_keys(store, "production", after, PAGE, CLOCK),
    "people": lambda store, after: list_people(store, None, after, PAGE),
    "webhooks of the old key": lambda store, after: list_webhooks(store, OLD_KEY, after, PAGE),
    "webhooks of the new key": lambda store, after: list_webhooks(store, NEW_KEY, after, PAGE),
    "webhooks of everybody": lambda store, after: list_webhooks(store, ADMIN, after, PAGE),
    "deliveries of the old webhook": lambda store, after: list_deliveries(
        store, 1, UNSET, after, PAGE
    ),
    "deliveries of the new webhook": lambda store, after: list_deliveries(
        store, 2, UNSET, after, PAGE
    ),
    # Each row takes a look-up.
    "deprecated uses": lambda store, after: list_uses(
        store, DEPRECATED, None, after and 1000 * after, PAGE, CLOCK()
    ),
}
# In the middle of the deliveries, of which 144 are on each day.
DAYS = day_range(date(1970, 3, 1), date(1970, 3, 2), ZoneInfo("UTC"), utc(0))
OTHERS: Reads = {
    "two words": lambda store: search_pets(store, "bel rex", PetFilter(), HALF - 5, PAGE),
    "categories by name": lambda store: search_categories(store, "Kind", None, PAGE),
    "newest event": newest_position,
    "recent events": lambda store: recent_events(store, ROWS - 10),
    **{
        f"events {wanted[2:]} {position}": partial(events_of, wanted, position)
        for wanted in (
            *(EventFilter(EVENT_TYPES, (1, -1), f"pet/{number}") for number in (7, 1, 2, 9)),
            *(EventFilter(EVENT_TYPES, (1, -1), actor=by) for by in ("key/1", "person/2", "key/0")),
            EventFilter(ADMIN_EVENT_TYPES, (1, -1)),
            EventFilter(EVENT_TYPES, (1, -1)),
        )
        for position in (5, HALF, ROWS - 5)
    },
    "recent changes": lambda store: RecentChanges(store).catch_up(),
    **{f"delivered {place}": partial(delivered, place) for place in (None, HALF * PACE, 5 * PACE)},
    "sales by day": lambda store: get_sales(store, DAYS, "day", "USD"),
    "sales by category": lambda store: get_sales(store, DAYS, "category", "USD"),
    "old buyers": lambda store: store.write(forget_batch(HALF * PACE, 0)),
    "a buyer": lambda store: forget_buyer(store, "Rex", CLOCK, SERVICE),
}
DELIVERY = DueDelivery(ROWS, 2, ROWS, "evt_1", "pet.created", f"pet/{ROWS}", 0, 0)
NEXT = DueDelivery(ROWS - 1, 2, ROWS - 1, "evt_1", "pet.created", f"pet/{ROWS - 1}", 0, 5)
DELIVERER: Reads = {
    "due deliveries": lambda store: due_deliveries(store, 2, 2 * ROWS),
    "backlog": lambda store: read_backlog(store, [webhook(1), webhook(2)]),
    "outcomes": lambda store: store.write(
        save_progress([Outcome(DELIVERY, "succeeded", 0, 0)], [NEXT], 0)
    ),
}
WEBHOOK_ROW = (2, "https://shop.example", "", None, 1, None, 0, None, None, 1, "key")
KEY_ROW = (
    1,
    "Till",
    "free",
    None,
    None,
    "pets:read",
    None,
    "",
    0,
    "production",
    0,
    None,
    None,
    None,
)
OF_BUYER = [order_row(n, 7, "cancelled", buyer="Rex") for n in range(HALF, HALF + 99)]
FOUND: dict[str, list[Row]] = {
    "count_pet_words": [(0, 200, ROWS)],
    "select_end_of_search": [(0,)],
    "select_last_event": [(ROWS, "evt_0123456789abcdef01234567")],
    "select_start_of_feed": [(1,)],
    "select_kept_position": [(1, 1, None)],
    "select_key": [(*KEY_ROW, *[None] * 4)],
    "lock_webhook": [WEBHOOK_ROW],
    "select_later_order": [(HALF + 1,)],
    "lock_orders_of_buyer": OF_BUYER,
    "lock_orders_with_old_buyers": OF_BUYER,
    "select_backlog": [(None, None, 0)],
    "select_webhook_health": [(0, None, None, 1, 1, None)],
    "update_webhook_health": [WEBHOOK_ROW],
    "update_delivery": [(ROWS,)],
}


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


def webhook(webhook_id: int) -> LeasedWebhook:
    """Return a webhook whose deliveries are made."""
    return LeasedWebhook(webhook_id, 1, "pets:read", "", "", 1, None, ROWS, *[None] * 5)


def fill(server: PostgresServer, database: str, *, is_outdated: bool) -> None:
    """Fill a store of which the planner has no statistics, or outdated ones."""
    server.sql("ALTER TABLE pets DISABLE TRIGGER USER", database)
    for table in FILL:
        name = table.partition(" ")[0]
        server.sql(f"ALTER TABLE {name} SET (autovacuum_enabled = off)", database)
    _insert(server, database, 1, FEW)
    server.sql("UPDATE webhook_deliveries SET state = 'succeeded'", database)
    if is_outdated:
        server.sql("VACUUM ANALYZE", database)
    _insert(server, database, FEW + 1, ROWS)


def _insert(server: PostgresServer, database: str, first: int, last: int, tables: str = "") -> None:
    statements = [
        f"INSERT INTO {table} SELECT {values} FROM generate_series({first}, {last}) n"  # noqa: S608
        for table, values in FILL.items()
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
            blocks, plan = self._loop.run_until_complete(self._blocks(execute))
            assert blocks < most, f"{execute} {plan}"

    def prepare(self, statement: Statement) -> str:
        page = f"page_{next(self._numbers)}"
        self.run(f"PREPARE {page} AS {postgres_sql(statement.sql)}")
        values = ", ".join(
            "NULL" if value is None else f"'{value!s}'" for value in statement.parameters
        )
        return f"EXECUTE {page} ({values})" if values else f"EXECUTE {page}"

    def run(self, sql: str) -> None:
        self._loop.run_until_complete(self._connection.execute(sql))

    def blocks(self, execute: str) -> int:
        return self._loop.run_until_complete(self._blocks(execute))[0]

    async def _blocks(self, execute: str) -> tuple[int, str]:
        async with self._undone():
            explained = await self._connection.fetchval(f"{_EXPLAIN} {execute}")
        plan = json.loads(explained)[0]["Plan"]
        return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"], json.dumps(plan, indent=1)

    @asynccontextmanager
    async def _undone(self) -> AsyncIterator[None]:
        await self._connection.execute("BEGIN")
        try:
            yield
        finally:
            await self._connection.execute("ROLLBACK")


STATISTICS = ["present", "outdated", "missing"]


@pytest.fixture(scope="module")
def filled(postgres: PostgresServer) -> Iterator[Copy]:
    originals: dict[bool, str] = {}

    def copy(statistics: str) -> str:
        is_outdated = statistics == "outdated"
        if is_outdated not in originals:
            originals[is_outdated] = database_name(postgres.new_store())
            fill(postgres, originals[is_outdated], is_outdated=is_outdated)
        template = f"TEMPLATE {originals[is_outdated]} STRATEGY FILE_COPY"
        return database_name(postgres.new_database(template))

    yield copy
    for database in originals.values():
        postgres.sql(f"DROP DATABASE {database}")


@pytest.fixture(scope="module", params=STATISTICS)
def planner(
    request: pytest.FixtureRequest, postgres: PostgresServer, filled: Copy
) -> Iterator[Planner]:
    """A planner of a store with 40,000 of everything."""
    database = filled(request.param)
    if request.param == "present":
        postgres.sql("VACUUM ANALYZE", database)
    with planner_of(postgres, database) as planner:
        yield planner


@pytest.fixture(scope="module", params=STATISTICS)
def failing(
    request: pytest.FixtureRequest, postgres: PostgresServer, filled: Copy
) -> Iterator[Planner]:
    database = filled(request.param)
    ends = "CASE sequence % 2 WHEN 0 THEN 'failed' ELSE 'succeeded' END"
    postgres.sql(f"UPDATE webhook_deliveries SET state = {ends}", database)  # noqa: S608
    # Else each statement would read what was updated.
    postgres.sql(f"VACUUM {'ANALYZE' if request.param == 'present' else ''}", database)
    with planner_of(postgres, database) as planner:
        yield planner


@contextmanager
def planner_of(postgres: PostgresServer, database: str) -> Iterator[Planner]:
    """Connect a planner to a database, which is dropped when the block ends."""
    planner = Planner(postgres.url(database))
    yield planner
    planner.close()
    postgres.sql(f"DROP DATABASE {database}")


# Each is one test: were its cases spread over the workers of a run, each worker would fill stores.


def test_each_page_reads_few_rows_beyond_its_own(planner: Planner) -> None:
    for read, position in product(LISTS.values(), POSITIONS):
        for statement in statements_of(partial(read, after=position), FOUND):
            planner.require_few_blocks(statement)


@pytest.mark.parametrize("reads", [OTHERS, DELIVERER], ids=["console", "deliverer"])
def test_queries_beside_lists_read_few_rows(planner: Planner, reads: Reads) -> None:
    for read in reads.values():
        for statement in statements_of(read, FOUND):
            planner.require_few_blocks(statement, MANY.get(statement.name, MOST_BLOCKS))


def test_a_recovery_finds_its_beginning_in_few_blocks(planner: Planner) -> None:
    found = FOUND | {"select_oldest_event": [(1,)], "select_newest_event": [(ROWS,)]}
    for since, at in ((5, 5), (LAST_ID, 0)):
        unit = recover(Change(0), 2, since)
        write = methodcaller("write", unit)
        *search, _ = statements_of(write, found | {"select_time_of_event": [(at,)]})
        assert sum(statement.name == "select_time_of_event" for statement in search) > 10
        for statement in search:
            planner.require_few_blocks(statement)


def test_what_a_webhook_has_missed_is_found_in_few_blocks(failing: Planner) -> None:
    for after in (HALF + 5, HALF + 9_999, ROWS - 25):
        found = FOUND | {
            "move_recovery": [(after + 20,)],
            "select_delivery_to_retry": [(after, f"evt_{after:024d}")],
            "insert_retried_delivery": [
                (9, "e", "pet.created", "pet/7", "pending", 0, 0, None, 0, *[None] * 3)
            ],
        }
        recovering = webhook(2)._replace(recovered_to=after, position=after + 20)
        for unit in (recover_batch("", recovering, 0), retry(Change(0), 2, 9)):
            for statement in statements_of(methodcaller("write", unit), found):
                # Ten rows are added, each to the indexes of the table.
                failing.require_few_blocks(statement, 600 if "recovered" in statement.name else 150)


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
    pages = [
        planner.prepare(*statements_of(partial(pets(wanted), after=None)))
        for wanted in PET_FILTERS.values()
    ]
    for page in pages * 7:
        planner.run(page)
    _insert(postgres, database, few + 1, ROWS, "pet")
    assert all(planner.blocks(page) < MOST_BLOCKS for page in pages)
    planner.close()
