"""The OpenAPI 3.1 document, built from the table of operations."""

import inspect
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, get_args

import msgspec

from petstore.api.bodies import ACCEPT_PATCH, MERGE_PATCH
from petstore.api.deprecation_headers import deprecation_headers
from petstore.api.entity_tags import LONGEST
from petstore.api.idempotency import KEY_PATTERN
from petstore.api.messages import json_response
from petstore.api.operation import Deprecation, Operation, ResponseHeader
from petstore.domain.fields import INT64_MAX
from petstore.domain.pets import Pet, PetStatus
from petstore.errors import (
    Conflict,
    IdempotencyKeyInUse,
    IdempotencyKeyReused,
    InternalError,
    InvalidKey,
    InvalidParameter,
    InvalidRequest,
    KeyBanned,
    MissingKey,
    MissingScope,
    PetstoreError,
    PreconditionFailed,
    RateLimitExceeded,
    Unavailable,
    UnsupportedMediaType,
)
from petstore.http.messages import Request, Response

INTERFACE_VERSION = "1.0.0"

_REF = "#/components/schemas/{name}"
_STATUSES = get_args(PetStatus)

_DESCRIPTION = """The animals a store offers: list, filter, add, sell.

Every operation needs an API key, which the store's operator issues with `petstore keys create`. To
try one here, press *Authorize* and paste the key alone, without `Bearer`.

A key has a plan, which says how many requests a minute and a day it may make. Every response tells
what is left; 429 says in `Retry-After` how long to wait.

A POST with an `Idempotency-Key` acts once, however often it is sent within 24 hours."""
_TAGS = {
    "Pets": "The animals a store offers.",
    "Categories": "What kinds of animals there are.",
    "Store": "Orders, one animal and one buyer each, and what is in store.",
    "Keys": "API keys, for keys with the scope `keys:admin`.",
    "Usage": "What a key has used and may still use.",
}

_RATE_LIMITS = (
    ResponseHeader("X-RateLimit-Limit", "The limit that applies to the caller.", 60),
    ResponseHeader("X-RateLimit-Remaining", "Requests remaining in the current window.", 59),
    ResponseHeader("X-RateLimit-Reset", "Unix timestamp at which the limit resets.", 1795262460),
    ResponseHeader(
        "RateLimit-Policy",
        "The windows that have a limit: quota and seconds.",
        '"minute";q=60;w=60, "day";q=1000;w=86400',
    ),
    ResponseHeader(
        "RateLimit",
        "The windows that have a limit: requests remaining, and seconds to the reset.",
        '"minute";r=59;t=60, "day";r=999;t=43200',
    ),
    ResponseHeader(
        "X-Request-Id", "The caller's, if it sent a usable one, else a fresh one.", "3f9c0a7be1d2"
    ),
)
_VARY = ResponseHeader("Vary", "The response depends on the key.", "Authorization")
_CACHE_CONTROL = ResponseHeader(
    "Cache-Control", "No shared cache may keep the response.", "private, no-cache"
)
_NO_STORE = ResponseHeader("Cache-Control", "No cache may keep the response.", "no-store")
_ACCEPT_PATCH = ResponseHeader(
    "Accept-Patch", "The media types of a PATCH (RFC 5789 section 3.1).", ACCEPT_PATCH
)
_ACCEPT_ENCODING = ResponseHeader(
    "Accept-Encoding", "If the body was encoded (RFC 9110 section 15.5.16).", "identity"
)
_RETRY_AFTER = ResponseHeader("Retry-After", "Whole seconds to wait before trying again.", 42)
_CHALLENGE = ResponseHeader(
    "WWW-Authenticate", "How to authenticate (RFC 6750).", 'Bearer realm="petstore"'
)
_ETAG = ResponseHeader(
    "ETag", "The version of the resource (RFC 9110 section 8.8.3).", '"5f1c3c6a9a3d2b3f0a7e9d10"'
)
_REPLAYED = ResponseHeader(
    "Idempotent-Replayed", "There, and true, if this is an answer given before.", "true"
)


