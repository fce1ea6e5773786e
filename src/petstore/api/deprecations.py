"""The operation that lists which keys still call deprecated operations."""

from collections.abc import Iterable

from petstore.api.operation import BASE, Call, Operation, Success
from petstore.api.pages import PageQuery, page_response
from petstore.domain.deprecations import DeprecatedOperation, KeyDeprecatedUse
from petstore.http.messages import Response
from petstore.store.deprecated_calls import list_uses


def deprecated_operations(operations: Iterable[Operation]) -> tuple[DeprecatedOperation, ...]:
    """Return the deprecated ones of ``operations``, in their order."""
    return tuple(
        DeprecatedOperation(
            id=operation.id,
            method=operation.method,
            path=f"{BASE}{operation.path}",
            since=operation.deprecation.since,
            sunset=operation.deprecation.sunset,
            use=operation.deprecation.use,
            documentation=operation.deprecation.documentation,
        )
        for operation in operations
        if operation.deprecation is not None
    )


async def _list(call: Call[None, PageQuery]) -> Response:
    query, services = call.query.values, call.services
    page = await list_uses(
        services.store,
        services.deprecated_calls.operations,
        call.key.environment,
        query.after,
        query.limit,
        services.clock,
    )
    return page_response(call, page)


DEPRECATED_USE = {
    "operation": "getPet",
    "method": "GET",
    "path": "/v1/pets/{petId}",
    "since": "2026-11-21T00:00:00Z",
    "sunset": "2030-12-05T00:00:00Z",
    "use": "GET /v1/pets, with id for one animal or with status",
    "documentation": "/docs/operations/getPet",
    "calls": 312,
    "lastCalledAt": "2026-11-21T10:05:00Z",
    "lastUserAgent": "corner-shop/1.4",
    "lastRequestId": "3f9c0a7be1d2",
}

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
