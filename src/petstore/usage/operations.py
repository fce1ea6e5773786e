"""The operation that shows what a key has used."""

from petstore.events.examples import DEPRECATED_USE
from petstore.interface.operation import Call, Context, Operation, Result, Success
from petstore.usage.store import Usage, get_usage


async def _get(context: Context, _: Call[None, None]) -> Result[Usage]:
    services, key = context.services, context.caller
    return Result(
        await get_usage(
            services.store,
            services.limiter,
            services.deprecated_calls,
            services.refusals,
            key,
        )
    )


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
        success=Success(
            200,
            "The usage of the key.",
            Usage,
            {
                "plan": "free",
                "minute": {"limit": 60, "remaining": 59, "reset": 1795262460},
                "day": {"limit": 1000, "remaining": 999, "reset": 1795305600},
                "bannedUntil": None,
                "days": [{"date": "2026-11-21", "requests": 1}],
                "deprecated": [DEPRECATED_USE],
                "refused": [
                    {"hour": "2026-11-21T09:00:00Z", "operation": "listPets", "requests": 12}
                ],
                "scopes": ["pets:read", "pets:write", "orders:read", "orders:write"],
            },
        ),
    ),
)
