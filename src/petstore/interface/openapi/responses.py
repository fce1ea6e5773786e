"""The responses of each operation: their headers and errors. Many share the same ones."""

from collections.abc import Iterator, Sequence
from http import HTTPStatus
from inspect import getdoc
from itertools import groupby

from petstore import errors
from petstore.errors import PetstoreError
from petstore.interface.bodies import ACCEPT_PATCH
from petstore.interface.openapi.schemas import (
    TEXT,
    Schema,
    file_content,
    json_content,
    reference,
    schema_of,
)
from petstore.interface.operation import Operation
from petstore.interface.operations import OPERATIONS

_NUMBER = {"type": "integer", "format": "int64", "minimum": 0}
_SHOP = "https://api.example.com"


def _header(about: str, example: str | int) -> Schema:
    """Describe a header of every response that names it, unless ``about`` says when it is sent."""
    is_required, schema = not about.startswith("If "), _NUMBER if isinstance(example, int) else TEXT
    return {"description": about, "required": is_required, "schema": schema, "example": example}


HEADERS: dict[str, Schema] = {
    "X-RateLimit-Limit": _header("The limit that applies to the caller.", 60),
    "X-RateLimit-Remaining": _header("Requests remaining in the current window.", 59),
    "X-RateLimit-Reset": _header("Unix timestamp at which the limit resets.", 1795262460),
    "RateLimit-Policy": _header(
        "If the key has limits: the quota and the seconds of each window.",
        '"minute";q=60;w=60, "day";q=1000;w=86400',
    ),
    "RateLimit": _header(
        "If the key has limits: what remains of each window, and the seconds to its reset.",
        '"minute";r=59;t=60, "day";r=999;t=43200',
    ),
    "X-Request-Id": _header("The id that you sent, if it is usable; else a new one.", "3f9c0a7be1"),
    "Vary": _header("If the operation is known: the response depends on the key.", "Authorization"),
    "Cache-Control": _header(
        "With `no-store`, no cache can keep the response.", "private, no-cache"
    ),
    "ETag": _header("The version of the resource (RFC 9110).", '"5f1c3c6a9a3d2b3f0a7e9d10"'),
    "Location": _header("The address of the new resource.", f"{_SHOP}/v1/pets/7"),
    "Link-Next": _header(
        "If there is a next page: its address (RFC 8288).",
        f'<{_SHOP}/v1/pets?limit=20&cursor=AAAAAAAAABQ>; rel="next"',
    ),
    "Link-Latest": _header(
        'If there is more now, the next page, with `rel="next"`. Unless the newest come first, also'
        ' where to resume later, with `rel="latest"` (RFC 8288).',
        f'<{_SHOP}/v1/events?cursor=AAAAAAAAAAdfHDxq>; rel="latest"',
    ),
    "X-Total-Count": _header(
        "If you sent `count=true`: how many records match, or 10001 for more than 10,000.", 4213
    ),
    "Idempotent-Replayed": _header("If this is a replay of the first response: `true`.", "true"),
    "Retry-After": _header("Whole seconds to wait before trying again.", 42),
    "WWW-Authenticate": _header(
        "If the key is missing, not valid or lacks a scope: how to authenticate (RFC 6750).",
        'Bearer realm="petstore", error="insufficient_scope", scope="pets:write"',
    ),
    "Accept-Encoding": _header("If the body has another encoding: the one to use.", "identity"),
    "Accept-Patch": _header("If a PATCH has another media type: those to use.", ACCEPT_PATCH),
    "Deprecation": _header("Since when the operation is deprecated (RFC 9745).", "@1795219200"),
    "Sunset": _header("When the operation ends (RFC 8594).", "Thu, 05 Dec 2030 00:00:00 GMT"),
    "Link-Help": _header(
        "Where the error is explained.", f'<{_SHOP}/docs/errors#gone>; rel="help"'
    ),
    "Link-Deprecation": _header(
        "Where the deprecation and an error are explained, and what replaces the operation.",
        f'<{_SHOP}/docs/versions>; rel="deprecation", <{_SHOP}/v1/pets>; rel="successor-version"',
    ),
}
"""The headers by the names of their components: what is called ``Link-…`` is a ``Link``."""


def _named(*components: str) -> Schema:
    return {
        "Link" if name.startswith("Link-") else name: reference("headers", name)
        for name in components
    }


