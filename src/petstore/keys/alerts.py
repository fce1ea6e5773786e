"""The keys that need attention: those whose owner was told of a ban, a limit or an end, lately.

The last such notices have an index, by which they are also deleted, and only ``_NEWEST`` of them
are read: the cost does not grow with the number of keys.
"""

from typing import NamedTuple

from petstore.clock import DAY, Milliseconds, utc
from petstore.databases.contract import Reader, Statement
from petstore.databases.planner import looked_up
from petstore.keys.model import Environment
from petstore.keys.notices import EXPIRY_NOTICE
from petstore.keys.status import STORED_COLUMNS
from petstore.keys.uses import USE_COLUMNS, KeyUse, use_of

MAX_ALERTS = 10
"""The maximum number of keys in each list."""

_NEWEST = 200
_SELECT = (
    f"SELECT {', '.join((*STORED_COLUMNS, *USE_COLUMNS))} FROM (SELECT key_id, notice"  # noqa: S608 - only names
    f" FROM key_notices WHERE noticed_at > ?1 ORDER BY noticed_at DESC LIMIT {_NEWEST}) n"
    f" {looked_up('JOIN', 'api_keys', 'k', 'id', 'n.key_id')}"
    f" {looked_up('LEFT JOIN', 'rate_limits', 'r', 'key_id', 'k.id')}"
    " WHERE n.notice LIKE 'key.%' AND k.environment || '' = ?2 AND k.role IS NULL"
    " AND (r.banned_until > ?3 OR r.day = ?4 OR k.expires_at > ?3)"
)


class KeyAlerts(NamedTuple):
    """The keys that are banned, that have used 80 % of their day, and that expire soon."""

    banned: list[KeyUse]
    near_limit: list[KeyUse]
    expiring: list[KeyUse]


async def find_alerts(store: Reader, environment: Environment, now: Milliseconds) -> KeyAlerts:
    """Return up to ``MAX_ALERTS`` keys of an environment in each list, those told last first."""
    parameters = (now - EXPIRY_NOTICE, environment, now, now // DAY)
    rows = await store.read(Statement(_SELECT, parameters, name="select_key_alerts"))
    uses = [use_of(row, now) for row in {row[0]: row for row in rows}.values()]  # once each
    active, soon = [use for use in uses if use.key.state == "active"], utc(now + EXPIRY_NOTICE)
    banned = [use for use in active if use.key.banned_until]
    near = [use for use in active if not use.key.banned_until and use.is_near_day_limit]
    expiring = [use for use in active if use.key.expires_at and use.key.expires_at <= soon]
    return KeyAlerts(banned[:MAX_ALERTS], near[:MAX_ALERTS], expiring[:MAX_ALERTS])
