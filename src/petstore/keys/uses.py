"""What keys have used: one of them, or a page of the list of all, searched by name or number.

All of it comes from what is saved, at most half a second old, so looking changes nothing: a key
that somebody looks at was not used.
"""

from typing import NamedTuple

from petstore.clock import DAY, MINUTE, Milliseconds
from petstore.databases.contract import Reader, Row, Statement
from petstore.databases.pages import Page, read_page
from petstore.databases.planner import looked_up
from petstore.domain.names import MAX_SEARCHED, name_key
from petstore.keys.model import Environment
from petstore.keys.status import STORED_COLUMNS, Key, stored_key
from petstore.time_slices import TimeSlices

USE_COLUMNS = ("r.minute_started", "r.minute_used", "r.day", "r.day_used")
"""The columns of the use of a key, from ``rate_limits r``."""

_LIMITS = looked_up("LEFT JOIN", "rate_limits", "r", "key_id", "k.id")
_SELECT = f"SELECT {', '.join((*STORED_COLUMNS, *USE_COLUMNS))} FROM api_keys k {_LIMITS}"  # noqa: S608 - only names
_SELECT_KEYS = _SELECT.replace("api_keys", "(SELECT * FROM api_keys WHERE role IS NULL)")
_SEARCHED_AT_ONCE = 100


class KeyUse(NamedTuple):
    """A key, and the requests of its minute and its day."""

    key: Key
    minute: int = 0
    day: int = 0

    @property
    def is_near_day_limit(self) -> bool:
        """Whether it has used 80 % of the limit of its day, or more."""
        limit = self.key.per_day
        return limit is not None and 5 * self.day >= 4 * limit


async def find_use(store: Reader, key: Key, now: Milliseconds) -> KeyUse:
    """Return what a key has used."""
    select = Statement(f"{_SELECT} WHERE k.id = ?1", (key.id,), name="select_key_use")
    return use_of((await store.read(select))[0], now)._replace(key=key)


async def find_keys(
    store: Reader,
    environment: Environment,
    words: str,
    after: int | None,
    limit: int,
    now: Milliseconds,
) -> Page[KeyUse]:
    """Return the first ``limit`` keys with an id above ``after``, by id.

    With ``words`` these are the keys with every one of them in their name, or with that number. A
    search reads keys until it has found enough.
    """
    wanted, slices = name_key(words[:MAX_SEARCHED]).split(), TimeSlices()
    await slices.begin()
    found: list[KeyUse] = []
    start: int | None = after or 0
    while start is not None and len(found) <= limit:
        page = await read_page(
            store,
            "select_key_uses",
            _SELECT_KEYS,
            {"environment": environment},
            start,
            max(limit, _SEARCHED_AT_ONCE) if wanted else limit + 1,
            lambda row: row,
        )
        found += [use_of(row, now) for row in page.items if _matches(row, wanted)]
        start = page.next_after
        await slices.rest()
    return Page(found[:limit], found[limit - 1].key.id if len(found) > limit else None)


def use_of(row: Row, now: Milliseconds) -> KeyUse:
    """Return the use of a key in a row of ``STORED_COLUMNS`` and ``USE_COLUMNS``."""
    minute_started, minute_used, day, day_used = row[len(STORED_COLUMNS) :]
    key = stored_key(row).shown(now)
    if day is None:  # never used
        return KeyUse(key)
    in_minute = minute_used if now < minute_started + MINUTE else 0
    return KeyUse(key, in_minute, day_used if now < (day + 1) * DAY else 0)


def _matches(row: Row, words: list[str]) -> bool:
    key_id, name = row[:2]
    return words == [str(key_id)] or all(word in name_key(name) for word in words)
