"""What a key has used and may still use, and which keys call deprecated operations."""

from collections.abc import Iterable
from datetime import UTC, date, datetime
from http import HTTPStatus
from typing import Annotated, NamedTuple

from msgspec import Meta, Struct

from petstore.clock import DAY, HOUR, utc
from petstore.databases.contract import Statement
from petstore.domain.fields import open_list
from petstore.domain.plans import PLANS
from petstore.interface.operation import BASE, Call, Context, Operation, Result, Services, Success
from petstore.interface.pages import PageQuery, page_result
from petstore.interface.resource import Resource
from petstore.keys.model import SCOPES, Caller
from petstore.keys.store import found, select_key
from petstore.limits.database import StoredRateLimits
from petstore.limits.decide import NEVER, Decision, State, describe
from petstore.usage.counter import (
    DeprecatedOperation,
    DeprecatedUse,
    KeyDeprecatedUse,
    first_day,
    first_hour,
    list_uses,
    select_counts,
    select_uses,
    use_of,
)

_REFUSED_HOURS = 7 * 24
_ABOUT_REFUSED = (
    "The requests that a limit refused in the last 7 days, by hour and operation, the newest hour"
    " first."
)
_ABOUT_SCOPES = "What the key may do. More scopes will follow: ignore scopes that you do not know."
_OperationId = Annotated[
    str, Meta(description="The `operationId`; null if the request was for no operation.")
]
_BannedUntil = Annotated[
    datetime, Meta(tz=True, description="When the ban ends; null without one.")
]


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


class RefusedRequests(Struct, frozen=True):
    """The requests to one operation that a limit refused within one hour."""

    hour: Annotated[datetime, Meta(tz=True, description="When the hour began.")]
    operation: _OperationId | None
    requests: Annotated[int, Meta(description="The requests that got 429.")]


class Usage(Struct, frozen=True, rename="camel"):
    """The usage of a key. ``bannedUntil`` is null while the key is not banned."""

    plan: Annotated[str, Meta(description=open_list(PLANS, "plans"))]
    minute: Annotated[UsageWindow, Meta(description="The window of the minute.")]
    day: Annotated[UsageWindow, Meta(description="The window of the day.")]
    banned_until: _BannedUntil | None
    days: Annotated[
        list[UsageDay],
        Meta(description="The requests of each of the last 30 days that had any, oldest first."),
    ]
    deprecated: Annotated[
        list[DeprecatedUse],
        Meta(description="The deprecated operations that the key called in the last 30 days."),
    ]
    refused: Annotated[list[RefusedRequests], Meta(description=_ABOUT_REFUSED)] = []
    scopes: Annotated[list[str], Meta(description=_ABOUT_SCOPES)] = []


class StatusUse(NamedTuple):
    status: HTTPStatus
    requests: int
    days: int
    last: date


async def get_usage(services: Services, key: Caller, decision: Decision) -> Usage:
    today = decision.day_number
    first = first_day(today * DAY)
    select = Statement(
        "SELECT day, requests FROM usage WHERE key_id = ?1 AND day >= ?2 ORDER BY day",
        (key.id, first),
        name="select_usage",
    )
    # The saved count of today may be half a second old. The limiter's is exact.
    requests = dict(await services.store.read(select)) | {today: decision.day_used}
    called = await services.store.read(select_uses(services.clock(), key.id))
    calls = {name: counted for _, name, _, *counted in called}
    refused_since = services.clock() // HOUR - _REFUSED_HOURS + 1
    refused = await services.store.read(select_counts("refused", key.id, refused_since))
    banned = decision.verdict == "banned"
    return Usage(
        plan=key.plan,
        minute=UsageWindow(*decision.minute),
        day=UsageWindow(*decision.day),
        banned_until=datetime.fromtimestamp(decision.described.reset, UTC) if banned else None,
        days=[
            UsageDay(utc(day * DAY).date(), requests.get(day, 0)) for day in range(first, today + 1)
        ],
        deprecated=[
            use_of(each, *calls[each.operation])
            for each in services.deprecated
            if each.operation in calls
        ],
        refused=[
            RefusedRequests(utc(hour * HOUR), name or None, count) for name, hour, count in refused
        ],
        scopes=[scope for scope in SCOPES if scope in key.scopes],
    )


