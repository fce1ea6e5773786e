"""The events of one resource, in the order of the feed or the newest first.

PostgreSQL finds them by an index. SQLite finds them in ``event_resources``, to which ``list_all``
adds events soon after their commit: a change need not pay for an index. Those that are not there
yet are among the last ones of the feed.
"""

import asyncio
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache, partial
from typing import Any, NamedTuple

from msgspec import json

from petstore.chores import PeriodicTask
from petstore.clock import Milliseconds
from petstore.databases.contract import Reader, Row, Statement, Store, Unit, Value, placeholder_list
from petstore.databases.planner import LAST_ID, SHORT, index_range, unplanned
from petstore.events.model import START, Position
from petstore.events.store import (
    COLUMNS,
    FeedPage,
    event_of,
    expired,
    last_position,
    oldest_sequence,
)

ON_A_PAGE = 20
"""How many events a page of the newest has."""

_SEARCHED_AT_ONCE = 2000
_LISTED_AT_ONCE = 500
_UNPUBLISHED = 256
_AFTER, _BEFORE = (
    index_range(["resource"], [unplanned(1, str)], "sequence", "?2", descending=descending)
    for descending in (False, True)
)
_LISTED = "coalesce((SELECT sequence FROM event_resources WHERE resource = ''), 0)"
# In the order of the list, which has the sequence of each event.
_OF_RESOURCE = (
    f"SELECT r.sequence, {', '.join(f'e.{column}' for column in COLUMNS.split(', '))}"  # noqa: S608
    " FROM event_resources r CROSS JOIN events e ON e.sequence = r.sequence"
)
_BEYOND = f"LIMIT 1 OFFSET {_SEARCHED_AT_ONCE - 1}"
_SELECT_END = (
    f"SELECT /*sqlite*/ min(max({_LISTED}, ?2) + {_SEARCHED_AT_ONCE}, coalesce("  # noqa: S608
    "(SELECT sequence FROM event_resources WHERE resource = ?1 AND sequence > ?2"
    f" ORDER BY sequence {_BEYOND}), {LAST_ID})) /*end*/"
    f" /*pg coalesce((SELECT sequence FROM events {_AFTER} {_BEYOND}), {LAST_ID}) */"
)
PAST = "type, at, resource, data, previous, actor, request_id"
"""The columns of a ``PastEvent`` but for its sequence."""

_SELECT_LATEST = (
    f"SELECT /*sqlite*/ * FROM (SELECT sequence, 0, {PAST} FROM ({_OF_RESOURCE}"  # noqa: S608
    f" WHERE r.resource = ?1 AND r.sequence < ?2 ORDER BY r.sequence DESC LIMIT {ON_A_PAGE + 1}))"
    f" UNION ALL SELECT sequence, 0, {PAST} FROM events WHERE resource = ?1 AND sequence < ?2"
    f" AND sequence > max({_LISTED}, (SELECT max(sequence) FROM events) - {_SEARCHED_AT_ONCE})"
    f" /*end*/ /*pg * FROM (SELECT sequence, 0, {PAST} FROM events {_BEFORE}"
    f" LIMIT {ON_A_PAGE + 1}) AS kept"
    f" UNION ALL SELECT NULL, position, {PAST} FROM (SELECT * FROM events_outbox"
    f" ORDER BY position DESC LIMIT {_UNPUBLISHED}) AS recorded"
    f" WHERE resource = ?1 AND ?2 = {LAST_ID} */"
)
_SELECT_CAUSED = (
    f"SELECT * FROM (SELECT sequence, 0, {PAST} FROM events"  # noqa: S608 - only names
    f" WHERE sequence > coalesce((SELECT max(sequence) FROM events), 0) - {_SEARCHED_AT_ONCE}"
    " AND actor = ?1 AND type = ?2 ORDER BY sequence DESC LIMIT ?3) AS published"
    f" /*pg UNION ALL SELECT NULL, position, {PAST} FROM (SELECT * FROM events_outbox"
    f" ORDER BY position DESC LIMIT {_UNPUBLISHED}) AS recorded"
    " WHERE actor = ?1 AND type = ?2 */"
)


class PastEvent(NamedTuple):
    """An event as the console shows it. One that is still in the outbox has no ``sequence``."""

    sequence: int | None
    type: str
    at: Milliseconds
    resource: str
    data: Mapping[str, Any]
    previous: Mapping[str, Any] | None
    actor: str | None
    request_id: str | None

    @property
    def members_before(self) -> dict[str, Any]:
        """The members of the resource before a change; before a deletion is what ``data`` has."""
        members = {**self.data, **(self.previous or {})}
        return {name: value for name, value in members.items() if value is not None}


class PastEvents(NamedTuple):
    """Events, the newest first, and the sequence before which earlier ones are, if there are."""

    events: list[PastEvent]
    earlier: int | None


async def read_resource(
    store: Reader,
    types: Collection[str],
    key_id: int,
    after: Position | None,
    limit: int,
    resource: str,
) -> FeedPage:
    """Return what ``read_feed`` does, of one resource such as ``pet/17``.

    It searches a bounded number of the events of the resource.

    Raises:
        CursorExpired: the event at the position was deleted, or is of another history.
    """
    first = 0 if after is None else after.sequence
    statement = Statement(_SELECT_END, (resource, first), name="select_end_of_search")
    ((beyond,),) = await store.read(statement)
    end = await last_position(store, beyond)
    kinds = tuple(types)
    values: list[Value] = [resource, first, end.sequence, limit + 1, key_id, *kinds]
    sql = _select_feed(len(kinds))
    rows = await store.read(Statement(sql, values, name="select_events_of_resource"))
    # Asked last: the first events may just be deleted.
    if after == START:
        is_expired = await oldest_sequence(store) > 1
    else:
        is_expired = after is not None and await last_position(store, first) != after
    if is_expired:
        raise expired()
    events = [event_of(row) for row in rows[:limit]]
    if len(rows) > limit:
        return FeedPage(events, Position.behind(*rows[limit - 1][:2]), is_last=False)
    position = end if end.sequence > first else after or end
    return FeedPage(events, position, is_last=end.sequence < beyond)