_ALWAYS = _named(
    *("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"),
    *("RateLimit-Policy", "RateLimit", "X-Request-Id", "Vary", "Cache-Control"),
)
_OF_STATUS = {
    401: _named("WWW-Authenticate"),
    403: _named("WWW-Authenticate"),
    415: _named("Accept-Encoding", "Accept-Patch"),
    429: _named("Retry-After"),
    503: _named("Retry-After"),
}
_EVERYWHERE = (
    *(errors.InvalidRequest, errors.MissingKey, errors.InvalidKey, errors.NetworkNotAllowed),
    *(errors.RateLimitExceeded, errors.InternalError, errors.Unavailable),
)
_OF_BODIES = (
    *(errors.InvalidBody, errors.IncompleteBody, errors.RequestTimeout, errors.ContentTooLarge),
    errors.UnsupportedMediaType,
)
_OF_POSTS = (errors.InvalidParameter, errors.IdempotencyKeyInUse, errors.IdempotencyKeyReused)


def possible_errors(operation: Operation) -> list[type[PetstoreError]]:
    groups: list[tuple[bool, Sequence[type[PetstoreError]]]] = [
        (True, _EVERYWHERE),
        (True, operation.errors),
        (operation.charged, (errors.KeyBanned,)),
        (operation.scope is not None, (errors.MissingScope,)),
        (operation.body is not None, _OF_BODIES),
        (operation.query is not None, (errors.InvalidParameter, errors.UriTooLong)),
        (bool(operation.parameters), (errors.NotFound,)),
        (operation.deprecation is not None, (errors.Gone,)),
        (operation.method == "POST", _OF_POSTS),
        (operation.method in {"PATCH", "DELETE"}, (errors.PreconditionFailed,)),
    ]
    found = dict.fromkeys(error for applies, group in groups if applies for error in group)
    return sorted(found, key=lambda error: error.status)


def cause_of(error: type[PetstoreError]) -> str:
    return (getdoc(error) or "").partition("\n")[0].replace("``", "`")


def responses_of(operation: Operation, shared: dict[str, Schema]) -> dict[str, Schema]:
    """All but the success refer to what is in ``shared``, to which new ones are added."""
    responses = {str(operation.success.status): _success(operation)}
    for status, response in _others(operation):
        name = next((name for name, known in shared.items() if known == response), None)
        if name is None:
            phrase = HTTPStatus(status).phrase.title().replace(" ", "").replace("-", "")
            number = sum(known.startswith(phrase) for known in shared) + 1
            name = phrase if number == 1 else f"{phrase}{number}"
            shared[name] = response
        responses[str(status)] = reference("responses", name)
    return responses


def _success(operation: Operation) -> Schema:
    success = operation.success
    taken = () if operation.query is None else operation.query.__struct_fields__
    is_one = success.status == HTTPStatus.CREATED and not operation.is_batch
    named = {
        "Link-Latest" if operation.grows else "Link-Next": operation.is_list and "cursor" in taken,
        "X-Total-Count": "count" in taken,
        "Location": is_one,
        "ETag": operation.tagged and success.content is not None,
        "Idempotent-Replayed": operation.method == "POST",
    }
    headers = _always(operation) | _named(*(name for name, applies in named.items() if applies))
    response: Schema = {"description": success.description, "headers": headers}
    if success.content is not None:
        response["content"] = json_content(schema_of(success.content), success.example)
    elif success.example is not None:
        response["content"] = file_content([success.media_type], success.example)
    if is_one:  # links to the operations on what was created, but for those on its parts
        its_id = "$response.body#/id"
        response["links"] = {
            each.id: {"operationId": each.id, "parameters": dict.fromkeys(each.parameters, its_id)}
            for each in OPERATIONS
            if each.path.startswith(f"{operation.path}/{{") and len(each.parameters) == 1
        }
    return response


def _others(operation: Operation) -> Iterator[tuple[int, Schema]]:
    if operation.reads_one:
        about = "The resource is still in the version that the client has."
        yield 304, {"description": about, "headers": _always(operation) | _named("ETag")}
    for status, group in groupby(possible_errors(operation), lambda error: error.status):
        found = {error.code: error for error in group}
        headers = _named("Link-Help") | _always(operation) | _OF_STATUS.get(status, {})
        if status == errors.Conflict.status and operation.method == "POST":
            headers |= _named("Idempotent-Replayed")
        examples = {code: reference("examples", code) for code in found}
        content = {"schema": reference("schemas", "Error"), "examples": examples}
        response = {
            "description": " ".join(map(cause_of, found.values())),
            "headers": headers,
            "content": {"application/json": content},
        }
        yield status, response


def _always(operation: Operation) -> Schema:
    is_deprecated = operation.deprecation is not None
    return _ALWAYS | _named(
        *(("Deprecation", "Sunset", "Link-Deprecation") if is_deprecated else ())
    )
