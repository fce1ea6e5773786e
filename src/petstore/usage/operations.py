"""The operations that show what a key has used."""

from petstore.events.examples import DEPRECATED_USE
from petstore.interface.operation import Call, Context, Operation, Result, Success
from petstore.keys.model import Caller
from petstore.keys.status import found, select_key
from petstore.limits.contract import NEVER, Decision, State
from petstore.limits.database import StoredRateLimits
from petstore.limits.decide import describe
from petstore.usage.store import Usage, get_usage


async def _get(context: Context, _: Call[None, None]) -> Result[Usage]:
    key = context.caller
    return await _usage_of(context, key, await context.services.limiter.look(key))


async def _get_of_key(context: Context, call: Call[None, None]) -> Result[Usage]:
    store, now = context.services.store, context.services.clock()
    rows = await store.read(select_key(call.path_id))
    key = found(rows, call.path_id, context.caller.environment).key
    # As it was saved, half a second ago at most: a key that somebody looks at was not used.
    state = await StoredRateLimits(store).load(key.id) or State()
    return await _usage_of(context, key, describe(state, key.limits, now, key.unbanned_at or NEVER))


async def _usage_of(context: Context, key: Caller, decision: Decision) -> Result[Usage]:
    services = context.services
    return Result(
        await get_usage(services.store, decision, services.deprecated_calls, services.refusals, key)
    )


_USAGE = {
    "plan": "free",
    "minute": {"limit": 60, "remaining": 59, "reset": 1795262460},
    "day": {"limit": 1000, "remaining": 999, "reset": 1795305600},
    "bannedUntil": None,
    "days": [{"date": "2026-11-21", "requests": 1}],
    "deprecated": [DEPRECATED_USE],
    "refused": [{"hour": "2026-11-21T09:00:00Z", "operation": "listPets", "requests": 12}],
    "scopes": ["pets:read", "pets:write", "orders:read", "orders:write"],
}

OPERATIONS = (
    Operation(
        id="getUsage",
        method="GET",
        path="/usage",
        tag="Usage",
        summary="Get the usage of your key",
        description=(
            "Returns the plan and the scopes of your key, both windows, its ban if there is one,"
            " its requests on each of the last 30 days (UTC), the deprecated operations that it"
            " called on these days, and the requests that a limit refused in the last 7 days. The"
            " request costs nothing, and works even at a limit."
        ),
        handler=_get,
        scope=None,
        charged=False,
        tagged=False,
        no_store=True,
        success=Success(200, "The usage of the key.", Usage, _USAGE),
    ),
    Operation(
        id="getKeyUsage",
        method="GET",
        path="/keys/{keyId}/usage",
        tag="Keys",
        summary="Get the usage of a key",
        description="Returns the usage of any key, as `getUsage` does for the key of the request.",
        handler=_get_of_key,
        scope="keys:admin",
        tagged=False,
        no_store=True,
        success=Success(200, "The usage of the key.", Usage, _USAGE),
    ),
)