@lru_cache(maxsize=64)
def _select_feed(types: int) -> str:
    selected = f"sequence, {COLUMNS}"
    wanted = f"type IN ({placeholder_list(6, range(types))}) AND (key_id IS NULL OR key_id = ?5)"
    return (
        f"SELECT /*sqlite*/ {selected} FROM ({_OF_RESOURCE} WHERE r.resource = ?1"  # noqa: S608
        f" AND r.sequence > ?2 AND r.sequence <= ?3) WHERE {wanted} UNION ALL"
        f" SELECT {selected} FROM events WHERE sequence > max({_LISTED}, ?2) AND sequence <= ?3"
        f" AND resource = ?1 AND {wanted} ORDER BY sequence /*end*/"
        f" /*pg * FROM (SELECT {selected} FROM events {_after_until(wanted)}"
        f" LIMIT {SHORT + 1}) AS page */ LIMIT ?4"
    )


def _after_until(wanted: str) -> str:
    """Return the range ``_AFTER`` up to the sequence ?3, with one more condition."""
    until = f"(resource, sequence) <= ({unplanned(1, str)}, ?3) AND {wanted}"
    return _AFTER.replace(" ORDER BY ", f" AND {until} ORDER BY ")


async def read_latest(store: Reader, resource: str, before: int | None = None) -> PastEvents:
    """Return the newest events of a resource, perhaps from before a sequence, the newest first.

    What is not in the feed yet comes before its newest events.
    """
    values = (resource, LAST_ID if before is None else before)
    statement = Statement(_SELECT_LATEST, values, name="select_latest_events")
    rows = await store.read(statement)
    _sort(rows)
    recorded = sum(row[0] is None for row in rows)
    shown = rows[: recorded + ON_A_PAGE]
    return PastEvents([past_event(row) for row in shown], shown[-1][0] if rows != shown else None)


async def read_caused(store: Reader, actor: str, kind: str, limit: int) -> list[PastEvent]:
    """Return the newest events of a type that an author caused, the newest first.

    It searches the last events of the feed, and what is not in the feed yet.
    """
    statement = Statement(_SELECT_CAUSED, (actor, kind, limit), name="select_caused_events")
    rows = await store.read(statement)
    _sort(rows)
    return [past_event(row) for row in rows[:limit]]


def _sort(rows: list[Row]) -> None:
    """Sort rows with the newest first: what is not in the feed yet, by its position."""
    rows.sort(key=lambda row: (row[0] is None, row[0] or row[1]), reverse=True)


async def orders_before(store: Reader, events: Iterable[PastEvent]) -> dict[int, PastEvent]:
    """Return the events of the orders that changed animals, by the sequences of theirs.

    The event of such an order is the one before that of its animal.
    """
    animals = {each.sequence: each for each in events if each.sequence is not None}
    names = placeholder_list(1, animals)
    statement = Statement(
        f"SELECT sequence, 0, {PAST} FROM events WHERE sequence IN ({names})"  # noqa: S608
        " AND type LIKE 'order.%'",
        [sequence - 1 for sequence in animals],
        name="select_events_of_orders",
    )
    found = {row[0] + 1: past_event(row) for row in await store.read(statement)}
    return {
        sequence: order
        for sequence, order in found.items()
        if animals[sequence].resource == f"pet/{order.data.get('petId')}"
    }


async def list_all(store: Store) -> None:
    """Add what is new in the feed to ``event_resources`` (SQLite alone).

    Raises:
        Unavailable: the database is locked, full or failing; the next call continues.
    """
    new = f"SELECT 1 FROM events WHERE sequence > {_LISTED} LIMIT 1"  # noqa: S608
    pending = Statement(new, name="select_unlisted_event")
    while await store.read(pending):
        await store.write(_list_some())
        await asyncio.sleep(0)


def listing(store: Store) -> PeriodicTask:
    """Return what adds events to ``event_resources`` soon after their commit (SQLite alone)."""
    return PeriodicTask(partial(list_all, store), 0.25, "cannot list events by their resources")


def _list_some() -> Unit[None]:
    """Add the first events that are missing."""
    rows = yield Statement(
        "INSERT INTO event_resources (resource, sequence)"  # noqa: S608 - only names
        f" SELECT resource, sequence FROM events WHERE sequence > {_LISTED}"
        " ORDER BY sequence LIMIT ?1 RETURNING sequence",
        (_LISTED_AT_ONCE,),
        name="insert_event_resources",
    )
    if rows:  # or another process was faster
        delete = "DELETE FROM event_resources WHERE resource = ''"
        yield Statement(delete, name="delete_listed")
        yield Statement(
            "INSERT INTO event_resources (resource, sequence) VALUES ('', ?1)",
            (rows[-1][0],),
            name="insert_listed",
        )


def past_event(row: Row) -> PastEvent:
    """Return the event in a row of its sequence, any value, and ``PAST``."""
    sequence, _, kind, at, resource, data, previous, author, request_id = row
    before = None if previous is None else json.decode(previous)
    return PastEvent(sequence, kind, at, resource, json.decode(data), before, author, request_id)
