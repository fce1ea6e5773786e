"""The row of usage."""

from petstore.api.operation import Operation, Success
from petstore.api.usage import answer_get_usage
from petstore.store.usage import Usage

USAGE = (
    Operation(
        id="getUsage",
        method="GET",
        path="/usage",
        tag="Usage",
        summary="See what your key has used",
        description=(
            "Returns the plan of the key that asks, both of its windows, its ban if there is one,"
            " and its requests a day for the last 30 days (UTC). It costs nothing, and answers"
            " when a limit is reached too."
        ),
        handler=answer_get_usage,
        scope=None,
        charged=False,
        success=Success(
            200,
            "The use of the key.",
            Usage,
            {
                "plan": "free",
                "minute": {"limit": 60, "remaining": 59, "reset": 1795262460},
                "day": {"limit": 1000, "remaining": 999, "reset": 1795305600},
                "bannedUntil": None,
                "days": [{"date": "2026-11-21", "requests": 1}],
            },
        ),
    ),
)
