"""Events, recorded in the transaction of their change and read in the order of the commits."""

from collections.abc import Callable, Collection
from contextlib import suppress
from functools import cache, partial
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, Raw

from petstore.clock import Milliseconds, rfc3339_milliseconds
from petstore.databases.contract import (
    Reader,
    Row,
    Statement,
    Store,
    Unit,
    Value,
    placeholder_list,
    placeholders,
)
from petstore.errors import Unavailable
from petstore.events.model import (
    SERVICE,
    START,
    Author,
    Event,
    NewEvent,
    Position,
    actor_of,
    new_event_id,
)
from petstore.keys.model import Caller, Environment
from petstore.periodic_tasks import PeriodicTask

COLUMNS = "id, type, at, resource, key_id, data, previous, actor, request_id"
_WIDTH = 9
_SEARCHED_AT_ONCE = 2000
_PUBLISHED_AT_ONCE = 2000
_PUBLISHER = 0x45564E54  # "EVNT": names the lock of the process that publishes

_UNPUBLISHED = Statement(
    "SELECT 1 /*sqlite*/ WHERE 1 = 0 /*end*/ /*pg FROM events_outbox ORDER BY position LIMIT 1 */",
    name="select_unpublished_event",
)

_encode = msgspec.json.Encoder().encode


def record(now: Milliseconds, *events: NewEvent, by: Author = SERVICE) -> Statement:
    """Return the INSERT of ``events`` caused by an author. They stay next to each other.

    It comes after the locks that the unit of work takes on what the events are about. So on
    PostgreSQL, too, events of one resource are in the order of its changes.
    """
    values: list[Value] = []
    for event in events:
        values += (
            new_event_id(),
            event.type,
            now,
            event.resource,
            event.key_id,
            _encode(event.data).decode(),
            None if event.previous is None else _encode(event.previous).decode(),
            *by,
        )
    return Statement(_insert(len(events)), values, deferrable=True, name="insert_events")


class Change(NamedTuple):
    """``check`` raises an error if the resource is another version than the client expects.

    A ``caller`` may do only what its scopes allow; without one, everything is allowed.
    ``find_caller`` finds it once more by what the client has shown, a token or a session, if that
    is still valid. ``credential`` is the digest of what it ends with.
    """

    now: Milliseconds
    by: Author = SERVICE
    check: Callable[[Any], None] = lambda _: None
    strict_categories: bool = False
    reservation_minutes: int = 0
    currency: str = "USD"
    caller: Caller | None = None
    address: str = ""
    find_caller: "Callable[[], Unit[Caller | None]] | None" = None
    credential: bytes | None = None

    @property
    def environment(self) -> Environment | None:
        """The environment whose keys and people it sees; ``None`` is all of them."""
        return self.caller.environment if self.caller else None

    def at(self, now: Milliseconds) -> "Change":
        return self._replace(now=now)

    def record(self, *events: NewEvent) -> Statement:
        return record(self.now, *events, by=self.by)


# On PostgreSQL the first unit to take a position may be the last to commit, and a reader past that
# position would miss its event. So units record to an outbox, and ``_publish`` moves what is
# committed.
@cache
def _insert(rows: int) -> str:
    values = placeholders(_WIDTH, rows)
    return f"INSERT INTO events/*pg _outbox */ ({COLUMNS}) VALUES {values}"  # noqa: S608 - only names


async def newest_position(store: Reader) -> Position:
    return await last_position(store, 2**63 - 1)


async def read_event(store: Reader, sequence: int, event_id: str) -> Event | None:
    select = Statement(
        f"SELECT sequence, {COLUMNS} FROM events WHERE sequence = ?1 AND id = ?2",  # noqa: S608
        (sequence, event_id),
        name="select_event",
    )
    rows = await store.read(select)
    return event_of(rows[0]) if rows else None


async def orders_at(store: Reader, sequences: Collection[int]) -> list[Event]:
    select = (
        f"SELECT sequence, {COLUMNS} FROM events"  # noqa: S608 - only names
        f" WHERE sequence IN ({placeholder_list(1, sequences)}) AND type LIKE 'order.%'"
    )
    statement = Statement(select, tuple(sequences), name="select_events_of_orders")
    return [event_of(row) for row in await store.read(statement)]


async def deliverers_of(store: Reader, orders: Collection[int]) -> dict[int, str]:
    if not orders:
        return {}
    resources = [f"order/{order_id}" for order_id in orders]
    select = (
        f"SELECT resource, actor FROM events WHERE resource IN ({placeholder_list(1, resources)})"  # noqa: S608
        " AND type = 'order.delivered'"
    )
    rows = await store.read(Statement(select, resources, name="select_deliverers"))
    return {int(resource.partition("/")[2]): actor or "service" for resource, actor in rows}


