"""Events: recorded in the transaction of their change, then read in the order of the commits.

SQLite runs one unit of work after another, so an event gets its place in the feed with its row. On
PostgreSQL units run side by side: the first to take a place may be the last to commit, and whoever
reads behind a place would miss its event. There a unit records to ``events_outbox``, and
``publish_events`` gives places to what has been committed.
"""

from collections.abc import Collection
from itertools import chain
from typing import NamedTuple

import msgspec
from msgspec import UNSET, Raw

from petstore.clock import Milliseconds, rfc3339_milliseconds
from petstore.databases.contract import Reader, Row, Statement, Store, Unit, placeholders
from petstore.domain.events import START, Event, NewEvent, Position, new_event_id
from petstore.errors import CursorExpired

_COLUMNS = "id, type, at, resource, key_id, data, previous"
_INSERT = f"INSERT INTO events/*pg _outbox */ ({_COLUMNS}) VALUES"
_WIDTH = 7
_SEARCHED_AT_ONCE = 2000
_PUBLISHED_AT_ONCE = 2000
_DELETED_AT_ONCE = 500
_PUBLISHER = 0x45564E54  # "EVNT": names the lock of whoever gives places

_encode = msgspec.json.Encoder().encode


class FeedPage(NamedTuple):
    """Events in order, the position to go on from, and whether nothing was left to search."""

    events: list[Event]
    position: Position
    is_last: bool


def record(now: Milliseconds, *events: NewEvent) -> Statement:
    """Return the INSERT of ``events``, which stay next to each other.

    It comes after the locks that the unit of work takes on what the events are about. So on
    PostgreSQL, too, events of one resource are in the order of its changes.
    """
    rows = (
        (
            new_event_id(),
            event.type,
            now,
            event.resource,
            event.key_id,
            _json(event.data),
            None if event.previous is None else _json(event.previous),
        )
        for event in events
    )
    return Statement(
        f"{_INSERT} {placeholders(_WIDTH, len(events))}",
        tuple(chain.from_iterable(rows)),
        name="insert_events",
        affects_pages=False,
    )


async def newest_position(store: Reader) -> Position:
    """Return the position behind the newest event."""
    return await _last_position(store, 2**63 - 1)


async def read_feed(
    store: Reader, types: Collection[str], key_id: int, after: Position | None, limit: int
) -> FeedPage:
    """Return the first ``limit`` events of these ``types`` after a position, else from the oldest.

    Of events about a key, those of ``key_id`` alone. It searches a bounded part of the feed: the
    page may be empty although the feed goes on.

    Raises:
        CursorExpired: the event at the position was deleted, or is of another history.
    """
    if after is None or after == START:
        oldest = await store.read(
            Statement("SELECT min(sequence) FROM events", name="select_oldest_event")
        )
        first = (oldest[0][0] or 1) - 1
        if after is not None and first > 0:
            raise _expired()
    else:
        first = after.sequence
    end = await _last_position(store, first + _SEARCHED_AT_ONCE)
    kinds = tuple(types)
    names = ", ".join(f"?{n}" for n in range(5, 5 + len(kinds))) or "NULL"
    rows = await store.read(
        Statement(
            f"SELECT sequence, {_COLUMNS} FROM events WHERE sequence >= ?1 AND sequence <= ?2"  # noqa: S608
            f" AND (sequence = ?1 OR type IN ({names}) AND (key_id IS NULL OR key_id = ?3))"
            " ORDER BY sequence LIMIT ?4",
            (first, end.sequence, key_id, limit + 2, *kinds),
            name="select_events",
        )
    )
    known = [Position.behind(*row[:2]) for row in rows[:1] if row[0] == first]
    if after not in (None, START, *known):
        raise _expired()
    found = rows[len(known) :]
    events = [_event_of(row) for row in found[:limit]]
    if len(found) > limit:
        return FeedPage(events, Position.behind(*found[limit - 1][:2]), is_last=False)
    is_last = end.sequence < first + _SEARCHED_AT_ONCE
    return FeedPage(events, end if end.sequence > first else after or end, is_last)