def _header_parameter(name: str, description: str, **schema: str | int) -> dict[str, Any]:
    """Describe a header field of the request.

    Without an example: the reference page would fill it in, and every try would be the same one.
    """
    return {
        "name": name,
        "in": "header",
        "required": False,
        "description": description,
        "schema": {"type": "string", **schema},
    }


_IDEMPOTENCY_KEY = _header_parameter(
    "Idempotency-Key",
    "Any 1 to 255 visible characters, a UUID for instance. Sent again with the same key within"
    " 24 hours, the request acts no second time and is answered as it was at first.",
    pattern=KEY_PATTERN,
)
_IF_MATCH = _header_parameter(
    "If-Match",
    "Acts only if the resource is in the version of this `ETag`; otherwise 412.",
    maxLength=LONGEST,
)
_IF_NONE_MATCH = _header_parameter(
    "If-None-Match",
    "Acts only if the resource is in another version than that of this `ETag`; otherwise 304 to GET"
    " and HEAD, and 412 to the rest.",
    maxLength=LONGEST,
)
_HEADERS_OF_STATUS = {
    401: (_CHALLENGE,),
    403: (_CHALLENGE,),
    415: (_ACCEPT_ENCODING,),
    429: (_RETRY_AFTER,),
    503: (_RETRY_AFTER,),
}
_EVERYWHERE = (
    InvalidRequest,
    MissingKey,
    InvalidKey,
    RateLimitExceeded,
    InternalError,
    Unavailable,
)


class Error(msgspec.Struct, frozen=True):
    """The body of every response that is not 2xx."""

    code: Annotated[str, msgspec.Meta(description="Machine-readable error code.")]
    message: Annotated[str, msgspec.Meta(description="Human-readable description.")]
    status: Annotated[int, msgspec.Meta(description="The HTTP status code.")]


class OpenApiPage:
    """Answers with the document, encoded once."""

    def __init__(self, base: str, operations: Sequence[Operation]) -> None:
        self._answer: Response | None = None
        self._base = base
        self._operations = operations

    async def answer(self, _: Request) -> Response:
        """Respond with the document."""
        if self._answer is None:
            self._answer = json_response(200, document(self._base, self._operations))
        return self._answer


