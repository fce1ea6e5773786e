"""The OpenAPI 3.1 document, built from the table of operations."""

import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import cache
from typing import Annotated, Any, get_args

import msgspec

from petstore import errors
from petstore.api.bodies import ACCEPT_PATCH, MERGE_PATCH
from petstore.api.deprecation_headers import deprecation_headers
from petstore.api.entity_tags import LONGEST
from petstore.api.event_examples import example_of
from petstore.api.idempotency import KEY_PATTERN
from petstore.api.messages import json_response
from petstore.api.operation import BASE, Deprecation, Operation
from petstore.domain.categories import Category
from petstore.domain.events import EVENT_TYPES, Event, EventType
from petstore.domain.fields import INT64_MAX
from petstore.domain.orders import Order
from petstore.domain.pets import Pet, PetStatus
from petstore.domain.webhooks import Webhook
from petstore.http.messages import Request, Response

INTERFACE_VERSION = "1.0.0"

_REF = "#/components/schemas/{name}"
_STATUSES = get_args(PetStatus)
_CREATED = 201
_EXAMPLE_ID = 7
_NOUNS = {
    "petId": "animal",
    "categoryId": "category",
    "orderId": "order",
    "keyId": "key",
    "webhookId": "webhook",
}
_VERBS = {"GET": "retrieve", "POST": "change", "PATCH": "change", "DELETE": "delete"}

_DESCRIPTION = """The animals a store offers: list, filter, add, sell.

Every operation needs an API key, which the store's operator issues with `petstore keys create`. To
try one here, press *Authorize* and paste the key alone, without `Bearer`.

A key has a plan, which says how many requests a minute and a day it may make. Every response says
what is left; 429 says in `Retry-After` how long to wait.

A POST with an `Idempotency-Key` acts once, however often it is sent within 24 hours."""
_TAGS = {
    "Pets": "The animals a store offers.",
    "Events": "What happened in the store, and what concerns your key.",
    "Categories": "What kinds of animals there are.",
    "Store": "Orders, one animal and one buyer each, and what is in store.",
    "Keys": "API keys, for keys with the scope `keys:admin`.",
    "Usage": "What a key has used and may still use.",
    "Webhooks": "Where your key wants its events sent.",
}


def _header(description: str, example: str | int) -> dict[str, Any]:
    kind = "integer" if isinstance(example, int) else "string"
    return {"description": description, "schema": {"type": kind}, "example": example}


_ALWAYS = {
    "X-RateLimit-Limit": _header("The limit that applies to the caller.", 60),
    "X-RateLimit-Remaining": _header("Requests remaining in the current window.", 59),
    "X-RateLimit-Reset": _header("Unix timestamp at which the limit resets.", 1795262460),
    "RateLimit-Policy": _header(
        "The windows that have a limit: quota and seconds.",
        '"minute";q=60;w=60, "day";q=1000;w=86400',
    ),
    "RateLimit": _header(
        "The windows that have a limit: requests remaining, and seconds to the reset.",
        '"minute";r=59;t=60, "day";r=999;t=43200',
    ),
    "X-Request-Id": _header(
        "The client's, if it sent a usable one, else a new one.", "3f9c0a7be1d2"
    ),
    "Vary": _header("The response depends on the key.", "Authorization"),
}
_PRIVATE = _header("No shared cache may keep the response.", "private, no-cache")
_NO_STORE = _header("No cache may keep the response.", "no-store")
_ETAG = _header(
    "The version of the resource (RFC 9110 section 8.8.3).", '"5f1c3c6a9a3d2b3f0a7e9d10"'
)
_REPLAYED = _header("Present, and true, if this is a replay of the first response.", "true")
_ACCEPT_PATCH = _header("The media types of a PATCH (RFC 5789 section 3.1).", ACCEPT_PATCH)
_BEARER = _header("How to authenticate (RFC 6750).", 'Bearer realm="petstore"')
_HELP = _header(
    'Where the error is explained, with `rel="help"` (RFC 8288).',
    '<https://api.example.com/docs/errors#not_found>; rel="help"',
)
_RETRY_AFTER = {"Retry-After": _header("Whole seconds to wait before trying again.", 42)}
_HEADERS_OF_STATUS = {
    401: {"WWW-Authenticate": _BEARER},
    403: {"WWW-Authenticate": _BEARER},
    415: {"Accept-Encoding": _header("The encodings of a body (RFC 9110 12.5.3).", "identity")},
    429: _RETRY_AFTER,
    503: _RETRY_AFTER,
}
_DEPRECATION_TEXTS = {
    b"deprecation": ("Deprecation", "Since when it is deprecated (RFC 9745)."),
    b"sunset": ("Sunset", "When it ends (RFC 8594)."),
    b"link": ("Link", "What replaces it, and where that and an error are explained."),
}


