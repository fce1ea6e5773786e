"""What PostgreSQL reads for each page of each list, by the plans that its server logs."""

import re
import time
from collections.abc import Callable
from functools import partial
from itertools import count, product
from typing import NamedTuple

import httpx

from petstore.domain.cursors import BY_ID, BY_NAME, NEWEST_FIRST
from petstore.domain.words import MatchPosition
from petstore.keys.model import SCOPES
from proof.deployments import Deployment, deployed, postgres_server
from proof.experiment import Experiment, Trial
from proof.logged_plans import SETTINGS, LoggedPlans, Read
from support.postgres import PostgresServer, database_name

_ROWS_PER_SECOND = 4_000
_MIN_ROWS, _MAX_ROWS = 50_000, 2_000_000
_FEW = 1_000
_PAGE = 20
_TIMES = 6  # from the sixth time on, PostgreSQL may use a plan for all parameters
_MAX_BLOCKS = 200  # a block for each row and its entry of an index, and some levels of the index
_MAX_ROWS_READ = 500  # deliveries of a state are looked for among so many at a time
_SHARE_OF_FILLING = 0.2  # of the time
# Of each table, the older half has one value, and the newer half another. The first rows are mixed.
_TABLES = {
    "pets (name, category_id, status, name_key, words)": (
        "'Bella', n % 5, CASE WHEN {old} THEN 'sold' ELSE 'available' END, 'bella', ''"
    ),
    "categories (name, name_key)": "'Kind ' || n, 'kind ' || n",
    "orders (pet_id, status, placed_at)": (
        "n % 5, CASE WHEN {old} THEN 'delivered' ELSE 'cancelled' END, 0"
    ),
    "api_keys (name, plan, scopes, environment, created_at)": (
        "'Till', 'free', 'pets:read', CASE WHEN {old} THEN 'staging' ELSE 'production' END, 0"
    ),
    "webhook_deliveries (webhook_id, sequence, event_id, type, resource, state, created_at,"
    " attempts, due_at)": (
        "1, n, 'evt_' || n, 'pet.created', 'pet/' || n,"
        " CASE WHEN {old} THEN 'failed' ELSE 'succeeded' END, 0, 1, 0"
    ),
}
_WEBHOOK = (
    "INSERT INTO webhooks (key_id, url, types, created_at, enabled, secret_version, position,"
    " failures) VALUES (1, 'https://shop.example', '', 0, 0, 1, 0, 0)"
)


class _List(NamedTuple):
    """A list of a table with some filters; ``cursor`` makes the one after an id."""

    table: str
    target: str
    cursor: Callable[[int], str] = BY_ID.encode


def _by_name(last_id: int) -> str:
    return BY_NAME.encode(MatchPosition("bella", "bella", last_id))


def lists() -> list[_List]:
    """Return every list, with every combination of the filters that have an index."""
    pets = [
        _List("pets", f"/v1/pets?{status}{category}{order}", cursor)
        for status, category, (order, cursor) in product(
            ("", "status=sold&", "status=available&", "status=pending&", "hasStatus=false&"),
            ("", "categoryId=3&"),
            (("", BY_ID.encode), ("sort=-id&", NEWEST_FIRST.encode), ("name=be&", _by_name)),
        )
    ]
    orders = [
        _List("orders", f"/v1/store/orders?{status}{pet}{order}", cursor)
        for status, pet, (order, cursor) in product(
            ("", "status=delivered&", "status=cancelled&", "status=placed&"),
            ("", "petId=3&"),
            (("", BY_ID.encode), ("sort=-id&", NEWEST_FIRST.encode)),
        )
    ]
    deliveries = [
        _List("webhook_deliveries", f"/v1/webhooks/1/deliveries?{state}")
        for state in ("", "state=failed&", "state=succeeded&", "state=pending&")
    ]
    return [
        *pets,
        *orders,
        *deliveries,
        _List("categories", "/v1/categories?"),
        _List("api_keys", "/v1/keys?"),
    ]


