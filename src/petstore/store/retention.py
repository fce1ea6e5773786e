"""What is deleted once it is old, in batches so small that no change waits for one."""

from collections.abc import Callable
from typing import NamedTuple

from petstore.clock import Clock, Milliseconds
from petstore.databases.contract import Statement, Store, Unit

BATCH = 500
_PAUSE_SECONDS = 0.05


class Retained(NamedTuple):
    """What is kept for a time, and how to delete a batch of it from before a moment.

    ``prune`` returns how many rows it has deleted. A time of 0 is forever.
    """

    prune: Callable[[Milliseconds], Unit[int]]
    time: Milliseconds


async def prune_all(store: Store, clock: Clock, retained: tuple[Retained, ...]) -> None:
    """Delete what is old, one batch after another until nothing is left to delete.

    Several processes may do so at once.

    Raises:
        Unavailable: the database is unreachable, full or failing; the next call continues.
    """
    import asyncio  # here, so that `petstore --help` is instant

    for prune, time in retained:
        if time == 0:
            continue
        while await store.write(prune(clock() - time)):  # noqa: ASYNC110 - it waits for nothing
            await asyncio.sleep(_PAUSE_SECONDS)


def prune_in_order(table: str, key: str, before: Milliseconds, time: str = "at") -> Unit[int]:
    """Delete a batch of a table whose rows are in order of a ``time``; return how many.

    What is left has no gaps, even if a clock was late. The newest row stays: the next one follows.
    """
    oldest = yield Statement(
        f"SELECT {key}, {time} FROM {table} ORDER BY {key} LIMIT ?1",  # noqa: S608 - only names
        (BATCH + 1,),
        name="select_oldest_rows",
    )
    kept = next((row[0] for row in oldest if row[1] >= before or row is oldest[-1]), 0)
    deleted = yield Statement(
        f"DELETE FROM {table} WHERE {key} < ?1 RETURNING {key}",  # noqa: S608 - only names
        (kept,),
        name="delete_oldest_rows",
        affects_pages=False,
    )
    return len(deleted)


def prune_by_age(table: str, key: str, age: str, before: int, at_once: int = BATCH) -> Unit[int]:
    """Delete ``at_once`` rows whose ``age``, an indexed column, is below ``before``.

    ``key`` are the columns of the primary key. Return how many were deleted. Rows that another
    process is just deleting or changing stay.
    """
    which = are_first(table, key, f"{age} < ?1 ORDER BY {age} LIMIT ?2")
    deleted = yield Statement(
        f"DELETE FROM {table} WHERE {which} RETURNING 1",  # noqa: S608 - only names
        (before, at_once),
        name="delete_aged_rows",
        affects_pages=False,
    )
    return len(deleted)


def are_first(table: str, key: str, which: str) -> str:
    """Return the SQL of a condition: rows are ``which``, a condition with an order and a limit.

    ``key`` are the columns of the primary key. Rows that another process is just deleting or
    changing are left out.
    """
    # By its key, each row of the batch may be compared with the whole table: PostgreSQL plans so
    # as long as the table was empty when it was last analyzed. By its place, a row needs no plan.
    rows = f"FROM {table} WHERE {which}"
    return (
        f"/*sqlite*/ ({key}) IN (SELECT {key} {rows}) /*end*/"
        f" /*pg ctid = ANY (ARRAY (SELECT ctid {rows} FOR UPDATE SKIP LOCKED)) */"
    )
