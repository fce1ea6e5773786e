"""The keys that need a look: near a limit, banned, or about to expire.

All of it comes from what is saved, at most half a second old, so looking changes nothing: a key
that somebody looks at was not used. Each list has an index, so its cost does not grow with the
number of keys.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

from petstore.clock import DAY, MINUTE, Milliseconds
from petstore.databases.contract import Reader, Statement
from petstore.databases.planner import looked_up
from petstore.domain.plans import PLANS
from petstore.keys.model import Environment
from petstore.keys.status import STORED_COLUMNS
from petstore.keys.uses import USE_COLUMNS, KeyUse, use_of
from petstore.limits.contract import NEVER

EXPIRES_SOON: Milliseconds = 14 * DAY
"""How long before its end a key is about to expire."""

MAX_ALERTS = 10
"""The maximum number of keys in each list."""

_Window: TypeAlias = Literal["minute", "day"]
_KEYS = f"SELECT {', '.join((*STORED_COLUMNS, *USE_COLUMNS))} FROM"
# People have no limits. Few keys need a look: no database may begin with all keys of an
# environment, by its index.
_HERE = "k.environment || '' = ?1 AND k.role IS NULL"
_IN_FORCE = f"{_HERE} AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > ?2)"

_IS_BANNED = f"r.banned_until > ?2 AND r.banned_at > coalesce(k.unbanned_at, {NEVER})"


class KeyAlerts(NamedTuple):
    """The keys that need a look, up to ``MAX_ALERTS`` in each list.

    ``near_limit`` are those that have used 80 % of a limit or more and are not banned. ``banned``
    are sorted by the end of their ban, ``expiring`` by their own.
    """

    near_limit: Sequence[KeyUse]
    banned: Sequence[KeyUse]
    expiring: Sequence[KeyUse]


async def find_alerts(store: Reader, environment: Environment, now: Milliseconds) -> KeyAlerts:
    """Return the keys of an environment that need a look.

    A key that nobody uses any more is near the limit of its day once its holder was told so, about
    ten seconds after its last request (see ``key_notices``).
    """
    own = (environment, now)
    in_minute = Statement(_NEAR_IN_MINUTE, (*own, now - MINUTE), name="select_keys_near_in_minute")
    today = Statement(_NEAR_TODAY, (*own, now // DAY), name="select_keys_near_today")
    banned = Statement(_BANNED, own, name="select_banned_keys")
    expiring = Statement(_EXPIRING, (*own, now + EXPIRES_SOON), name="select_expiring_keys")
    near = (*await _find(store, in_minute, now), *await _find(store, today, now))
    by_id = {use.key.id: use for use in near}
    return KeyAlerts(
        [by_id[key_id] for key_id in sorted(by_id)][:MAX_ALERTS],
        await _find(store, banned, now),
        await _find(store, expiring, now),
    )


async def _find(store: Reader, select: Statement, now: Milliseconds) -> Sequence[KeyUse]:
    return [use_of(row, now) for row in await store.read(select)]


def _is_near(window: _Window, used: str) -> str:
    """Return the SQL condition that ``used`` is 80 % of the limit of a window, or more."""
    limits = " ".join(
        f"WHEN '{plan}' THEN {getattr(x, f'per_{window}')}" for plan, x in PLANS.items()
    )
    limit = f"CAST(coalesce(k.per_{window}, CASE k.plan {limits} END) AS BIGINT)"
    return f"5 * {used} >= 4 * {limit}"


_KEY_OF_LIMITS = looked_up("JOIN", "api_keys", "k", "id", "r.key_id")
_IS_NEAR_MINUTE = _is_near("minute", "r.minute_used")
_IS_NEAR_DAY = _is_near("day", "r.day_used")
_NEAR_IN_MINUTE = (
    f"{_KEYS} rate_limits r {_KEY_OF_LIMITS}"
    f" WHERE {_IN_FORCE} AND NOT ({_IS_BANNED}) AND r.minute_started > ?3"
    f" AND ({_IS_NEAR_MINUTE} OR r.day >= ?2 / {DAY} AND {_IS_NEAR_DAY}) LIMIT {MAX_ALERTS}"
)
# A key may have two notices.
_NEAR_TODAY = (
    f"{_KEYS} key_notices n {looked_up('JOIN', 'api_keys', 'k', 'id', 'n.key_id')}"
    f" {looked_up('JOIN', 'rate_limits', 'r', 'key_id', 'n.key_id')}"
    f" WHERE {_IN_FORCE} AND NOT ({_IS_BANNED})"
    " AND n.notice IN ('key.limit_near 80', 'key.limit_near 100') AND n.period = ?3"
    f" AND r.day >= ?3 AND {_IS_NEAR_DAY} LIMIT {2 * MAX_ALERTS}"
)
_BANNED = (
    f"{_KEYS} rate_limits r {_KEY_OF_LIMITS}"
    f" WHERE {_IN_FORCE} AND r.banned_until > 0 AND {_IS_BANNED}"
    f" ORDER BY r.banned_until LIMIT {MAX_ALERTS}"
)
_EXPIRING = (
    f"{_KEYS} api_keys k {looked_up('LEFT JOIN', 'rate_limits', 'r', 'key_id', 'k.id')}"
    f" WHERE {_HERE} AND k.revoked_at IS NULL AND k.expires_at > ?2"
    f" AND k.expires_at <= ?3 ORDER BY k.expires_at LIMIT {MAX_ALERTS}"
)