def document(base: str, operations: Iterable[Operation]) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of ``operations``."""
    operations = list(operations)
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation)
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


def _operation(operation: Operation) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": operation.id,
        "tags": [operation.tag],
        "summary": operation.summary,
        "description": _description(operation),
        "parameters": _parameters(operation),
        "responses": _responses(operation),
    }
    if operation.body is not None:
        described["requestBody"] = {
            "required": operation.body_required,
            "content": _json(_schema(operation.body), operation.body_example),
        }
        if operation.method == "PATCH":
            content = described["requestBody"]["content"]
            content[MERGE_PATCH] = content["application/json"]
    if operation.deprecation is not None:
        described["deprecated"] = True
        described["x-sunset"] = operation.deprecation.sunset.date().isoformat()
    return described


def _description(operation: Operation) -> str:
    if operation.scope is None:
        return operation.description
    return f"{operation.description}\n\nNeeds the scope `{operation.scope}`."


def _parameters(operation: Operation) -> list[dict[str, Any]]:
    parameters: list[dict[str, Any]] = []
    if operation.parameter is not None:
        parameters.append(
            {
                "name": operation.parameter.name,
                "in": "path",
                "required": True,
                "description": operation.parameter.description,
                "schema": {
                    "type": "integer",
                    "format": "int64",
                    "minimum": 0,
                    "maximum": INT64_MAX,
                },
                "example": 7,
            }
        )
    if operation.query is not None:
        parameters += _query_parameters(operation.query)
    if operation.method == "POST":
        parameters.append(_IDEMPOTENCY_KEY)
    if operation.is_conditional:
        parameters += (_IF_MATCH, _IF_NONE_MATCH)
    return parameters


def _query_parameters(query: type[Any]) -> list[dict[str, Any]]:
    schema = _component(query)
    return [
        {
            "name": name,
            "in": "query",
            "required": False,
            "description": field.pop("description"),
            "schema": field,
        }
        for name, field in schema["properties"].items()
    ]


def _responses(operation: Operation) -> dict[str, Any]:
    caching = (_VARY, _NO_STORE if operation.no_store else _CACHE_CONTROL)
    always = [*_RATE_LIMITS, *caching, *_deprecation_headers(operation.deprecation)]
    by_status: dict[int, list[type[PetstoreError]]] = {}
    for error in sorted(_possible_errors(operation), key=lambda error: error.status):
        by_status.setdefault(error.status, []).append(error)
    responses = {str(operation.success.status): _success(operation, always)}
    if operation.tagged and operation.method == "GET":
        responses["304"] = {
            "description": "The resource is still in the version that the caller has.",
            "headers": _headers((*always, _ETAG)),
        }
    for status, group in by_status.items():
        headers = [*always, *_HEADERS_OF_STATUS.get(status, ())]
        if status == Conflict.status and operation.method == "POST":
            headers.append(_REPLAYED)
        if status == UnsupportedMediaType.status and operation.method == "PATCH":
            headers.append(_ACCEPT_PATCH)
        responses[str(status)] = _errors(group, headers)
    return responses


def _possible_errors(operation: Operation) -> Iterable[type[PetstoreError]]:
    errors = [*_EVERYWHERE, *operation.errors]
    if operation.charged:
        errors.append(KeyBanned)
    if operation.scope is not None:
        errors.append(MissingScope)
    if operation.method == "POST":
        errors += (InvalidParameter, IdempotencyKeyInUse, IdempotencyKeyReused)
    if operation.is_conditional:
        errors += (InvalidParameter, PreconditionFailed)
    return dict.fromkeys(errors)


def _success(operation: Operation, always: Iterable[ResponseHeader]) -> dict[str, Any]:
    success = operation.success
    headers = [*always, *success.headers]
    if operation.tagged and success.content is not None:
        headers.append(_ETAG)
    if operation.method == "POST":
        headers.append(_REPLAYED)
    response = {"description": success.description, "headers": _headers(headers)}
    if success.content is not None:
        response["content"] = _json(_content(success.content), success.example)
    if success.links:
        response["links"] = success.links
    return response


def _errors(
    group: Sequence[type[PetstoreError]], always: Iterable[ResponseHeader]
) -> dict[str, Any]:
    """Describe the errors of one status."""
    return {
        "description": " ".join(_summary(error) for error in group),
        "headers": _headers(always),
        "content": {
            "application/json": {
                "schema": {"$ref": _REF.format(name="Error")},
                "examples": {error.code: {"value": _error_body(error)} for error in group},
            }
        },
    }


def _error_body(error: type[PetstoreError]) -> dict[str, Any]:
    return {"code": error.code, "message": _summary(error), "status": error.status}


def _headers(headers: Iterable[ResponseHeader]) -> dict[str, Any]:
    return {
        header.name: {
            "description": header.description,
            "schema": {"type": "integer" if isinstance(header.example, int) else "string"},
            "example": header.example,
        }
        for header in headers
    }


def _deprecation_headers(deprecation: Deprecation | None) -> list[ResponseHeader]:
    if deprecation is None:
        return []
    texts = {
        b"deprecation": ("Deprecation", "Since when it is deprecated (RFC 9745)."),
        b"sunset": ("Sunset", "When it ends (RFC 8594)."),
        b"link": ("Link", "What replaces it, and where that is explained."),
    }
    return [
        ResponseHeader(*texts[name], value.decode("ascii"))
        for name, _, value in (line.partition(b": ") for line in deprecation_headers(deprecation))
    ]


def _summary(error: type[PetstoreError]) -> str:
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
    _, components = msgspec.json.schema_components([*contents, Error], ref_template=_REF)
    for name, schema in components.items():
        schema["title"] = name
    # Named in interface.md, and in the code aliases, which lose their names.
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
    """Return ``schema`` with the type that enumerations lack, and PetStatus by its name.

    A list may name one of them twice, whatever the sets it becomes do.
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
