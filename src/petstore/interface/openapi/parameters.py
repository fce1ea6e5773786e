"""The parameters of the operations; those that many share are described once."""

from typing import Any

from petstore.interface.entity_tags import LONGEST
from petstore.interface.openapi.components import reference
from petstore.interface.openapi.schemas import parameter_schemas
from petstore.interface.operation import Operation
from petstore.interface.pages import PageQuery

_EXAMPLE_ID = 7
_NOUNS = {
    "petId": "animal",
    "categoryId": "category",
    "orderId": "order",
    "importId": "import",
    "keyId": "key",
    "personId": "person",
    "deviceId": "device",
    "webhookId": "webhook",
    "deliveryId": "delivery",
}
_VERBS = {"GET": "retrieve", "POST": "change", "PATCH": "change", "DELETE": "delete"}
_ID = {"type": "integer", "format": "int64", "minimum": 0}
_ENTITY_TAGS = {"type": "string", "maxLength": LONGEST}


def _parameter(
    place: str, name: str, description: str, schema: dict[str, Any], **others: Any
) -> dict[str, Any]:
    about = {"name": name, "in": place, "required": place == "path", "description": description}
    return about | {"schema": schema} | others


def _query_parameters(query: type[Any]) -> dict[str, dict[str, Any]]:
    return {
        name: _parameter("query", name, schema.pop("description"), schema)
        for name, schema in parameter_schemas(query).items()
    }


# Header fields have no example: a reference page would fill it in, the same for every try.
SHARED: dict[str, dict[str, Any]] = {
    "Idempotency-Key": _parameter(
        "header",
        "Idempotency-Key",
        "Any 1 to 255 visible characters, a UUID for instance, bare or as a quoted string (RFC 8941"
        " section 3.3.3). If the request is sent again with the same key within 24 hours, it does"
        " not act again, and gets the first response.",
        {"type": "string", "pattern": "^[!#-~][!-~]*$", "minLength": 1, "maxLength": 255},
    ),
    "If-Match": _parameter(
        "header",
        "If-Match",
        "Acts only if the resource is in the version of this `ETag`; otherwise 412.",
        _ENTITY_TAGS,
    ),
    "If-None-Match": _parameter(
        "header",
        "If-None-Match",
        "Acts only if the resource is in another version than this `ETag`; otherwise 304 to GET"
        " and HEAD, and 412 to other methods.",
        _ENTITY_TAGS,
    ),
    **_query_parameters(PageQuery),
}
"""The parameters that many operations share, by the names of their components."""


def parameters_of(operation: Operation) -> list[dict[str, Any]]:
    """Return the parameters of an operation, the shared ones as references."""
    parameters: dict[str, dict[str, Any]] = {}
    for name in operation.parameters:
        verb = f" to {_VERBS[operation.method]}" if name == operation.parameters[-1] else ""
        description = f"Identifier of the {_NOUNS[name]}{verb}."
        parameters[name] = _parameter("path", name, description, _ID, example=_EXAMPLE_ID)
    if operation.query is not None:
        parameters |= _query_parameters(operation.query)
    if operation.method == "POST":
        parameters["Idempotency-Key"] = SHARED["Idempotency-Key"]
    if operation.is_conditional:
        parameters |= {name: SHARED[name] for name in ("If-Match", "If-None-Match")}
    return [
        reference("parameters", name) if SHARED.get(name) == parameter else parameter
        for name, parameter in parameters.items()
    ]
