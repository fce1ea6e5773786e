"""The latest changes, and which pages of a list they show on: others need not be read again."""

import asyncio
from collections.abc import Mapping
from functools import partial
from itertools import islice, product
from typing import Any, TypeAlias

from msgspec import UNSET, Struct, json

from petstore.coalescing import SingleFlight
from petstore.databases.contract import Row, Statement, Store
from petstore.domain.decoding import integer_in
from petstore.events.model import START, Position
from petstore.events.store import newest_position

_FILTERS = {"pet": ("status", "categoryId"), "order": ("status", "petId"), "category": ()}
_READ_AT_ONCE = 256
_KEPT = 1024
_CHECKED = 256  # to check a page against more would take longer than to read it
_LONGEST = 60  # s; what was changed by hand has no event
# An event is in the feed, or still in the outbox: a statement sees it in one of them.
_SELECT = (
    "SELECT sequence, id, resource, data, previous FROM ("
    "SELECT * FROM events WHERE sequence >= ?1 ORDER BY sequence LIMIT ?2) AS published"
    " /*pg UNION ALL SELECT NULL, id, resource, data, previous FROM ("
    "SELECT * FROM events_outbox ORDER BY position LIMIT ?2) AS recorded */"
)
_decode = json.Decoder().decode
_Source: TypeAlias = tuple[object, ...]
"""A kind of resources, and the values of the filters of its list."""


class PageRange(Struct, frozen=True, gc=False):
    """A page of ``ids`` up to the first item of the next page; the last page has no end."""

    source: _Source
    ids: range

    @classmethod
    def of(cls, kind: str, ids: range, *filters: object) -> "PageRange":
        """``filters`` are status and category of pets, status and pet of orders, unset ones too."""
        return cls((kind, *(None if value is UNSET else value for value in filters)), ids)


class RecentChanges:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._reads = SingleFlight[object, None]()
        self._version: object = None
        self._ends = 0.0
        self._position = START
        self._unpublished: set[str] = set()
        self._turns = self._forgotten = 0
        self.count = 0  # the number of the changes that are known, with forgotten ones
        self.is_current = False  # whether no client that is served now could know of a later change
        self._changed: dict[_Source, list[tuple[int, int]]] = {}

    async def catch_up(self) -> int:
        """Learn of every change committed until now; return ``count``.

        If that waits for nothing, all requests that are ready in the event loop share it. Callbacks
        run in order, so a client that could know of a later change is served after ``_turn``.
        """
        loop, turns = asyncio.get_running_loop(), self._turns
        loop.call_soon(self._turn)
        version = await self._store.version()
        if version != self._version or loop.time() >= self._ends:
            await self._reads.call(version, partial(self._read_to, version))
        else:
            self.is_current = turns == self._turns
        return self.count

    def show_on(self, page: PageRange, since: int) -> bool:
        """Return whether a change after the first ``since`` may show on a page."""
        if since < self._forgotten:
            return True
        changed = self._changed.get(page.source, ())
        for number, item_id in islice(reversed(changed), _CHECKED):
            if number <= since:
                return False
            if item_id in page.ids:
                return True
        return len(changed) >= _CHECKED

    def _turn(self) -> None:
        self._turns += 1
        self.is_current = False

    async def _read_to(self, version: object) -> None:
        """Read what is new at a version. Calls for two versions may both learn of one change."""
        await self._read_on()
        self._version = version

    async def _read_on(self) -> None:
        limit, now = _READ_AT_ONCE, asyncio.get_running_loop().time()
        rows = await self._store.read(
            Statement(_SELECT, (self._position.sequence, limit), name="select_changes")
        )
        published = [row for row in rows if row[0] is not None]
        recorded = rows[len(published) :]
        following = self._following(published)
        seen, self._unpublished = self._unpublished, {row[1] for row in recorded}
        if following is None or limit in (len(published), len(recorded)) or now >= self._ends:
            self.count += 1  # whatever has happened
            self._forget(self.count)
            self._ends = now + _LONGEST
            self._position = await newest_position(self._store)
            return
        for row in (*following, *recorded):
            if row[1] not in seen:
                self._note(row)
        if self.count - self._forgotten > 2 * _KEPT:
            self._forget(self.count - _KEPT)
        if following:
            self._position = Position.behind(*following[-1][:2])

    def _following(self, published: list[Row]) -> list[Row] | None:
        if self._position == START:
            return published if not published or published[0][0] == 1 else None
        is_known = published and Position.behind(*published[0][:2]) == self._position
        return published[1:] if is_known else None

    def _note(self, event: Row) -> None:
        _, _, resource, data, previous = event
        kind, _, number = resource.partition("/")
        self.count += 1
        after = _decode(data)
        before = after if previous is None else after | _decode(previous)
        for source in _sources(kind, after) | _sources(kind, before):
            changed = self._changed.setdefault(source, [])
            changed.append((self.count, integer_in(number) or 0))

    def _forget(self, until: int) -> None:
        self._forgotten = until
        self._changed = {
            source: kept
            for source, changed in self._changed.items()
            if (kept := [change for change in changed if change[0] > until])
        }


def _sources(kind: str, item: Mapping[str, Any]) -> set[_Source]:
    values = ((item.get(name), None) for name in _FILTERS.get(kind, ()))
    return {(kind, *chosen) for chosen in product(*values)}
