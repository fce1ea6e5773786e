"""The page of a key's owner: what the key has used, what it may use, and its rotation."""

from datetime import UTC, datetime

from petstore.clock import DAY, utc_second
from petstore.console.charts import Meter, bars, meter
from petstore.console.forms import problem_of
from petstore.console.page import Page, Visit
from petstore.console.rotation import GRACES, rotate
from petstore.domain.api_keys import Scope
from petstore.domain.plans import UNLIMITED
from petstore.errors import BeyondOwnRights, InvalidBody, KeyEnded, PetstoreError
from petstore.http.messages import Response
from petstore.store.key_status import get_key
from petstore.store.usage import Usage, UsageWindow

SCOPE_WORDS: dict[Scope, str] = {
    "pets:read": "see animals, categories and the inventory",
    "pets:write": "add, change and delete animals and categories",
    "orders:read": "see orders",
    "orders:write": "place, approve, deliver and cancel orders",
    "webhooks:write": "manage webhooks",
    "keys:admin": "administer keys",
}
"""What a key with a scope may do."""

_ENDS_SOON = 14 * DAY
_REFUSED = (InvalidBody, KeyEnded, BeyondOwnRights)


async def _show(visit: Visit) -> Response:
    return await _page(visit)


async def _rotate(visit: Visit) -> Response:
    try:
        return await rotate(visit, visit.key.id, "/usage")
    except _REFUSED as error:
        return await _page(visit, error)


async def _page(visit: Visit, error: PetstoreError | None = None) -> Response:
    services, own = visit.services, visit.key
    usage: Usage = (await visit.call("getUsage")).value
    key = await get_key(services.store, own.id, own.environment, services.clock)
    now = services.clock()
    ends_at = None if own.expires_at is None else utc_second(own.expires_at)
    days = [(f"{day.date.day} {day.date:%b}", day.requests) for day in usage.days]
    return visit.page(
        "usage.html",
        200 if error is None else error.status,
        problem=None if error is None else problem_of(error),
        usage=usage,
        now=now,
        key=key,
        ends_at=ends_at,
        ends_soon=own.end - now <= _ENDS_SOON,
        # The session has the end of its token, which a rotation may have set.
        token_ends=ends_at != key.expiresAt,
        may_do=[words for scope, words in SCOPE_WORDS.items() if scope in own.scopes],
        windows=[_window("This minute", usage.minute), _window("Today", usage.day)],
        days=bars("days", "Requests on each of the last 30 days", "requests", "Day", days),
        graces=GRACES,
    )


def _window(label: str, window: UsageWindow) -> tuple[Meter, datetime]:
    """Return the meter of a window, and when the window resets."""
    limit = None if window.limit == UNLIMITED else window.limit
    used = window.limit - window.remaining
    return meter(label, used, limit), datetime.fromtimestamp(window.reset, UTC)


PAGES = (
    Page("GET", "/usage", _show, needs="getUsage"),
    Page("POST", "/usage/rotate", _rotate, needs="rotateKey"),
)
