"""The OpenAPI 3.1 document, built from the table of operations."""

from collections.abc import Sequence
from typing import Any

from petstore.interface.bodies import MERGE_PATCH
from petstore.interface.messages import LONGEST
from petstore.interface.openapi.errors import COMMON_ERRORS
from petstore.interface.openapi.events import SIGNATURE, TAG, deliveries, event_schemas
from petstore.interface.openapi.headers import HEADERS
from petstore.interface.openapi.responses import Described, responses_of, shared_responses
from petstore.interface.openapi.schemas import (
    component_schemas,
    file_content,
    json_content,
    parameter_schemas,
    reference,
    schema_of,
)
from petstore.interface.operation import BASE, Operation
from petstore.interface.pages import PageQuery

_INTERFACE_VERSION = "1.0.0"

_DESCRIPTION = """List, filter, add and sell the animals of a store.

Every operation needs an API key. The operator of the store issues it with `petstore keys create`.

A key has a plan, which limits its requests a minute and a day. Every response shows what is left. A
429 response says in `Retry-After` how long to wait.

A POST with an `Idempotency-Key` takes effect once, even if you send it several times in 24 hours.

JavaScript rounds integers above 2^53 - 1. The service assigns ids from 1 upwards, and does not
reach that number. You choose each `categoryId` yourself: keep it below."""
_TAGS = {
    "Pets": "The animals a store offers.",
    "Events": "Changes in the store, and events about your key.",
    "Categories": "Categories of animals.",
    "Store": "Orders and the inventory. An order reserves one animal for one buyer.",
    "Imports": "Files of pets, added to the store and undone.",
    "Keys": "API keys. These operations need the scope `keys:admin`.",
    "People": "People who work in the console. These operations need the scope `keys:admin`.",
    "Usage": "The usage and the limits of a key.",
    "Webhooks": "Webhooks: the service sends events to your URL.",
    TAG: "Deliveries: the requests that the service sends to the URL of a webhook.",
}
_BEARER = {
    "type": "http",
    "scheme": "bearer",
    "description": (
        "The API key, sent as `Authorization: Bearer <API_KEY>`. Each operation names the scopes"
        " that it needs."
    ),
}
_OPTIONAL_BODY = "Optional: without a body every member has its default. `null` is refused."


def document(origin: str, operations: Sequence[Operation]) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of ``operations`` for the service at ``origin``."""
    shared = shared_responses(operations)
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        described = _operation(operation, operations, shared)
        paths.setdefault(operation.path, {})[operation.method.lower()] = described
    schemas = component_schemas(operations)
    docs = f"{origin}/docs/"
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Petstore",
            "version": _INTERFACE_VERSION,
            "description": _DESCRIPTION,
            "contact": {"name": "Petstore", "url": docs},
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": f"{origin}{BASE}", "description": "This store."}],
        "externalDocs": {"description": "Tutorials, guides and reference", "url": docs},
        "tags": [{"name": name, "description": text} for name, text in _TAGS.items()],
        "security": [{"bearer": []}],
        "paths": paths,
        "webhooks": deliveries(),
        "components": {
            "schemas": schemas | event_schemas(schemas),
            "headers": HEADERS,
            "parameters": SHARED | SIGNATURE,
            "responses": shared,
            "examples": {code: error.example for code, error in COMMON_ERRORS.items()},
            "securitySchemes": {"bearer": _BEARER},
        },
    }


def _operation(
    operation: Operation, operations: Sequence[Operation], shared: dict[str, Described]
) -> dict[str, Any]:
    scope = f"\n\nNeeds the scope `{operation.scope}`." if operation.scope else ""
    described: dict[str, Any] = {
        "operationId": operation.id,
        "tags": [operation.tag],
        "summary": operation.summary,
        "description": operation.description + scope,
        "security": [{"bearer": [operation.scope] if operation.scope else []}],
        "parameters": parameters_of(operation),
        "responses": responses_of(operation, operations, shared),
    }
    if operation.body is not None:
        example = operation.body_example
        if operation.media_types:
            content = file_content(operation.media_types, example)
        else:
            content = json_content(schema_of(operation.body, min_items=1), example)
        if operation.method == "PATCH":
            content[MERGE_PATCH] = content["application/json"]
        body: dict[str, Any] = {"required": operation.body_required, "content": content}
        described["requestBody"] = (
            body if operation.body_required else {"description": _OPTIONAL_BODY, **body}
        )
    if operation.deprecation is not None:
        described["deprecated"] = True
        described["x-sunset"] = operation.deprecation.sunset.date().isoformat()
    return described


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
