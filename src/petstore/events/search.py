"""Search events: all, or by an index the events of a resource, an actor or administrators."""

from collections.abc import Collection
from functools import lru_cache
from typing import NamedTuple

from petstore.clock import Milliseconds
from petstore.databases.contract import Reader, Statement, Value, placeholder_list
from petstore.databases.pages import LAST_ID, index_range, limited_subquery, opaque_parameter
from petstore.errors import CursorExpired
from petstore.events.model import ADMIN_EVENT_TYPES, START, Event, EventType, Position
from petstore.events.store import COLUMNS, event_of, last_position

_SEARCHED_AT_ONCE = 2000


class EventFilter(NamedTuple):
    """Of the events that only some may read, those with one of these ``key_ids`` are wanted."""

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
    def indexed(self) -> tuple[str, Value]:
        """A column with an index and its value, or no column for the feed itself."""
        if self.resource:
            return "resource", self.resource
        if self.actor:
            return "actor", self.actor
        return ("key_id", self.key_ids[1]) if self.is_kept_long else ("", None)


class FeedPage(NamedTuple):
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
    """It searches a bounded part of the feed: the page may be empty although more events follow."""
    if newest_first:
        return await _read_newest(store, wanted, after, limit)
    first = 0 if after is None else after.sequence
    if after is None and not wanted.is_kept_long:
        select = "SELECT coalesce((SELECT sequence FROM feed_start), 1)"
        ((start,),) = await store.read(Statement(select, name="select_start_of_feed"))
        first = start - 1
    beyond = first + _SEARCHED_AT_ONCE  # the feed has no gaps
    if wanted.indexed[0]:
        beyond = await _bound(store, wanted, first, newest_first=False)
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
    low = await _bound(store, wanted, last, newest_first=True)
    found = await _read(store, wanted, low, last, limit, newest_first=True)
    if len(found) > limit:
        return FeedPage(found[:limit], _behind(found[limit - 1]), is_last=False)
    return FeedPage(found, await last_position(store, low) if low else START, is_last=not low)


async def _require_kept(store: Reader, after: Position, wanted: EventFilter) -> None:
    """Reject a position if wanted events after it may be gone, or it is of another history."""
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
    (column, value), kinds = wanted.indexed, tuple(wanted.types)
    values: list[Value] = [first, last, limit + 1, *wanted.key_ids]
    values += [value] if column else []
    is_by = bool(wanted.resource and wanted.actor)
    values += [wanted.actor] if is_by else []
    types = placeholder_list(len(values) + 1, kinds)
    sql = _select(column, types, is_by, newest_first)
    name = "select_indexed_events" if column else "select_events"
    rows = await store.read(Statement(sql, (*values, *kinds), name=name))
    return [event_of(row) for row in rows]


@lru_cache(maxsize=256)
def _select(column: str, types: str, is_by: bool, newest_first: bool) -> str:  # noqa: FBT001 - a key
    start, end = ("?2", ">= ?1") if newest_first else ("?1", "<= ?2")
    wanted = f"type IN ({types}) AND (key_id IS NULL OR key_id IN (?4, ?5))"
    if is_by:
        wanted += " AND actor || '' = ?7"  # so that no index is searched by it
    found = _range(column, 6, start, end, wanted, descending=newest_first)
    select = f"SELECT sequence, {COLUMNS} FROM events {found}"  # noqa: S608 - only names
    return f"{limited_subquery(select) if column else select} LIMIT ?3"


async def _bound(store: Reader, wanted: EventFilter, start: int, *, newest_first: bool) -> int:
    """Return the last event that one search reads, else the end or the start of the feed."""
    column, value = wanted.indexed
    values = [start, value] if column else [start]
    found = _range(column, 2, "?1", descending=newest_first)
    nth = f"SELECT sequence FROM events {found} LIMIT 1 OFFSET {_SEARCHED_AT_ONCE - 1}"  # noqa: S608
    end = 0 if newest_first else LAST_ID
    select = Statement(f"SELECT coalesce(({nth}), {end})", values, name="select_end_of_search")
    return int((await store.read(select))[0][0])


def _range(
    column: str, number: int, start: str, end: str = "", rest: str = "", *, descending: bool = False
) -> str:
    """``column`` is of an index, if any; ``end`` is an operator and a position."""
    rest = " AND ".join(filter(None, (rest, "key_id < 0" if column == "key_id" else "")))
    beyond, order = ("<", " DESC") if descending else (">", "")
    conditions = [f"{column} = ?{number}"] if column else []
    conditions += [f"sequence {beyond} {start}", f"sequence {end}" if end else "", rest]
    plain = f"WHERE {' AND '.join(filter(None, conditions))} ORDER BY sequence{order}"
    if not column:
        return plain
    value = opaque_parameter(number, int if column == "key_id" else str)
    if end:
        operator, _, position = end.partition(" ")
        rest = f"({column}, sequence) {operator} ({value}, {position}) AND {rest}"
    in_index = index_range([column], [value], "sequence", start, descending=descending, rest=rest)
    return f"/*sqlite*/ {plain} /*end*/ /*pg {in_index} */"


def _behind(event: Event) -> Position:
    return Position.behind(event.sequence, event.id)


def _expired() -> CursorExpired:
    msg = (
        "cursor: the events after it are no longer kept, or an older backup was restored;"
        " read from the start without a cursor, or continue with cursor=latest"
    )
    return CursorExpired(msg)


def count_since(since: Milliseconds, resource: str, kind: EventType, actor: str) -> Statement:
    """Events that are not in the feed yet count too."""
    return Statement(
        "SELECT count(*) FROM ("
        "SELECT type, actor, at FROM events WHERE resource = ?1 /*pg UNION ALL"
        " SELECT type, actor, at FROM events_outbox WHERE resource = ?1 */"
        ") AS found WHERE type = ?2 AND actor = ?3 AND at >= ?4",
        (resource, kind, actor, since),
        name="count_events",
    )