def _parameter(
    place: str, name: str, description: str, schema: dict[str, Any], **others: Any
) -> dict[str, Any]:
    """Describe a parameter.

    Header fields have no example: the reference page would fill it in, the same for every try.
    """
    about = {"name": name, "in": place, "required": place == "path", "description": description}
    return about | {"schema": schema} | others


_IDEMPOTENCY_KEY = _parameter(
    "header",
    "Idempotency-Key",
    "Any 1 to 255 visible characters, a UUID for instance. If the request is sent again with the"
    " same key within 24 hours, it does not act again, and gets the first response.",
    {"type": "string", "pattern": KEY_PATTERN},
)
_ENTITY_TAGS = {"type": "string", "maxLength": LONGEST}
_CONDITIONS = (
    _parameter(
        "header",
        "If-Match",
        "Acts only if the resource is in the version of this `ETag`; otherwise 412.",
        _ENTITY_TAGS,
    ),
    _parameter(
        "header",
        "If-None-Match",
        "Acts only if the resource is in another version than this `ETag`; otherwise 304 to GET"
        " and HEAD, and 412 to other methods.",
        _ENTITY_TAGS,
    ),
)
_SIGNATURE = tuple(
    _parameter("header", name, description, schema, required=True, example=example)
    for name, description, schema, example in (
        (
            "webhook-id",
            "The `id` of the event, the same at each attempt.",
            {"type": "string"},
            "evt_5f1c3c6a9a3d2b3f0a7e9d01",
        ),
        (
            "webhook-timestamp",
            "When it was sent, in Unix seconds.",
            {"type": "integer"},
            1795255500,
        ),
        (
            "webhook-signature",
            "`v1,` and the HMAC-SHA256 of `id.timestamp.body` in base64; more may follow a space.",
            {"type": "string"},
            "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=",
        ),
    )
)
_DELIVERY = (
    "What the service sends to the URL of a webhook. Check `webhook-signature`, and respond within"
    " 15 seconds."
)
_RESOURCES = {"pet": Pet, "order": Order, "category": Category, "webhook": Webhook}
_EVERYWHERE = (
    *(errors.InvalidRequest, errors.MissingKey, errors.InvalidKey, errors.NetworkNotAllowed),
    *(errors.RateLimitExceeded, errors.InternalError, errors.Unavailable),
)
_BODY_ERRORS = (
    errors.InvalidBody,
    errors.IncompleteBody,
    errors.RequestTimeout,
    errors.ContentTooLarge,
    errors.UnsupportedMediaType,
)


class Error(msgspec.Struct, frozen=True):
    """The body of every response that is not 2xx."""

    code: Annotated[str, msgspec.Meta(description="Machine-readable error code.")]
    message: Annotated[str, msgspec.Meta(description="Human-readable description.")]
    status: Annotated[int, msgspec.Meta(description="The HTTP status code.")]


def openapi_page(
    base: str, operations: Sequence[Operation]
) -> Callable[[Request], Awaitable[Response]]:
    """Return the page that responds with the document, encoded once."""

    @cache
    def response() -> Response:
        return json_response(200, document(base, operations))

    async def respond(_: Request) -> Response:
        return response()

    return respond


