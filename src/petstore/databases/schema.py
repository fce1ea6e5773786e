"""The tables of the database: their keys, how long their rows are kept, and what is copied."""

from functools import partial
from typing import Literal, NamedTuple

from petstore.clock import DAY, HOUR, MINUTE, Clock, Milliseconds
from petstore.databases.contract import Statement, Store, Unit
from petstore.periodic_tasks import PeriodicTask

IDEMPOTENCY_RECORDS_KEPT: Milliseconds = DAY  # how long a retry gets the recorded response
HISTORY_KEPT: Milliseconds = 730 * DAY  # ended tokens, usage, events of keys and people
IMPORTS_KEPT: Milliseconds = 7 * DAY
"""How long an import is kept after it was last run, undone or changed."""


class Table(NamedTuple):
    """A table, and the columns of its primary key.

    Rows are deleted once their ``time`` is longer ago than ``kept_for``, which may be the name of a
    setting, and than ``at_least``; 0 is forever. The column ``time`` counts ``time_unit`` since the
    epoch, and has an index. Rows ``in_order`` of the key need none: they are deleted without gaps,
    but for the newest. If that is about rows that fulfil a condition ``only``, the table ``start``
    says from which row on all are kept. A unit of work deletes ``at_once`` rows. A table may have
    the ids of another one, and then gives none itself.
    """

    name: str
    key: tuple[str, ...]
    time: str = ""
    kept_for: Milliseconds | Literal["event_days"] = 0
    time_unit: Milliseconds = 1
    in_order: bool = False
    only: str = "true"
    start: str = ""
    at_once: int = 500
    is_copied: bool = True
    ids_of: str = ""
    at_least: Milliseconds = 0


TABLES = (
    Table("pets", ("id",)),
    Table("categories", ("id",)),
    Table("orders", ("id",)),
    Table(
        *("events", ("sequence",), "at", "event_days"),
        in_order=True,
        only="(key_id IS NULL OR key_id > 0)",
        start="feed_start",
    ),
    Table("feed_start", ("one",)),
    Table("callers", ("id",)),
    Table("api_keys", ("id",), ids_of="callers"),
    Table("people", ("id",), ids_of="callers"),
    Table("api_key_tokens", ("digest",), "expires_at", HISTORY_KEPT),
    Table("api_key_revision", ("one",)),
    Table("webhooks", ("id",)),
    # Pending ones are deleted too: their events are not kept for longer.
    Table("webhook_deliveries", ("id",), "created_at", "event_days", in_order=True),
    Table("rate_limits", ("key_id",)),
    Table("usage", ("key_id", "day"), "day", HISTORY_KEPT, DAY),
    Table(
        "idempotency_records", ("key_id", "idempotency_key"), "kept_at", IDEMPOTENCY_RECORDS_KEPT
    ),
    # 30 days are shown, today included.
    Table("counts", ("kind", "key_id", "name", "hour"), "hour", 31 * DAY, HOUR),
    # A notice is told once a month or more often, and could be told again once its row is gone.
    Table("key_notices", ("key_id", "notice", "period"), "noticed_at", 62 * DAY),
    Table("console_sessions", ("digest",), "expires_at", 10 * MINUTE),
    Table("invitations", ("digest",), "expires_at", 10 * MINUTE),
    # With each import, all its rows are deleted.
    Table("imports", ("id",), "touched_at", IMPORTS_KEPT, at_once=1),
    Table("import_batches", ("import_id", "first")),
    # PostgreSQL keeps them in another form.
    Table("pet_words", ("term", "item_id"), is_copied=False),
    Table("pet_words_queue", ("item_id",), is_copied=False),
    Table("order_words", ("term", "item_id"), is_copied=False),
    Table("order_words_queue", ("item_id",), is_copied=False),
    Table("inventory", ("status",), is_copied=False),
    Table("category_inventory", ("category_id",), is_copied=False),
    Table("events_outbox", ("position",), is_copied=False),
)
"""All tables, a referenced table before the one that refers to it: rows are copied in this order.

SQLite has no ``events_outbox``.
"""

TABLES_BY_NAME = {table.name: table for table in TABLES}

ADMIN_EVENTS = TABLES_BY_NAME["events"]._replace(at_least=HISTORY_KEPT, only="key_id < 0", start="")
"""The events of administrators, which are kept for two years or, if longer, like others."""

_PAUSE_SECONDS = 0.05


def pruning(store: Store, clock: Clock, event_days: int) -> PeriodicTask:
    prune = partial(prune_all, store, clock, event_days)
    return PeriodicTask(prune, 60, "old records not deleted")


async def prune_all(store: Store, clock: Clock, event_days: int) -> None:
    import asyncio  # here, so that `petstore --help` is instant

    for table in (*TABLES, ADMIN_EVENTS):
        time = event_days * DAY if table.kept_for == "event_days" else table.kept_for
        time = max(time, table.at_least)
        if time == 0:
            continue
        while await store.write(prune(table, clock() - time)):  # noqa: ASYNC110 - waits for nothing
            await asyncio.sleep(_PAUSE_SECONDS)


def prune(table: Table, before: Milliseconds) -> Unit[int]:
    if table.in_order:
        return (yield from _prune_in_order(table, before))
    which = are_first(table.name, f"{table.time} < ?1 ORDER BY {table.time} LIMIT ?2")
    deleted = yield Statement(
        f"DELETE FROM {table.name} WHERE {which} RETURNING 1",  # noqa: S608 - only names
        (before // table.time_unit, table.at_once),
        name="delete_aged_rows",
    )
    return len(deleted)


def _prune_in_order(table: Table, before: Milliseconds) -> Unit[int]:
    """Leave no gaps, even if a clock was late, and the newest row: the next one follows it."""
    name, (key,), only = table.name, table.key, table.only
    oldest = yield Statement(
        f"SELECT {key}, {table.time} FROM {name} WHERE {only} ORDER BY {key} LIMIT ?1",  # noqa: S608 - only names
        (table.at_once + 1,),
        name="select_oldest_rows",
    )
    kept = next((row[0] for row in oldest if row[1] >= before or row is oldest[-1]), 0)
    deleted = yield Statement(
        f"DELETE FROM {name} WHERE {key} < ?1 AND {only} RETURNING {key}",  # noqa: S608 - only names
        (kept,),
        name="delete_oldest_rows",
    )
    if deleted and table.start:
        yield Statement(
            f"INSERT INTO {table.start} (one, {key}) VALUES (1, ?1) ON CONFLICT (one) DO UPDATE"  # noqa: S608
            f" SET {key} = excluded.{key} WHERE {table.start}.{key} < excluded.{key}",
            (kept,),
            name="save_feed_start",
        )
    return len(deleted)


def are_first(table: str, which: str) -> str:
    """Return the SQL of a condition: rows are ``which``, a condition with an order and a limit."""
    # By its key, each row of the batch may be compared with the whole table: PostgreSQL plans so
    # as long as the table was empty when it was last analyzed. By its place, a row needs no plan.
    key, rows = ", ".join(TABLES_BY_NAME[table].key), f"FROM {table} WHERE {which}"
    return (
        f"/*sqlite*/ ({key}) IN (SELECT {key} {rows}) /*end*/"
        f" /*pg ctid = ANY (ARRAY (SELECT ctid {rows} FOR UPDATE SKIP LOCKED)) */"
    )
