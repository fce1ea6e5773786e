"""What the owner of a key should know, told once by an event that only the key can read."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TypeAlias, cast

from petstore.clock import DAY, MINUTE, Clock, Milliseconds, rfc3339, utc
from petstore.databases.contract import Row, Statement, Store, Unit, upsert
from petstore.domain.plans import UNLIMITED
from petstore.events.model import KeyEventType, NewEvent
from petstore.events.store import record
from petstore.keys.model import KeyNoticeData
from petstore.keys.store import COLUMNS, caller_of
from petstore.limits.decide import NEVER
from petstore.periodic_tasks import PeriodicTask
from petstore.usage.counter import DeprecatedOperation, first_hour, key_use_of, select_uses

_Name: TypeAlias = tuple[int, str, int]
"""The id of a key, the type of the event and a detail, and the period in which it is told once."""

_Notice: TypeAlias = tuple[_Name, KeyNoticeData | DeprecatedOperation]
"""What the owner of a key is told: the data of the event, or what to read it of once it is new."""

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


class KeyNotices:
    def __init__(
        self, store: Store, clock: Clock, operations: Sequence[DeprecatedOperation]
    ) -> None:
        self._store = store
        self._clock = clock
        self._operations = {each.operation: each for each in operations}
        self._since: Milliseconds | None = None
        self.periodic_task = PeriodicTask(self.look, 10, "cannot record key notices")

    async def look(self) -> None:
        now = self._clock()
        since = now - DAY if self._since is None else self._since - _OVERLAP
        select = Statement("SELECT coalesce(max(id), 0) FROM api_keys", name="select_last_key")
        ((last,),) = await self._store.read(select)
        for first in range(0, last, _KEYS_AT_ONCE):
            parameters = (first, first + _KEYS_AT_ONCE, since, now, now + EXPIRY_NOTICE)
            rows = await self._store.read(Statement(_SELECT, parameters, name="select_active_keys"))
            due = dict(notice for row in rows for notice in _notices(row, now))
            due |= await self._of_calls(first, since, now)
            if due:
                await self._store.write(_tell(due, now))
            await asyncio.sleep(0)  # requests come between
        self._since = now

    async def _of_calls(
        self, first: int, since: Milliseconds, now: Milliseconds
    ) -> dict[_Name, DeprecatedOperation]:
        notices: dict[_Name, DeprecatedOperation] = {}
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
                    notices[key_id, f"deprecation.used {name}", month] = operation
        return notices


def _tell(
    notices: Mapping[_Name, KeyNoticeData | DeprecatedOperation], now: Milliseconds
) -> Unit[None]:
    """Record an event for each notice that no process has told yet."""
    columns = ("key_id", "notice", "period", "noticed_at")
    rows = [(*name, now) for name in notices]
    conflict = "DO NOTHING RETURNING key_id, notice, period"
    new = yield from upsert("key_notices", columns, rows, conflict)
    for name in sorted(new):
        (key_id, notice, _), data = name, notices[name]
        if isinstance(data, DeprecatedOperation):
            uses = yield select_uses(now, key_id)
            (row,) = (row for row in uses if row[1] == data.operation)
            data = key_use_of(data, row)
        kind = cast("KeyEventType", notice.partition(" ")[0])
        yield record(now, NewEvent(kind, f"key/{key_id}", data, key_id=key_id))


def _notices(row: Row, now: Milliseconds) -> Iterator[_Notice]:
    key, (day, day_used, banned_at, banned_until, ban_level) = caller_of(row), row[len(COLUMNS) :]
    if key.state(now) != "active":
        return
    tell = partial(KeyNoticeData, key_id=key.id)
    if key.expires_at is not None and key.expires_at <= now + EXPIRY_NOTICE:
        end = tell(expires_at=rfc3339(key.expires_at))
        yield (key.id, "key.expiring", key.expires_at), end
    if day is None:  # never used
        return
    limit = key.limits.per_day
    percent = next((each for each in _LIMIT_NEAR if 100 * day_used >= each * limit), None)
    if day == now // DAY and limit != UNLIMITED and percent is not None:
        end_of_day = rfc3339((day + 1) * DAY)
        near = tell(percent=percent, limit=limit, used=day_used, reset_at=end_of_day)
        yield (key.id, f"key.limit_near {percent}", day), near
    # A ban that was lifted, or that began long ago, is no news.
    if banned_at > max(key.unbanned_at or NEVER, now - DAY):
        until = rfc3339(banned_until)
        ban = tell(banned_at=rfc3339(banned_at), banned_until=until, level=ban_level)
        yield (key.id, "key.banned", banned_at), ban
