"""What people and keys did, the newest first: events of the feed, and changes to keys and people.

Both are searched backwards in windows, some of them for each page: the work of a page is bounded,
however rare what is wanted may be. No index has authors or times: each change would pay for one.
"""

import asyncio
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from petstore.clock import SECOND, Milliseconds
from petstore.databases.contract import Reader, Row, Statement, Value, placeholder_list
from petstore.databases.planner import LAST_ID, looked_up
from petstore.events.history import PAST, PastEvent, past_event
from petstore.keys.history import CallerChange, change_of
from petstore.keys.model import Environment

ON_A_PAGE = 20
"""How many entries a page of the activity has at most."""

LAST_MOMENT: Milliseconds = LAST_ID
"""A moment after all others."""

_WINDOW = 2000
_WINDOWS = 10
_ROWS = 1000
# The times are those of several clocks, so not quite in order.
_CLOCKS_DIFFER: Milliseconds = 10 * SECOND
_MOVE_AN_ANIMAL = {"order.placed", "order.delivered", "order.cancelled", "order.lapsed"}
_WANTED = (
    "at >= ?3 AND at < ?4 AND (?5 = '' OR actor = ?5) AND (?6 = '' OR coalesce(actor, '') <> ?6)"
)
_OF_KEYS = looked_up("JOIN", "api_keys", "k", "id", "e.key_id")
_SELECT_CHANGES = (
    "SELECT e.id, e.at, e.actor, e.action, e.changes, e.key_id, k.name, k.role FROM"  # noqa: S608
    f" (SELECT * FROM api_key_events WHERE id < ?1 AND id >= ?2 AND {_WANTED}) e {_OF_KEYS}"
    # No database may begin with the keys of an environment, by its index.
    f" WHERE k.environment || '' = ?7 ORDER BY e.id DESC LIMIT {_ROWS}"
)


class ActivityFilter(NamedTuple):
    """What to show: by whom, such as ``person/2``, from when until before when, and by whom not.

    ``types`` are those of events. Changes to keys and people are those of an ``environment``; with
    ``None`` there are none.
    """

    types: Collection[str]
    environment: Environment | None
    by: str = ""
    since: Milliseconds = 0
    until: Milliseconds = LAST_MOMENT
    not_by: str = ""


class ActivityEntry(NamedTuple):
    """Something that was done: an event or a change, and how many more of its kind came with it.

    A request such as an import can cause thousands of events.
    """

    done: PastEvent | CallerChange
    others: int


class ActivityPage(NamedTuple):
    """Entries, the newest first, and before which numbers of both kinds more may follow, if any."""

    entries: list[ActivityEntry]
    following: tuple[int, int] | None


class _Found(NamedTuple):
    """What a search found. It has looked at all from ``low`` on, which is from that time."""

    groups: list[list[Row]]
    low: int
    at: Milliseconds
    is_end: bool


async def read_activity(
    store: Reader,
    wanted: ActivityFilter,
    before: tuple[int, int] | None = None,
    windows: int = _WINDOWS,
) -> ActivityPage:
    """Return the newest entries, perhaps from before these numbers of events and of changes.

    There may be few, or none, although more follow: it searches so many ``windows`` at most.
    """
    before = before or (LAST_ID, LAST_ID)
    searches = (
        _events(store, wanted, before[0], windows),
        _changes(store, wanted, before[1], windows),
    )
    found = [await search for search in searches]
    entries, taken = [], [0, 0]
    for which in _merged(found):
        group = found[which].groups[taken[which]]
        taken[which] += 1
        entries.append(_entry(which, group))
        if len(entries) == ON_A_PAGE:
            break
    starts = [
        _start(one, count, first) for one, count, first in zip(found, taken, before, strict=True)
    ]
    return ActivityPage(entries, (starts[0], starts[1]) if any(starts) else None)


def _merged(found: Sequence[_Found]) -> Iterator[int]:
    """Yield which of the searches has the next entry by time, up to where both have looked."""
    heads = [0 for _ in found]
    while True:
        times = [
            one.groups[head][0][1] if head < len(one.groups) else -1 if one.is_end else one.at
            for one, head in zip(found, heads, strict=True)
        ]
        which = times.index(max(times))
        if heads[which] >= len(found[which].groups):
            return
        yield which
        heads[which] += 1


def _start(found: _Found, taken: int, before: int) -> int:
    """Return the number before which the next page goes on, 0 at the end."""
    if taken < len(found.groups):
        return int(found.groups[taken - 1][-1][0]) if taken else before
    return 0 if found.is_end else found.low