async def recent_events(store: Reader, after: int) -> list[Row]:
    """Return sequence, type, key, resource and author of the first events after ``after``."""
    select = Statement(
        "SELECT sequence, type, key_id, resource, actor FROM events WHERE sequence > ?1"
        " ORDER BY sequence LIMIT ?2",
        (after, _SEARCHED_AT_ONCE),
        name="select_recent_events",
    )
    return await store.read(select)


async def publish_all(store: Store) -> None:
    """Move all committed events to the feed (PostgreSQL alone)."""
    limit = _PUBLISHED_AT_ONCE
    while await store.read(_UNPUBLISHED):
        published = await store.write(_publish(limit, "pg_try_advisory_xact_lock(?1)"))
        if published is None or 0 < published < limit:  # else each look costs as much as a move
            return
        # None at all: a transaction has recorded more events than were looked at.
        limit = _PUBLISHED_AT_ONCE if published else 2 * limit


async def publish_first(store: Store) -> None:
    """Move what is committed by now to the feed, up to a few thousand events, if that works."""
    if await store.read(_UNPUBLISHED):
        lock = "pg_advisory_xact_lock(?1) IS NOT NULL"  # of a process that is just publishing
        with suppress(Unavailable):
            await store.write(_publish(_PUBLISHED_AT_ONCE, lock))


def publishing(store: Store) -> PeriodicTask:
    return PeriodicTask(partial(publish_all, store), 0.05, "cannot publish events to the feed")


async def oldest_unpublished(store: Reader) -> Milliseconds | None:
    select = "SELECT at FROM events_outbox ORDER BY position LIMIT 1"
    rows = await store.read(Statement(select, name="select_oldest_unpublished"))
    return rows[0][0] if rows else None


def _publish(limit: int, lock: str) -> Unit[int | None]:
    """Return how many events were moved, ``None`` while another process publishes.

    Events of one transaction stay together. One that waited for another one follows it.
    """
    # The outbox is empty in one moment and long in the next, so what the planner believes about it
    # is often wrong. Each way that is left to it takes time in proportion to the events.
    ((may_publish, *_),) = yield Statement(
        f"SELECT {lock},"
        " set_config('plan_cache_mode', 'force_custom_plan', true),"
        " set_config('enable_nestloop', 'off', true), set_config('enable_seqscan', 'off', true)",
        (_PUBLISHER,),
        name="lock_feed",
    )
    if not may_publish:
        return None
    ((count,),) = yield Statement(
        "WITH first AS MATERIALIZED ("  # noqa: S608 - only names
        "  SELECT transaction, position FROM events_outbox ORDER BY position LIMIT ?1"
        "), whole AS MATERIALIZED ("
        "  SELECT transaction, max(position) AS last FROM first GROUP BY transaction"
        # OFFSET 0 keeps it a search for each transaction, and + 0 one by its index.
        "  HAVING NOT EXISTS (SELECT 1 FROM events_outbox o"
        "  WHERE o.transaction = first.transaction"
        "  AND o.position + 0 > (SELECT max(position) FROM first) OFFSET 0)"
        "), taken AS ("
        "  DELETE FROM events_outbox o USING whole w"
        "  WHERE o.transaction = w.transaction"
        "  AND o.position <= (SELECT max(position) FROM first) RETURNING o.*, w.last"
        "), published AS ("
        f"  INSERT INTO events (sequence, {COLUMNS})"
        "  SELECT (SELECT coalesce(max(sequence), 0) FROM events)"
        f"  + row_number() OVER (ORDER BY last, position), {COLUMNS} FROM taken RETURNING 1"
        ") SELECT count(*) FROM published",
        (limit,),
        name="publish_events",
    )
    return int(count)


async def last_position(store: Reader, up_to: int) -> Position:
    rows = await store.read(
        Statement(
            "SELECT sequence, id FROM events WHERE sequence <= ?1 ORDER BY sequence DESC LIMIT 1",
            (up_to,),
            name="select_last_event",
        )
    )
    return Position.behind(*rows[0]) if rows else START


def event_of(row: Row) -> Event:
    sequence, event_id, kind, at, resource, _, data, previous, author, request_id = row
    return Event(
        id=event_id,
        type=kind,
        timestamp=rfc3339_milliseconds(at),
        resource=resource,
        sequence=sequence,
        data=Raw(data),
        previous=UNSET if previous is None else Raw(previous),
        actor=actor_of(author),
        request_id=UNSET if request_id is None else request_id,
    )
