"""Search events: all of them, or those of a resource, an author or the administrators.

PostgreSQL finds those by an index. SQLite finds them in ``event_index``, to which ``list_all`` adds
events soon after their commit: a change need not pay for an index. Those that are not there yet are
among the last ones of the feed.
"""

from collections.abc import Collection
from functools import lru_cache, partial
from typing import NamedTuple

from petstore.chores import PeriodicTask
from petstore.clock import Milliseconds
from petstore.databases.contract import Reader, Statement, Store, Unit, Value, placeholder_list
from petstore.databases.pages import LAST_ID, SHORT, index_range, opaque_parameter
from petstore.errors import CursorExpired
from petstore.events.model import ADMIN_EVENT_TYPES, START, Event, EventType, Position
from petstore.events.store import COLUMNS, event_of, last_position

_SEARCHED_AT_ONCE = 2000
_LISTED_AT_ONCE = 500
_LISTED = "coalesce((SELECT sequence FROM event_index WHERE term = ''), 0)"
_SELECTED = f"sequence, {COLUMNS}"
_COLUMNS = ", ".join(f"e.{column}" for column in COLUMNS.split(", "))
_TERMS = {"resource": "{}", "actor": "'by ' || {}", "key_id": "'for ' || {}"}
"""The term in ``event_index`` of the value of a column."""

_BEYOND = f"LIMIT 1 OFFSET {_SEARCHED_AT_ONCE - 1}"


class EventFilter(NamedTuple):
    """Which events are wanted: of these ``types``, and perhaps of a resource or by an actor.

    Of the events that only some may read, those with one of these ``key_ids``.
    """

    types: Collection[str]
    key_ids: tuple[int, int]
    resource: str = ""
    actor: str = ""

    @property
    def is_kept_long(self) -> bool:
        is_admin = self.key_ids[1] < 0
        return is_admin and (
            self.resource.startswith(("key/", "person/")) or {*ADMIN_EVENT_TYPES} >= {*self.types}
        )

    @property
    def indexed(self) -> tuple[str, Value] | None:
        if self.resource:
            return "resource", self.resource
        if self.actor:
            return "actor", self.actor
        return ("key_id", self.key_ids[1]) if self.is_kept_long else None


class FeedPage(NamedTuple):
    """Events in order, the position to continue from, and whether nothing was left to search."""

    events: list[Event]
    position: Position
    is_last: bool


async def read_events(
    store: Reader,
    wanted: EventFilter,
    after: Position | None,
    limit: int,
    *,
    newest_first: bool = False,
) -> FeedPage:
    """Return the first ``limit`` wanted events after a position, else from the oldest or newest.

    It searches a bounded part of the feed: the page may be empty although more events follow.
    """
    if newest_first:
        return await _read_newest(store, wanted, after, limit)
    first = 0 if after is None else after.sequence
    if after is None and not wanted.is_kept_long:
        select = "SELECT coalesce((SELECT sequence FROM feed_start), 1)"
        ((start,),) = await store.read(Statement(select, name="select_start_of_feed"))
        first = start - 1
    index = wanted.indexed
    beyond = first + _SEARCHED_AT_ONCE if index is None else await _end(store, index, first)
    end = await last_position(store, beyond)
    found = await _read(store, wanted, first, end.sequence, limit)
    if after is not None:  # asked last: the first events may just be deleted
        await _require_kept(store, after, wanted)
    if len(found) > limit:
        return FeedPage(found[:limit], _behind(found[limit - 1]), is_last=False)
    position = end if end.sequence > first else after or end
    return FeedPage(found, position, is_last=end.sequence < beyond)


async def _read_newest(
    store: Reader, wanted: EventFilter, before: Position | None, limit: int
) -> FeedPage:
    last = LAST_ID if before is None else before.sequence
    if before is not None:
        there = await last_position(store, last)
        is_other = there.sequence == last and there != before
        # What was deleted since has nothing before it that is left.
        if is_other or last > (await last_position(store, LAST_ID)).sequence:
            raise _expired()
    low = await _low(store, wanted.indexed, last)
    found = await _read(store, wanted, low, last, limit, newest_first=True)
    if len(found) > limit:
        return FeedPage(found[:limit], _behind(found[limit - 1]), is_last=False)
    return FeedPage(found, await last_position(store, low) if low else START, is_last=not low)