class _Store:
    """A store with so many rows in each table, and what each page of a list reads there."""

    def __init__(self, postgres: PostgresServer, deployment: Deployment, rows: int) -> None:
        self.rows = rows
        self._sql = partial(postgres.sql, database=database_name(deployment.database))
        words = [word for scope in SCOPES for word in ("--scope", scope)]
        token = deployment.server.issue("enterprise", *words)
        headers = {"Authorization": f"Bearer {token}"}
        self.http = httpx.Client(base_url=deployment.server.url, headers=headers, timeout=60)
        self._plans = LoggedPlans(postgres.folder / "log")
        self._numbers = count()
        self._sql(_WEBHOOK)
        self._fill(1, _FEW, "n % 2 = 0")
        self.update_statistics()
        self._fill(_FEW + 1, rows, f"n <= {rows // 2}")

    def _fill(self, first: int, last: int, old: str) -> None:
        inserts = [
            f"INSERT INTO {table} SELECT {values.format(old=old)}"  # noqa: S608 - ours alone
            f" FROM generate_series({first}, {last}) n"
            for table, values in _TABLES.items()
        ]
        without_triggers = "SET session_replication_role = replica"
        self._sql("; ".join([without_triggers, *inserts]))

    def update_statistics(self) -> None:
        """Let the planner know what is in the tables."""
        self._sql("VACUUM ANALYZE")

    def largest_read(self, wanted: _List) -> Read:
        """Return the most that a statement reads for a page of a list."""
        positions = (self.rows * quarter // 4 for quarter in (1, 3))
        cursors = ("", *(f"&cursor={wanted.cursor(position)}" for position in positions))
        self._plans.skip()
        for cursor, _ in product(cursors, range(_TIMES)):
            different = f"different={next(self._numbers)}"  # else it would come from memory
            page = self.http.get(f"{wanted.target}limit={_PAGE}{cursor}&{different}")
            page.raise_for_status()
        pages = [one for one in self._plans.read() if _is_page(one.sql, wanted)]
        assert pages, f"no plan of {wanted.target} was logged"
        return max(pages, key=lambda one: (one.blocks, one.rows))


def _is_page(sql: str, wanted: _List) -> bool:
    """Return whether a statement is one of a list, and not one of those in the background."""
    return re.search(rf"\bFROM {wanted.table}\b", sql) is not None and "LIMIT" in sql


def _run(trial: Trial) -> None:
    rows = int(min(max(trial.seconds * _ROWS_PER_SECOND, _MIN_ROWS), _MAX_ROWS))
    look(trial, rows, lists())


def look(trial: Trial, rows: int, wanted: list[_List]) -> None:
    """Expect each page of each list to read about its own rows, in a store of so many."""
    with (
        postgres_server(**SETTINGS, autovacuum="off") as postgres,
        deployed(trial.folder / "store", postgres=postgres) as deployment,
    ):
        store = _Store(postgres, deployment, rows)
        trial.note_max("rows of each table", rows)
        ends = time.monotonic() + trial.seconds * (1 - _SHARE_OF_FILLING) / 2
        _look_at_lists(trial, store, wanted, "outdated", ends)
        store.update_statistics()
        ends = time.monotonic() + trial.seconds * (1 - _SHARE_OF_FILLING) / 2
        _look_at_lists(trial, store, wanted, "current", ends)
        store.http.close()


def _look_at_lists(
    trial: Trial, store: _Store, wanted: list[_List], statistics: str, ends: float
) -> None:
    """Look at all lists, in any order, or at those for which there is time."""
    for number, one in enumerate(trial.random.sample(wanted, len(wanted))):
        if number and time.monotonic() > ends:
            left = len(wanted) - number
            trial.skipped.append(f"{left} lists with {statistics} statistics: no time was left")
            return
        _judge(trial, one.target, statistics, store.largest_read(one))


def _judge(trial: Trial, target: str, statistics: str, read: Read) -> None:
    trial.count(f"lists with {statistics} statistics")
    trial.note_max("most blocks for a page", read.blocks)
    trial.note_max("most rows read for a page", read.rows)
    trial.expect(
        read.blocks <= _MAX_BLOCKS and read.rows <= _MAX_ROWS_READ,
        f"{target} with {statistics} statistics: {read.blocks:,} blocks, {read.rows:,} rows",
    )


EXPERIMENTS = [
    Experiment(
        "plans of PostgreSQL",
        "On PostgreSQL, page N of a list costs what page 1 costs, whatever is filtered, wherever"
        " it is in the list, and whatever the statistics of the planner say.",
        "Each table has many rows, and its older half has another value than the newer one: sold"
        " and available, delivered and cancelled. Three pages of each list with each combination"
        " of filters are requested six times each: while the planner knows only the first"
        f" {_FEW:,} rows, which have both values, and with current statistics. The server logs the"
        f" plan of each statement that the service runs. For a page of {_PAGE} it may read"
        f" {_MAX_BLOCKS} blocks, and {_MAX_ROWS_READ} rows.",
        _run,
        0.8,
        min_seconds=40,
    )
]
