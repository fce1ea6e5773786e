"""The latest changes, and which pages of a list they show on: others need not be read again."""

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

from msgspec import UNSET, json

from petstore.coalescing import SharedCalls
from petstore.databases.contract import Row, Statement, Store
from petstore.domain.decoding import integer_in
from petstore.events.model import START, Position
from petstore.events.store import newest_position

_KEPT = 128  # to check a page against more would take longer than to read it
_LONGEST = 60  # s; what somebody changed by hand has no event
# An event is in the feed, or still in the outbox: a statement sees it in one of them.
_SELECT = (
    "SELECT sequence, id, resource, data, previous FROM ("
    "SELECT * FROM events WHERE sequence >= ?1 ORDER BY sequence LIMIT ?2) AS published"
    " /*pg UNION ALL SELECT NULL, id, resource, data, previous FROM ("
    "SELECT * FROM events_outbox ORDER BY position LIMIT ?2) AS recorded */"
)
_decode = json.Decoder().decode


class Extent(NamedTuple):
    """What a page of a list shows, and what would show on it.

    The page was read from these ``ids``, up to the first item of the next page: without that, it
    would be the last page. All items have these ``members``; unset ones do not count.
    """

    kind: str
    ids: range
    members: Mapping[str, object]


class _Change(NamedTuple):
    """A resource as JSON, before and after it changed; both are the same if it began or ended."""

    kind: str
    id: int
    before: Mapping[str, Any]
    after: Mapping[str, Any]


class RecentChanges:
    """The latest changes of all processes, as far as this one has learned of them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._reads = SharedCalls[object, None]()
        self._version: object = None
        self._ends = 0.0
        self._position = START
        self._unpublished: set[str] = set()
        self._changes: list[_Change] = []
        self._forgotten = 0

    async def catch_up(self) -> int:
        """Learn of every change committed until now; return their number, with forgotten ones.

        Raises:
            Unavailable: the database is unreachable or failing.
        """
        version = await self._store.version()
        if version != self._version or asyncio.get_running_loop().time() >= self._ends:
            await self._reads.call(version, partial(self._read_to, version))
        return self._forgotten + len(self._changes)

    def show_on(self, page: Extent, since: int) -> bool:
        """Return whether a change after the first ``since`` may show on a page."""
        start = since - self._forgotten
        return start < 0 or any(
            change.kind == page.kind
            and change.id in page.ids
            and (_lists(page, change.after) or _lists(page, change.before))
            for change in self._changes[start:]
        )

    async def _read_to(self, version: object) -> None:
        """Read what is new at a version. Calls for two versions may both learn of one change."""
        await self._read_on()
        self._version = version

    async def _read_on(self) -> None:
        limit, now = _KEPT, asyncio.get_running_loop().time()
        rows = await self._store.read(
            Statement(_SELECT, (self._position.sequence, limit), name="select_changes")
        )
        published = [row for row in rows if row[0] is not None]
        recorded = rows[len(published) :]
        following = self._following(published)
        seen, self._unpublished = self._unpublished, {row[1] for row in recorded}
        if following is None or limit in (len(published), len(recorded)) or now >= self._ends:
            self._forget(len(self._changes))
            self._forgotten += 1  # and whatever has happened meanwhile
            self._ends = now + _LONGEST
            self._position = await newest_position(self._store)
            return
        new = [row for row in (*following, *recorded) if row[1] not in seen]
        self._changes += map(_change_of, new)
        self._forget(len(self._changes) - _KEPT)
        if following:
            self._position = Position.behind(*following[-1][:2])

    def _following(self, published: list[Row]) -> list[Row] | None:
        """Return the events after the position.

        It is ``None`` if they are of another history: that of a restored backup.
        """
        if self._position == START:
            return published if not published or published[0][0] == 1 else None
        is_known = published and Position.behind(*published[0][:2]) == self._position
        return published[1:] if is_known else None

    def _forget(self, number: int) -> None:
        if number > 0:
            del self._changes[:number]
            self._forgotten += number


def _lists(page: Extent, item: Mapping[str, Any]) -> bool:
    for name, value in page.members.items():  # twice as fast as all()
        if value is not UNSET and item.get(name) != value:
            return False
    return True


def _change_of(row: Row) -> _Change:
    _, _, resource, data, previous = row
    kind, _, number = resource.partition("/")
    after = _decode(data)
    before = after if previous is None else after | _decode(previous)
    return _Change(kind, integer_in(number) or 0, before, after)