async def _require_kept(store: Reader, after: Position, wanted: EventFilter) -> None:
    """Refuse a position if wanted events after it may be gone, or it is of another history."""
    ((start, oldest, event_id),) = await store.read(
        Statement(
            "SELECT coalesce((SELECT sequence FROM feed_start), 1),"
            " coalesce((SELECT min(sequence) FROM events), 1),"
            " (SELECT id FROM events WHERE sequence = ?1)",
            (after.sequence,),
            name="select_kept_position",
        )
    )
    if after == START:
        is_kept = start == oldest == 1
    else:
        is_known = event_id is not None and after == Position.behind(after.sequence, event_id)
        is_kept = is_known and (wanted.is_kept_long or start <= after.sequence)
    if not is_kept:
        raise _expired()


async def _read(
    store: Reader,
    wanted: EventFilter,
    first: int,
    last: int,
    limit: int,
    *,
    newest_first: bool = False,
) -> list[Event]:
    """Return up to one more than ``limit`` events after one place up to another."""
    index, kinds = wanted.indexed, tuple(wanted.types)
    values: list[Value] = [first, last, limit + 1, *wanted.key_ids]
    if index is not None:
        values.append(index[1])
    is_by = bool(wanted.resource and wanted.actor)
    if is_by:
        values.append(wanted.actor)
    types = placeholder_list(len(values) + 1, kinds)
    sql = _select("" if index is None else index[0], types, is_by, newest_first)
    name = "select_events" if index is None else "select_indexed_events"
    rows = await store.read(Statement(sql, (*values, *kinds), name=name))
    return [event_of(row) for row in rows]


@lru_cache(maxsize=256)
def _select(column: str, types: str, is_by: bool, newest_first: bool) -> str:  # noqa: FBT001 - a key
    above, below, order = (">=", "<", " DESC") if newest_first else (">", "<=", "")
    wanted = f"type IN ({types}) AND (key_id IS NULL OR key_id IN (?4, ?5))"
    if is_by:
        wanted += " AND actor = ?7"
    part = f"sequence {above} ?1 AND sequence {below} ?2"
    if not column:
        return (
            f"SELECT {_SELECTED} FROM events WHERE {part} AND {wanted}"  # noqa: S608 - only names
            f" ORDER BY sequence{order} LIMIT ?3"
        )
    # SQLite: in the order of the index, which has the sequence of each event.
    indexed = (
        f"SELECT i.sequence, {_COLUMNS} FROM event_index i"  # noqa: S608
        " CROSS JOIN events e ON e.sequence = i.sequence"
        f" WHERE i.term = {_TERMS[column].format('?6')} AND i.{part.replace('AND ', 'AND i.')}"
    )
    value = _unplanned(column, 6)
    start, end = ("?2", "?1") if newest_first else ("?1", "?2")
    rest = f"({column}, sequence) {above if newest_first else below} ({value}, {end}) AND {wanted}"
    found = _index_range(column, value, start, rest, descending=newest_first)
    return (
        f"SELECT /*sqlite*/ {_SELECTED} FROM ({indexed}) WHERE {wanted} UNION ALL"  # noqa: S608
        f" SELECT {_SELECTED} FROM events WHERE sequence > {_LISTED} AND {part}"
        f" AND {column} = ?6 AND {wanted} ORDER BY sequence{order} /*end*/"
        f" /*pg * FROM (SELECT {_SELECTED} FROM events {found} LIMIT {SHORT + 1}) AS page */"
        " LIMIT ?3"
    )


async def _end(store: Reader, index: tuple[str, Value], after: int) -> int:
    """Return how far a search after a place goes: few events of an index, and few new ones."""
    column, value = index
    found = _index_range(column, _unplanned(column, 1), "?2")
    sql = (
        f"SELECT /*sqlite*/ min(max({_LISTED}, ?2) + {_SEARCHED_AT_ONCE}, coalesce("  # noqa: S608
        f"(SELECT sequence FROM event_index WHERE term = {_TERMS[column].format('?1')}"
        f" AND sequence > ?2 ORDER BY sequence {_BEYOND}), {LAST_ID})) /*end*/"
        f" /*pg coalesce((SELECT sequence FROM events {found} {_BEYOND}), {LAST_ID}) */"
    )
    ((end,),) = await store.read(Statement(sql, (value, after), name="select_end_of_search"))
    return int(end)