async def list_statuses(services: Services, key_id: int) -> list[StatusUse]:
    first = first_hour(first_day(services.clock()))
    uses: dict[str, StatusUse] = {}
    counts = select_counts("response", key_id, first)
    for name, hour, requests in await services.store.read(counts):
        newest = StatusUse(HTTPStatus(int(name)), 0, 0, utc(hour * HOUR).date())
        status, more, days, last = uses.get(name, newest)
        uses[name] = StatusUse(status, requests + more, days + 1, last)
    return sorted(uses.values())


async def _get(context: Context, _: Call[None, None]) -> Result[Usage]:
    services, key = context.services, context.caller
    return Result(await get_usage(services, key, await services.limiter.look(key)))


async def _get_of_key(context: Context, call: Call[None, None]) -> Result[Usage]:
    services = context.services
    rows = await services.store.read(select_key(call.path_id))
    key = found(rows, call.path_id, context.caller.environment).key
    # As it was saved, half a second ago at most: looking at a key does not use it.
    state = await StoredRateLimits(services.store).load(key.id) or State()
    decision = describe(state, key.limits, services.clock(), key.unbanned_at or NEVER)
    return Result(await get_usage(services, key, decision))


def deprecated_operations(operations: Iterable[Operation]) -> tuple[DeprecatedOperation, ...]:
    return tuple(
        DeprecatedOperation(
            *(each.id, each.method, f"{BASE}{each.path}", of.since, of.sunset, of.use),
            documentation=of.documentation,
        )
        for each in operations
        if (of := each.deprecation) is not None
    )


async def _list_deprecations(
    context: Context, call: Call[None, PageQuery]
) -> Result[list[KeyDeprecatedUse]]:
    query, services, own = call.query, context.services, context.caller.environment
    page = query.after, query.limit, services.clock()
    return page_result(await list_uses(services.store, services.deprecated, own, *page))


_DEPRECATED_USE = {
    "operation": "getPet",
    "method": "GET",
    "path": "/v1/pets/{petId}",
    "since": "2026-11-21T00:00:00Z",
    "sunset": "2030-12-05T00:00:00Z",
    "use": "GET /v1/pets, with id for one pet or with status",
    "documentation": "/docs/operations/getPet",
    "calls": 312,
    "lastCalledAt": "2026-11-21T10:05:00Z",
    "lastUserAgent": "corner-shop/1.4",
    "lastRequestId": "3f9c0a7be1d2",
}
_USAGE = {
    "plan": "free",
    "minute": {"limit": 60, "remaining": 59, "reset": 1795262460},
    "day": {"limit": 1000, "remaining": 999, "reset": 1795305600},
    "bannedUntil": None,
    "days": [{"date": "2026-11-21", "requests": 1}],
    "deprecated": [_DEPRECATED_USE],
    "refused": [{"hour": "2026-11-21T09:00:00Z", "operation": "listPets", "requests": 12}],
    "scopes": ["pets:read", "pets:write", "orders:read", "orders:write"],
}

_RESOURCE = Resource(
    *(Usage, "/usage", "Keys", "the usage of a key", "keys:admin", "keys:admin", _USAGE),
    no_store=True,
)

OPERATIONS = (
    _RESOURCE.row(
        *("listDeprecations", "GET", "/deprecations", "List calls of deprecated operations"),
        "Returns a page of the deprecated operations that keys of this environment called in"
        " the last 30 days (UTC), sorted by key, with the last call of each.",
        _list_deprecations,
        Success(
            200,
            "A page of deprecated operations in use.",
            list[KeyDeprecatedUse],
            [_DEPRECATED_USE | {"keyId": 4, "keyName": "Till 2"}],
        ),
        query=PageQuery,
    ),
    _RESOURCE.row(
        *("getUsage", "GET", "/usage", "Get the usage of your key"),
        "Returns the plan and the scopes of your key, both windows, its ban if there is one,"
        " its requests on each of the last 30 days (UTC), the deprecated operations that it"
        " called on these days, and the requests that a limit refused in the last 7 days. The"
        " request costs nothing, and works even at a limit.",
        *(_get, Success(200, "The usage of the key.", Usage, _USAGE)),
        tag="Usage",
        scope=None,
        charged=False,
        tagged=False,
    ),
    _RESOURCE.row(
        *("getKeyUsage", "GET", "/keys/{keyId}/usage", "Get the usage of a key"),
        "Returns the usage of any key, as `getUsage` does for the key of the request.",
        *(_get_of_key, Success(200, "The usage of the key.", Usage, _USAGE)),
        tagged=False,
    ),
)
