"""What is deleted once it is old, in batches so small that no change waits for one."""

from collections.abc import Mapping
from functools import partial
from typing import TypeAlias

from petstore.clock import DAY, Clock, Milliseconds
from petstore.databases.contract import Statement, Store, Unit
from petstore.databases.schema import ADMIN_EVENTS, TABLES, TABLES_BY_NAME, RetentionSetting, Table
from petstore.periodic_tasks import PeriodicTask

_PAUSE_SECONDS = 0.05

RetentionDays: TypeAlias = Mapping[RetentionSetting, int]
"""How long some tables are kept, by setting."""


def pruning(store: Store, clock: Clock, days: RetentionDays) -> PeriodicTask:
    prune = partial(prune_all, store, clock, days)
    return PeriodicTask(prune, 60, "old records not deleted")


async def prune_all(store: Store, clock: Clock, days: RetentionDays) -> None:
    import asyncio  # here, so that `petstore --help` is instant

    for table in (*TABLES, ADMIN_EVENTS):
        kept_for = table.kept_for
        time = days[kept_for] * DAY if isinstance(kept_for, str) else kept_for
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
