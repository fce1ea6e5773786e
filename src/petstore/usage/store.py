"""What a key has used, and what it may still use."""

from datetime import UTC, date, datetime
from typing import Annotated

from msgspec import Meta, Struct

from petstore.clock import DAY, utc
from petstore.databases.contract import Reader, Statement
from petstore.deprecations.model import DeprecatedUse
from petstore.deprecations.store import DeprecatedCalls
from petstore.domain.fields import open_list
from petstore.domain.plans import PLANS
from petstore.keys.model import SCOPES, Caller
from petstore.limits.contract import Decision
from petstore.usage.counts import first_day
from petstore.usage.refusals import Refusals, RefusedRequests


class UsageWindow(Struct, frozen=True):
    """One window: its limit, what remains of it, and the Unix timestamp at which it resets."""

    limit: Annotated[
        int, Meta(description="Requests of the whole window; 2147483647 is unlimited.")
    ]
    remaining: Annotated[int, Meta(description="Requests that remain.")]
    reset: Annotated[int, Meta(description="Unix timestamp at which the window resets.")]


class UsageDay(Struct, frozen=True):
    """The requests of one UTC day."""

    date: Annotated[date, Meta(description="The day (UTC).")]
    requests: Annotated[int, Meta(description="The requests on it.")]


class Usage(Struct, frozen=True, rename="camel"):
    """The usage of a key. ``bannedUntil`` is null while the key is not banned."""

    plan: Annotated[str, Meta(description=open_list(PLANS, "plans"))]
    minute: Annotated[UsageWindow, Meta(description="The window of the minute.")]
    day: Annotated[UsageWindow, Meta(description="The window of the day.")]
    banned_until: (
        Annotated[datetime, Meta(tz=True, description="When the ban ends; null without one.")]
        | None
    )
    days: Annotated[
        list[UsageDay],
        Meta(description="The requests of each of the last 30 days that had any, oldest first."),
    ]
    deprecated: Annotated[
        list[DeprecatedUse],
        Meta(description="The deprecated operations that the key called in the last 30 days."),
    ]
    refused: Annotated[
        list[RefusedRequests],
        Meta(
            description=(
                "The requests that a limit refused in the last 7 days, by hour and operation, the"
                " newest hour first."
            )
        ),
    ] = []
    scopes: Annotated[
        list[str],
        Meta(
            description=(
                "What the key may do. More scopes will follow: ignore scopes that you do not know."
            )
        ),
    ] = []


async def get_usage(
    store: Reader,
    decision: Decision,
    deprecated_calls: DeprecatedCalls,
    refusals: Refusals,
    key: Caller,
) -> Usage:
    """Return plan, windows, ban, the requests and deprecated calls of 30 days, and refusals.

    The ``decision`` describes the windows.
    """
    today = decision.day_number
    first = first_day(today * DAY)
    select = Statement(
        "SELECT day, requests FROM usage WHERE key_id = ?1 AND day >= ?2 ORDER BY day",
        (key.id, first),
        name="select_usage",
    )
    # The saved count of today may be half a second old. The limiter's is exact.
    requests = dict(await store.read(select)) | {today: decision.day_used}
    banned = decision.verdict == "banned"
    return Usage(
        plan=key.plan,
        minute=UsageWindow(*decision.minute),
        day=UsageWindow(*decision.day),
        banned_until=datetime.fromtimestamp(decision.described.reset, UTC) if banned else None,
        days=[
            UsageDay(utc(day * DAY).date(), requests.get(day, 0)) for day in range(first, today + 1)
        ],
        deprecated=await deprecated_calls.of_key(key.id),
        refused=await refusals.of_key(key.id),
        scopes=[scope for scope in SCOPES if scope in key.scopes],
    )
