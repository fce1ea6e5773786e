"""The page of a key's owner: what the key has used, what is deprecated, and its new token."""

from datetime import UTC, datetime
from typing import Any

from petstore.clock import DAY, utc
from petstore.console.charts import Meter, bars, meter
from petstore.console.forms import number_or_text, problem_of
from petstore.console.page import ConsolePage, PageRequest, operation_in_words
from petstore.domain.plans import UNLIMITED
from petstore.errors import PetstoreError
from petstore.http.messages import Response
from petstore.usage.operations import Usage, UsageWindow, list_statuses

_ENDS_SOON = 14 * DAY
GRACES = (("86400", "in 1 day"), ("604800", "in 7 days"), ("3600", "in 1 hour"), ("0", "at once"))
"""When the old token ends: what the field ``graceSeconds`` of the form has, and words for it."""


async def usage_shown(request: PageRequest, usage: Usage, key_id: int) -> dict[str, Any]:
    days = [(f"{day.date.day} {day.date:%b}", day.requests) for day in usage.days]
    return {
        "usage": usage,
        "now": utc(request.services.clock()),
        "windows": [_window("This minute", usage.minute), _window("Today", usage.day)],
        "days": bars("days", "Requests on each of the last 30 days", "requests", "Day", days),
        "statuses": await list_statuses(request.services, key_id),
        "operation_in_words": operation_in_words,
    }


def _window(label: str, window: UsageWindow) -> tuple[Meter, datetime]:
    limit = None if window.limit == UNLIMITED else window.limit
    used = window.limit - window.remaining
    return meter(label, used, limit), datetime.fromtimestamp(window.reset, UTC)


async def _show(request: PageRequest, error: PetstoreError | None = None) -> Response:
    services, own = request.services, request.caller
    usage: Usage = (await request.execute("getUsage")).value
    return request.page(
        "usage.html",
        error=error,
        problem=None if error is None else problem_of(error),
        key=own,
        # The end of the token of the session, which a rotation may have set.
        ends_at=None if own.expires_at is None else utc(own.expires_at),
        ends_soon=own.end - services.clock() <= _ENDS_SOON,
        graces=GRACES[:-1],
        **await usage_shown(request, usage, own.id),
    )


async def rotate(request: PageRequest, operation_id: str, back: str) -> Response:
    """Rotate a key as the form wants it, and return the page that shows its new token.

    It is no redirect, since no other response has the token. A form that is sent twice rotates
    twice, and the last page has the token that counts.
    """
    grace = request.form.text("graceSeconds")
    rotated = await request.execute(operation_id, {"graceSeconds": number_or_text(grace)})
    ends = dict(GRACES).get(grace, f"in {grace} seconds")
    if request.caller.kind == "key" and grace == "0":
        back = "/sign-in?signed-out=rotated"
    return request.page("rotated.html", key=rotated.value, ends=ends, back=back)


async def _rotate(request: PageRequest) -> Response:
    return await rotate(request, "rotateCurrentKey", "/usage")


PAGES = (
    ConsolePage("GET", "/usage", _show, "getUsage"),
    ConsolePage("POST", "/usage/rotate", _rotate, "rotateCurrentKey", _show),
)
