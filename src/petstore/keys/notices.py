"""What the owner of a key should know, told once by an event that only the key can read.

The task looks at what is saved, whichever process saved it. Every process looks. A row of
``key_notices`` is inserted in the transaction of the event, and a notice whose row is there already
is not told again.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import asdict

from petstore.clock import DAY, MINUTE, Clock, Milliseconds, rfc3339, utc
from petstore.databases.contract import Row, Statement, Store, Unit, upsert
from petstore.domain.plans import UNLIMITED
from petstore.events.model import KeyEventType, NewEvent
from petstore.events.store import record
from petstore.keys.model import KeyNoticeData
from petstore.keys.store import COLUMNS, caller_of
from petstore.limits.decide import NEVER
from petstore.periodic_tasks import PeriodicTask
from petstore.usage.counter import (
    DeprecatedOperation,
    DeprecationNoticeData,
    first_hour,
    select_uses,
    use_of,
)

_Name: TypeAlias = tuple[int, str, int]
"""The id of a key, what it is told, and the period in which it is told that once."""

EXPIRY_NOTICE: Milliseconds = 7 * DAY
_LIMIT_NEAR = (100, 80)
_KEYS_AT_ONCE = 500
# Other processes save a moment later than they count, perhaps by another clock.
_OVERLAP = 2 * MINUTE
_STATE = ("day", "day_used", "banned_at", "banned_until", "ban_level")
_SELECT = (
    f"SELECT {', '.join(f'k.{name}' for name in COLUMNS)},"  # noqa: S608 - only names
    f" {', '.join(f'r.{name}' for name in _STATE)}"
    " FROM api_keys k LEFT JOIN rate_limits r ON r.key_id = k.id"
    " WHERE k.id > ?1 AND k.id <= ?2"
    " AND (r.used_at >= ?3 OR k.expires_at > ?4 AND k.expires_at <= ?5)"
)


class KeyNotice(Struct, frozen=True):
    """Something to tell the owner of a key, once for each ``detail`` and ``period``.

    Without ``data`` it is about an ``operation``, whose use is read once the notice is known to be
    new.
    """

    key_id: int
    type: KeyEventType
    period: int
    detail: str = ""
    data: KeyNoticeData | None = None
    operation: DeprecatedOperation | None = None

    @property
    def row(self) -> _Name:
        return self.key_id, f"{self.type} {self.detail}".rstrip(), self.period


class KeyNotices:
    """Tells the owners of keys what was saved since the last look."""

    def __init__(
        self, store: Store, clock: Clock, operations: Sequence[DeprecatedOperation]
    ) -> None:
        self._store = store
        self._clock = clock
        self._operations = {each.operation: each for each in operations}
        self._since: Milliseconds | None = None
        self._seen: set[_Name] = set()
        self.periodic_task = PeriodicTask(self.look, 10, "cannot record key notices")

    async def look(self) -> None:
        """Record an event for each notice that is due and new."""
        now = self._clock()
        since = now - DAY if self._since is None else self._since - _OVERLAP
        select = Statement("SELECT coalesce(max(id), 0) FROM api_keys", name="select_last_key")
        ((last,),) = await self._store.read(select)
        seen: set[_Name] = set()
        for first in range(0, last, _KEYS_AT_ONCE):
            parameters = (first, first + _KEYS_AT_ONCE, since, now, now + EXPIRY_NOTICE)
            rows = await self._store.read(Statement(_SELECT, parameters, name="select_active_keys"))
            notices = [notice for row in rows for notice in _notices(row, now)]
            notices += await self._of_calls(first, since, now)
            due = {notice.row: notice for notice in notices}
            fresh = {row: notice for row, notice in due.items() if row not in self._seen}
            if fresh:
                await self._store.write(_tell(fresh, now))
            seen |= due.keys()
            await asyncio.sleep(0)  # requests come between
        self._since, self._seen = now, seen

    async def _of_calls(
        self, first: int, since: Milliseconds, now: Milliseconds
    ) -> list[KeyNotice]:
        notices: list[KeyNotice] = []
        for day in (now // DAY - 1, now // DAY):
            rows = await self._store.read(
                Statement(
                    # Compared as rows, they are found by hour and not by key.
                    "SELECT key_id, name FROM counts WHERE latest >= ?4"
                    " AND (hour, kind, key_id) > (?1, 'deprecated', ?2)"
                    " AND (hour, kind, key_id) <= (?1, 'deprecated', ?3)",
                    (first_hour(day), first, first + _KEYS_AT_ONCE, f"[{since}"),
                    name="select_recent_deprecated_calls",
                )
            )
            month = 12 * utc(day * DAY).year + utc(day * DAY).month
            for key_id, name in rows:
                if operation := self._operations.get(name):
                    kind: KeyEventType = "deprecation.used"
                    notices.append(KeyNotice(key_id, kind, month, name, operation=operation))
        return notices


def _tell(notices: Mapping[_Name, KeyNotice], now: Milliseconds) -> Unit[None]:
    """Record an event for each notice that no process has told yet."""
    columns = ("key_id", "notice", "period", "noticed_at")
    rows = [(*name, now) for name in notices]
    conflict = "DO NOTHING RETURNING key_id, notice, period"
    new = yield from upsert("key_notices", columns, rows, conflict)
    for name in sorted(new):
        notice = notices[name]
        key_id, operation = notice.key_id, notice.operation
        data: Struct | None = notice.data
        if operation is not None:
            uses = yield select_uses(now, key_id)
            (counted,) = (row[3:] for row in uses if row[1] == operation.operation)
            data = DeprecationNoticeData(**asdict(use_of(operation, *counted)), key_id=key_id)
        yield record(now, NewEvent(notice.type, f"key/{key_id}", data or {}, key_id=key_id))


def _notices(row: Row, now: Milliseconds) -> Iterator[KeyNotice]:
    """Yield the notices of a key and what the limiter has saved about it."""
    key, (day, day_used, banned_at, banned_until, ban_level) = caller_of(row), row[len(COLUMNS) :]
    if key.state(now) != "active":
        return
    tell = partial(KeyNoticeData, key_id=key.id)
    if key.expires_at is not None and key.expires_at <= now + EXPIRY_NOTICE:
        end = tell(expires_at=rfc3339(key.expires_at))
        yield KeyNotice(key.id, "key.expiring", key.expires_at, data=end)
    if day is None:  # never used
        return
    limit = key.limits.per_day
    percent = next((each for each in _LIMIT_NEAR if 100 * day_used >= each * limit), None)
    if day == now // DAY and limit != UNLIMITED and percent is not None:
        end_of_day = rfc3339((day + 1) * DAY)
        near = tell(percent=percent, limit=limit, used=day_used, reset_at=end_of_day)
        yield KeyNotice(key.id, "key.limit_near", day, str(percent), near)
    # A ban that was lifted, or that began long ago, is no news.
    if banned_at > max(key.unbanned_at or NEVER, now - DAY):
        until = rfc3339(banned_until)
        ban = tell(banned_at=rfc3339(banned_at), banned_until=until, level=ban_level)
        yield KeyNotice(key.id, "key.banned", banned_at, data=ban)