def _entry(which: int, group: list[Row]) -> ActivityEntry:
    if which:
        return ActivityEntry(change_of(group[0]), 0)
    sequence, at, kind, *rest = group[0]
    others = sum(row[2] == kind for row in group[1:])
    return ActivityEntry(past_event((sequence, 0, kind, at, *rest)), others)


async def _events(store: Reader, wanted: ActivityFilter, before: int, windows: int) -> _Found:
    types = tuple(wanted.types)
    columns = PAST.replace("type, at", "at, type")
    sql = (
        f"SELECT sequence, {columns} FROM events WHERE sequence < ?1"  # noqa: S608 - only names
        f" AND sequence >= ?2 AND {_WANTED} AND type IN ({placeholder_list(7, types)})"
        f" AND key_id IS NULL ORDER BY sequence DESC LIMIT {_ROWS}"
    )
    rest: Sequence[Value] = (wanted.since, wanted.until, wanted.by, wanted.not_by, *types)
    search = _Search(store, "events", "sequence", sql, rest, _request_of)
    return await search.run(wanted, before if types else 0, windows)


async def _changes(store: Reader, wanted: ActivityFilter, before: int, windows: int) -> _Found:
    by, not_by = (author.replace("/", " ") for author in (wanted.by, wanted.not_by))
    here = wanted.environment or ""
    rest = (wanted.since, wanted.until, by, not_by, here)
    search = _Search(store, "api_key_events", "id", _SELECT_CHANGES, rest, _each)
    return await search.run(wanted, before if here else 0, windows)


class _Search(NamedTuple):
    """A search of a table backwards by its key.

    Rows that follow each other and have the same ``group`` are one entry.
    """

    store: Reader
    table: str
    key: str
    sql: str
    rest: Sequence[Value]
    group: Callable[[Row], Hashable]

    async def run(self, wanted: ActivityFilter, before: int, windows: int) -> _Found:
        """Search from before a number on until there is a page, or enough was searched."""
        low = high = 0
        if before:
            low, high = await self._range(wanted, before)
        rows: list[Row] = []
        for _ in range(windows):
            if high <= low or len(self._groups(rows)) > ON_A_PAGE:
                break
            start = max(low, high - _WINDOW)
            values = (high, start, *self.rest)
            found = await self.store.read(Statement(self.sql, values, name="select_activity"))
            rows += found
            high = int(found[-1][0]) if len(found) == _ROWS else start
            await asyncio.sleep(0)
        return _Found(self._groups(rows), high, await self._time_of(high), high <= low)

    async def _range(self, wanted: ActivityFilter, before: int) -> tuple[int, int]:
        """Return the first number to look at, and one above the last."""
        # Each is at an end of the index, but SQLite would look for both by reading all of it.
        ends = (f"(SELECT {end}({self.key}) FROM {self.table})" for end in ("min", "max"))  # noqa: S608 - only names
        sql = f"SELECT {', '.join(ends)}"
        ((oldest, newest),) = await self.store.read(Statement(sql, name="select_ends_of_activity"))
        if newest is None:
            return 0, 0
        low, high = oldest, min(before, newest + 1)
        if wanted.since:
            low = await self._first_since(wanted.since - _CLOCKS_DIFFER, low, high)
        if wanted.until < LAST_MOMENT:
            high = await self._first_since(wanted.until + _CLOCKS_DIFFER, low, high)
        return low, high

    async def _first_since(self, moment: Milliseconds, low: int, high: int) -> int:
        while low < high:
            middle = (low + high) // 2
            if await self._time_of(middle) < moment:
                low = middle + 1
            else:
                high = middle
        return low

    async def _time_of(self, number: int) -> Milliseconds:
        """Return the time of the first row from a number on, the end of time if there is none."""
        sql = (
            f"SELECT at FROM {self.table} WHERE {self.key} >= ?1"  # noqa: S608 - only names
            f" ORDER BY {self.key} LIMIT 1"
        )
        rows = await self.store.read(Statement(sql, (number,), name="select_time_of_activity"))
        return int(rows[0][0]) if rows else LAST_MOMENT

    def _groups(self, rows: Sequence[Row]) -> list[list[Row]]:
        return [list(group) for _, group in groupby(rows, self.group)]


def _request_of(row: Row) -> Hashable:
    """Return what is the same in the events of one act.

    An import adds many animals in one request. The event of an order is with that of its animal,
    which comes right after it. Any other is alone: a client chooses the id of a request, and must
    not hide one change behind another.
    """
    sequence, _, kind, *_, actor, request_id = row
    if kind == "pet.created" and request_id is not None:
        return actor, request_id
    return int(sequence) + (kind in _MOVE_AN_ANIMAL)


def _each(row: Row) -> Hashable:
    """Return what no other row has: each change to a key or a person is an act of its own."""
    return int(row[0])