async def read_event(store: Reader, sequence: int, event_id: str) -> Event | None:
    """Return one event, or ``None`` if it is not kept any more."""
    select = Statement(
        f"SELECT sequence, {_COLUMNS} FROM events WHERE sequence = ?1 AND id = ?2",  # noqa: S608
        (sequence, event_id),
        name="select_event",
    )
    rows = await store.read(select)
    return _event_of(rows[0]) if rows else None


async def recent_events(store: Reader, after: int) -> list[Row]:
    """Return sequence, type and key of the first events after ``after``, to tell whom they concern.

    They are a few thousand at most.
    """
    select = Statement(
        "SELECT sequence, type, key_id FROM events WHERE sequence > ?1 ORDER BY sequence LIMIT ?2",
        (after, _SEARCHED_AT_ONCE),
        name="select_recent_events",
    )
    return await store.read(select)


async def publish_all(store: Store) -> None:
    """Give places in the feed to all committed events (PostgreSQL alone).

    Raises:
        Unavailable: the database is out of reach or failing; the next call goes on.
    """
    select = "SELECT 1 FROM events_outbox ORDER BY position LIMIT 1"
    pending = Statement(select, name="select_unpublished_event")
    while await store.read(pending):
        if not await store.write(_publish()):
            return


def _publish() -> Unit[int]:
    """Give places to a batch of committed events; return how many.

    Events of one transaction stay together. A transaction that waited for another one has recorded
    its last event later, and so follows it. If another process is publishing, this does nothing.
    """
    ((may_publish,),) = yield Statement(
        "SELECT pg_try_advisory_xact_lock(?1)", (_PUBLISHER,), name="lock_feed"
    )
    if not may_publish:
        return 0
    ((count,),) = yield Statement(
        "WITH committed AS ("  # noqa: S608 - only names
        "  SELECT transaction, max(position) AS last,"
        "  sum(count(*)) OVER (ORDER BY max(position)) - count(*) AS before"
        "  FROM events_outbox GROUP BY transaction"
        "), taken AS ("
        "  DELETE FROM events_outbox o USING committed c"
        "  WHERE o.transaction = c.transaction AND c.before < ?1 RETURNING o.*, c.last"
        "), published AS ("
        f"  INSERT INTO events (sequence, {_COLUMNS})"
        "  SELECT (SELECT coalesce(max(sequence), 0) FROM events)"
        f"  + row_number() OVER (ORDER BY last, position), {_COLUMNS} FROM taken RETURNING 1"
        ") SELECT count(*) FROM published",
        (_PUBLISHED_AT_ONCE,),
        name="publish_events",
    )
    return int(count)


def prune_events(before: Milliseconds) -> Unit[int]:
    """Delete a batch of the events from before a moment, the oldest first; return how many.

    The newest event stays: its place is where the next one follows.
    """
    deleted = yield Statement(
        "DELETE FROM events WHERE at < ?1 AND sequence IN"
        " (SELECT sequence FROM events WHERE sequence < (SELECT max(sequence) FROM events)"
        " ORDER BY sequence LIMIT ?2) RETURNING sequence",
        (before, _DELETED_AT_ONCE),
        name="delete_events",
        affects_pages=False,
    )
    return len(deleted)


async def _last_position(store: Reader, up_to: int) -> Position:
    rows = await store.read(
        Statement(
            "SELECT sequence, id FROM events WHERE sequence <= ?1 ORDER BY sequence DESC LIMIT 1",
            (up_to,),
            name="select_last_event",
        )
    )
    return Position.behind(*rows[0]) if rows else START


def _expired() -> CursorExpired:
    msg = (
        "cursor: the events behind it are not kept any more, or an older backup was restored;"
        " read from the start without a cursor, or go on from cursor=latest"
    )
    return CursorExpired(msg)


def _event_of(row: Row) -> Event:
    sequence, event_id, kind, at, resource, _, data, previous = row
    return Event(
        id=event_id,
        type=kind,
        timestamp=rfc3339_milliseconds(at),
        resource=resource,
        sequence=sequence,
        data=Raw(data),
        previous=UNSET if previous is None else Raw(previous),
    )


def _json(value: object) -> str:
    return _encode(value).decode("utf-8")
