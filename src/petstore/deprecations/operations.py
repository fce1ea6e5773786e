"""The operation that lists which keys still call deprecated operations."""

from collections.abc import Iterable

from petstore.deprecations.model import DeprecatedOperation, KeyDeprecatedUse
from petstore.deprecations.store import list_uses
from petstore.events.examples import DEPRECATED_USE
from petstore.interface.operation import BASE, Call, Context, Operation, Result, Success
from petstore.interface.pages import PageQuery, page_result


def deprecated_operations(operations: Iterable[Operation]) -> tuple[DeprecatedOperation, ...]:
    return tuple(
        DeprecatedOperation(
            operation=each.id,
            method=each.method,
            path=f"{BASE}{each.path}",
            since=each.deprecation.since,
            sunset=each.deprecation.sunset,
            use=each.deprecation.use,
            documentation=each.deprecation.documentation,
        )
        for each in operations
        if each.deprecation is not None
    )


async def _list(context: Context, call: Call[None, PageQuery]) -> Result[list[KeyDeprecatedUse]]:
    query, services = call.query, context.services
    page = await list_uses(
        services.store,
        services.deprecated,
        context.caller.environment,
        query.after,
        query.limit,
        services.clock(),
    )
    return page_result(page)


OPERATIONS = (
    Operation(
        id="listDeprecations",
        method="GET",
        path="/deprecations",
        tag="Keys",
        summary="List calls of deprecated operations",
        description=(
            "Returns a page of the deprecated operations that keys of this environment called in"
            " the last 30 days (UTC), sorted by key, with the last call of each."
        ),
        handler=_list,
        scope="keys:admin",
        no_store=True,
        query=PageQuery,
        success=Success(
            200,
            "A page of deprecated operations in use.",
            list[KeyDeprecatedUse],
            [DEPRECATED_USE | {"keyId": 4, "keyName": "Till 2"}],
        ),
    ),
)