async def _low(store: Reader, index: tuple[str, Value] | None, before: int) -> int:
    """Return how far down a search before a place goes, 0 if to the oldest event."""
    newest = f"ORDER BY sequence DESC {_BEYOND}"
    if index is None:
        sql = f"SELECT coalesce((SELECT sequence FROM events WHERE sequence < ?1 {newest}), 0)"  # noqa: S608
        values: tuple[Value, ...] = (before,)
    else:
        column, value = index
        found = _index_range(column, _unplanned(column, 1), "?2", descending=True)
        sql = (
            "SELECT /*sqlite*/ max(coalesce((SELECT sequence FROM event_index"  # noqa: S608
            f" WHERE term = {_TERMS[column].format('?1')} AND sequence < ?2 {newest}), 0),"
            f" coalesce((SELECT sequence FROM events WHERE sequence > {_LISTED}"
            f" AND sequence < ?2 {newest}), 0)) /*end*/"
            f" /*pg coalesce((SELECT sequence FROM events {found} {_BEYOND}), 0) */"
        )
        values = (value, before)
    ((low,),) = await store.read(Statement(sql, values, name="select_end_of_search"))
    return int(low)


def _unplanned(column: str, number: int) -> str:
    return opaque_parameter(number, int if column == "key_id" else str)


def _index_range(
    column: str, value: str, after: str, rest: str = "", *, descending: bool = False
) -> str:
    if column == "key_id":  # the condition of the index
        rest = f"{rest} AND key_id < 0".removeprefix(" AND ")
    return index_range([column], [value], "sequence", after, descending=descending, rest=rest)


def _behind(event: Event) -> Position:
    return Position.behind(event.sequence, event.id)


def _expired() -> CursorExpired:
    msg = (
        "cursor: the events after it are no longer kept, or an older backup was restored;"
        " read from the start without a cursor, or continue with cursor=latest"
    )
    return CursorExpired(msg)


def count_since(since: Milliseconds, resource: str, kind: EventType, actor: str) -> Statement:
    """Return the SELECT of how often an actor caused an event of a resource, in or after a moment.

    Events that are not in the feed yet count too.
    """
    return Statement(
        "SELECT count(*) FROM ("  # noqa: S608 - only names
        "SELECT /*sqlite*/ e.type, e.actor, e.at FROM event_index i"
        " CROSS JOIN events e ON e.sequence = i.sequence WHERE i.term = ?1 UNION ALL"
        f" SELECT type, actor, at FROM events WHERE sequence > {_LISTED} AND resource = ?1 /*end*/"
        " /*pg type, actor, at FROM events WHERE resource = ?1 UNION ALL"
        " SELECT type, actor, at FROM events_outbox WHERE resource = ?1 */"
        ") AS found WHERE type = ?2 AND actor = ?3 AND at >= ?4",
        (resource, kind, actor, since),
        name="count_events",
    )


async def list_all(store: Store) -> None:
    """Add what is new in the feed to ``event_index`` (SQLite alone)."""
    import asyncio  # here, so that `petstore --help` is instant

    new = f"SELECT 1 FROM events WHERE sequence > {_LISTED} LIMIT 1"  # noqa: S608
    pending = Statement(new, name="select_unlisted_event")
    while await store.read(pending):
        await store.write(_list_some())
        await asyncio.sleep(0)


def listing(store: Store) -> PeriodicTask:
    """Return what adds events to ``event_index`` soon after their commit (SQLite alone)."""
    return PeriodicTask(partial(list_all, store), 0.25, "cannot list events in their index")


def _list_some() -> Unit[None]:
    rows = yield Statement(
        "WITH new AS MATERIALIZED (SELECT sequence, resource, actor, key_id FROM events"  # noqa: S608
        f" WHERE sequence > {_LISTED} ORDER BY sequence LIMIT ?1)"
        " INSERT INTO event_index (term, sequence) SELECT resource, sequence FROM new"
        " UNION ALL SELECT 'by ' || actor, sequence FROM new WHERE actor IS NOT NULL"
        " UNION ALL SELECT 'for ' || key_id, sequence FROM new WHERE key_id < 0"
        " RETURNING sequence",
        (_LISTED_AT_ONCE,),
        name="insert_event_index",
    )
    if rows:  # or another process was faster
        yield Statement("DELETE FROM event_index WHERE term = ''", name="delete_listed")
        yield Statement(
            "INSERT INTO event_index (term, sequence) VALUES ('', ?1)",
            (max(row[0] for row in rows),),
            name="insert_listed",
        )
