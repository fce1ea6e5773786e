"""The latest changes, and which pages of a list they show on: others need not be read again."""

from collections.abc import Container, Mapping
from typing import Any, NamedTuple

from msgspec import UNSET, Struct, json

from petstore.databases.contract import Row, Statement, Store
from petstore.events.model import START, Position
from petstore.events.store import newest_position

_READ_AT_ONCE = 256
_KEPT = 1024
_decode = json.Decoder().decode


class Extent(Struct, frozen=True, gc=False):
    """What a page of a list shows, and what would show on it.

    ``ids`` are those of the items that the page could have, up to the first item of the next page:
    without that, it would be the last page. All items have these ``members``; unset ones do not
    count.
    """

    kind: str
    ids: Container[int]
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
        self._version: object = None
        self._position = START
        self._changes: list[_Change] = []
        self._forgotten = 0

    async def catch_up(self) -> int | None:
        """Learn of every committed change; return how many there were, forgotten ones included.

        It is ``None`` if the database has no cheap way to tell.

        Raises:
            Unavailable: the database is unreachable or failing.
        """
        version = await self._store.version()
        if version is None:
            return None
        if version != self._version:
            await self._read_on()
            self._version = version
        return self._forgotten + len(self._changes)

    def show_on(self, page: Extent, since: int) -> bool:
        """Return whether a change after the first ``since`` may show on a page."""
        start = since - self._forgotten
        return start < 0 or any(_shows(page, each) for each in self._changes[start:])

    async def _read_on(self) -> None:
        select = Statement(
            "SELECT sequence, id, resource, data, previous FROM events WHERE sequence >= ?1"
            " ORDER BY sequence LIMIT ?2",
            (self._position.sequence, _READ_AT_ONCE + 1),
            name="select_changes",
        )
        rows = await self._store.read(select)
        # Without the event at the position, it is another history: that of a restored backup.
        if rows and Position.behind(*rows[0][:2]) == self._position and len(rows) <= _READ_AT_ONCE:
            self._changes += map(_change_of, rows[1:])
            self._position = Position.behind(*rows[-1][:2])
            self._forget(len(self._changes) - _KEPT)
        else:
            self._forget(len(self._changes))
            self._forgotten += 1  # and whatever has happened meanwhile
            self._position = await newest_position(self._store)

    def _forget(self, number: int) -> None:
        if number > 0:
            del self._changes[:number]
            self._forgotten += number


def _shows(page: Extent, change: _Change) -> bool:
    return (
        change.id in page.ids
        and change.kind == page.kind
        and (_lists(page, change.after) or _lists(page, change.before))
    )


def _lists(page: Extent, item: Mapping[str, Any]) -> bool:
    return all(value in (UNSET, item.get(name)) for name, value in page.members.items())


def _change_of(row: Row) -> _Change:
    _, _, resource, data, previous = row
    after = _decode(data)
    before = after if previous is None else after | _decode(previous)
    return _Change(resource.partition("/")[0], after.get("id", 0), before, after)