def document(base: str, operations: Sequence[Operation]) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of ``operations``."""
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        described = _operation(operation)
        if operation.success.status == _CREATED:
            described["responses"]["201"]["links"] = _links(operation, operations)
        paths.setdefault(operation.path, {})[operation.method.lower()] = described
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Petstore",
            "version": INTERFACE_VERSION,
            "description": _DESCRIPTION,
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": base}],
        "tags": [{"name": name, "description": text} for name, text in _TAGS.items()],
        "security": [{"bearer": []}],
        "paths": paths,
        "webhooks": {kind: {"post": _delivery(kind)} for kind in EVENT_TYPES},
        "components": {
            "schemas": _schemas(operations),
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "The API key; it is sent as `Authorization: Bearer <API_KEY>`.",
                }
            },
        },
    }


def _delivery(kind: EventType) -> dict[str, Any]:
    """Describe the request that brings an event to a webhook (Standard Webhooks 1.0.0)."""
    resource = _RESOURCES.get(kind.partition(".")[0])
    data = {"type": "object"} if resource is None else _schema(resource)
    properties = {"type": {"const": kind}, "data": data}
    event = {"allOf": [_schema(Event), {"type": "object", "properties": properties}]}
    return {
        "operationId": kind,
        "tags": ["Webhooks"],
        "summary": kind,
        "description": _DELIVERY,
        "security": [],
        "parameters": [*_SIGNATURE],
        "requestBody": {"required": True, "content": _json(event, example_of(kind))},
        "responses": {
            "2XX": {"description": "The event is taken. Whatever else comes, it is sent again."},
            "410": {"description": "The webhook is disabled at once."},
        },
    }


def _operation(operation: Operation) -> dict[str, Any]:
    scope = f"\n\nNeeds the scope `{operation.scope}`." if operation.scope else ""
    described: dict[str, Any] = {
        "operationId": operation.id,
        "tags": [operation.tag],
        "summary": operation.summary,
        "description": operation.description + scope,
        "parameters": _parameters(operation),
        "responses": _responses(operation),
    }
    if operation.body is not None:
        content = _json(_schema(operation.body), operation.body_example)
        if operation.method == "PATCH":
            content[MERGE_PATCH] = content["application/json"]
        described["requestBody"] = {"required": operation.body_required, "content": content}
    if operation.deprecation is not None:
        described["deprecated"] = True
        described["x-sunset"] = operation.deprecation.sunset.date().isoformat()
    return described


def _parameters(operation: Operation) -> list[dict[str, Any]]:
    parameters: list[dict[str, Any]] = []
    if operation.parameter is not None:
        noun = _NOUNS[operation.parameter]
        description = f"Identifier of the {noun} to {_VERBS[operation.method]}."
        schema = {"type": "integer", "format": "int64", "minimum": 0, "maximum": INT64_MAX}
        parameters.append(
            _parameter("path", operation.parameter, description, schema, example=_EXAMPLE_ID)
        )
    if operation.query is not None:
        fields = _component(operation.query)["properties"]
        parameters += [
            _parameter("query", name, schema.pop("description"), schema)
            for name, schema in fields.items()
        ]
    if operation.method == "POST":
        parameters.append(_IDEMPOTENCY_KEY)
    if operation.is_conditional:
        parameters += _CONDITIONS
    return parameters


def _responses(operation: Operation) -> dict[str, Any]:
    always = _ALWAYS | {"Cache-Control": _NO_STORE if operation.no_store else _PRIVATE}
    if operation.deprecation is not None:
        always |= _deprecation_headers(operation.deprecation)
    by_status: dict[int, list[type[errors.PetstoreError]]] = {}
    for error in sorted(_possible_errors(operation), key=lambda error: error.status):
        by_status.setdefault(error.status, []).append(error)
    responses = {str(operation.success.status): _success(operation, always)}
    if operation.tagged and operation.method == "GET":
        responses["304"] = {
            "description": "The resource is still in the version that the client has.",
            "headers": always | {"ETag": _ETAG},
        }
    for status, group in by_status.items():
        headers = always | _HEADERS_OF_STATUS.get(status, {})
        if status == errors.Conflict.status and operation.method == "POST":
            headers |= {"Idempotent-Replayed": _REPLAYED}
        if status == errors.UnsupportedMediaType.status and operation.method == "PATCH":
            headers |= {"Accept-Patch": _ACCEPT_PATCH}
        responses[str(status)] = _errors(group, headers)
    return responses


def _possible_errors(operation: Operation) -> Iterable[type[errors.PetstoreError]]:
    """Return the errors of the operation itself, and those that follow from its other fields."""
    is_post, is_conditional = operation.method == "POST", operation.is_conditional
    groups: list[tuple[bool, Sequence[type[errors.PetstoreError]]]] = [
        (True, _EVERYWHERE),
        (True, operation.errors),
        (operation.charged, (errors.KeyBanned,)),
        (operation.scope is not None, (errors.MissingScope,)),
        (operation.body is not None, _BODY_ERRORS),
        (operation.query is not None, (errors.InvalidParameter,)),
        (operation.parameter is not None, (errors.NotFound,)),
        (operation.deprecation is not None, (errors.Gone,)),
        (is_post, (errors.InvalidParameter, errors.IdempotencyKeyInUse)),
        (is_post, (errors.IdempotencyKeyReused,)),
        (is_conditional, (errors.InvalidParameter, errors.PreconditionFailed)),
    ]
    return dict.fromkeys(error for applies, group in groups if applies for error in group)


def _success(operation: Operation, always: dict[str, Any]) -> dict[str, Any]:
    success, path = operation.success, f"{BASE}{operation.path}"
    headers = dict(always)
    response: dict[str, Any] = {"description": success.description, "headers": headers}
    if operation.query is not None:
        target = re.sub(r"{\w+}", str(_EXAMPLE_ID), path)
        example = f'<{target}?limit=20&cursor=AAAAAAAAABQ>; rel="next"'
        headers["Link"] = _header("The next page, if there is one (RFC 8288).", example)
    if success.status == _CREATED:
        headers["Location"] = _header("Where it is.", f"{path}/{success.example['id']}")
    if operation.tagged and success.content is not None:
        headers["ETag"] = _ETAG
    if operation.method == "POST":
        headers["Idempotent-Replayed"] = _REPLAYED
    if success.content is not None:
        response["content"] = _json(_content(success.content), success.example)
    return response


def _links(created: Operation, operations: Sequence[Operation]) -> dict[str, Any]:
    """Link what was created to the operations on it."""
    return {
        operation.id: {
            "operationId": operation.id,
            "parameters": {operation.parameter: "$response.body#/id"},
        }
        for operation in operations
        if operation.path.startswith(f"{created.path}/{{")
    }


def _errors(group: Sequence[type[errors.PetstoreError]], headers: dict[str, Any]) -> dict[str, Any]:
    """Describe the errors of one status."""
    examples = {
        error.code: {
            "value": {"code": error.code, "message": _summary(error), "status": error.status}
        }
        for error in group
    }
    schema = {"$ref": _REF.format(name="Error")}
    return {
        "description": " ".join(_summary(error) for error in group),
        "headers": {"Link": _HELP} | headers,
        "content": {"application/json": {"schema": schema, "examples": examples}},
    }


def _deprecation_headers(deprecation: Deprecation) -> dict[str, Any]:
    headers = {}
    for line in deprecation_headers(deprecation):
        field, _, value = line.partition(b": ")
        name, description = _DEPRECATION_TEXTS[field]
        headers[name] = _header(description, value.decode("ascii"))
    return headers


def _summary(error: type[errors.PetstoreError]) -> str:
    return (inspect.getdoc(error) or "").partition("\n")[0]


def _json(schema: dict[str, Any], example: Any) -> dict[str, Any]:
    return {"application/json": {"schema": schema, "example": example}}


def _schemas(operations: Iterable[Operation]) -> dict[str, Any]:
    contents = [
        content
        for operation in operations
        for content in (operation.body, operation.success.content)
        if content is not None
    ]
    contents += [Event, *_RESOURCES.values()]
    _, components = msgspec.json.schema_components([*contents, Error], ref_template=_REF)
    for name, schema in components.items():
        schema["title"] = name
    # interface.md names these two. In the code they are aliases, which have no name.
    return {
        **_typed(components),
        "Pets": {"title": "Pets", **_schema(list[Pet])},
        "PetStatus": {"title": "PetStatus", "type": "string", "enum": [*_STATUSES]},
    }


def _content(content: Any) -> dict[str, Any]:
    return {"$ref": _REF.format(name="Pets")} if content == list[Pet] else _schema(content)


def _schema(content: Any) -> dict[str, Any]:
    (schema,), _ = msgspec.json.schema_components([content], ref_template=_REF)
    return schema


def _component(struct: type[Any]) -> dict[str, Any]:
    _, components = msgspec.json.schema_components([struct], ref_template=_REF)
    component: dict[str, Any] = _typed(components[struct.__name__])
    return component


def _typed(schema: Any) -> Any:
    """Return ``schema`` with the type of each enumeration, and PetStatus by its name.

    A client may repeat an item of a list, even where the service makes a set of it.
    """
    if isinstance(schema, list):
        return [_typed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "enum" not in schema:
        return {name: _typed(item) for name, item in schema.items() if name != "uniqueItems"}
    if set(schema["enum"]) != set(_STATUSES):
        return {"type": "string", **schema}
    others = {name: item for name, item in schema.items() if name != "enum"}
    return {"$ref": _REF.format(name="PetStatus"), **others}
