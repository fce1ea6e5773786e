"""The responses of each operation; errors that many share are described once."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from http import HTTPStatus
from itertools import groupby
from typing import Any, TypeAlias

from petstore import errors
from petstore.interface.messages import encode_json
from petstore.interface.openapi.errors import COMMON_ERRORS, PossibleError, possible_errors
from petstore.interface.openapi.headers import (
    ALWAYS,
    DEPRECATED,
    HELP,
    OF_STATUS,
    UNREAD,
    References,
    header_references,
)
from petstore.interface.openapi.schemas import file_content, json_content, reference, schema_of
from petstore.interface.operation import Operation

Described: TypeAlias = dict[str, Any]
"""A response object."""

_CREATED = 201


def shared_responses(operations: Iterable[Operation]) -> dict[str, Described]:
    """Return the responses that several operations have in common, by their names.

    If responses of one name differ, it is the most frequent one; the others are not shared.
    """
    by_name: dict[str, dict[bytes, Described]] = {}
    counts: Counter[bytes] = Counter()
    for operation in operations:
        for status, response in _others(operation):
            text = encode_json(response)
            by_name.setdefault(_name(operation, status), {})[text] = response
            counts[text] += 1
    shared = {}
    for name, responses in by_name.items():
        text = max(responses, key=lambda text: counts[text])
        if counts[text] > 1:
            shared[name] = responses[text]
    return shared


def responses_of(
    operation: Operation, operations: Sequence[Operation], shared: dict[str, Described]
) -> dict[str, Described]:
    """Return the responses of an operation by status; those in ``shared`` as references."""
    responses = {str(operation.success.status): _success(operation, operations)}
    for status, response in _others(operation):
        name = _name(operation, status)
        is_shared = shared.get(name) == response
        responses[str(status)] = reference("responses", name) if is_shared else response
    return responses


def _name(operation: Operation, status: int) -> str:
    """Return a name for a response, the same for all operations that have it in common."""
    phrase = HTTPStatus(status).phrase.title().replace(" ", "").replace("-", "")
    if status == errors.InvalidRequest.status:
        return phrase + _kind(operation)
    if status == errors.MissingScope.status:
        purpose = "ToGrant" if errors.BeyondOwnRights in operation.errors else ""
        return phrase + (operation.scope or "").title().replace(":", "") + purpose
    if status == errors.NotFound.status:
        return (operation.resource or "").capitalize() + phrase
    return phrase


def _kind(operation: Operation) -> str:
    """Return words for what of a request of ``operation`` can be invalid."""
    if operation.is_list:
        return "List"
    if operation.query is not None:
        return operation.path.rpartition("/")[2].capitalize()
    if operation.method == "POST":
        return "Post" if operation.body else "PostWithoutBody"
    if operation.method == "PATCH":
        return "Patch"
    return "Conditional" if operation.is_conditional else ""


def _success(operation: Operation, operations: Sequence[Operation]) -> Described:
    success = operation.success
    headers = _always(operation)
    taken = () if operation.query is None else operation.query.__struct_fields__
    if operation.is_list and "cursor" in taken:
        link = "Link-Latest" if operation.grows else "Link-Next"
        headers |= header_references(Link=link)
    if "count" in taken:
        headers |= header_references("X-Total-Count")
    is_one = success.status == _CREATED and not operation.is_batch
    if is_one:
        headers |= header_references("Location")
    if operation.tagged and success.content is not None:
        headers |= header_references("ETag")
    if operation.method == "POST":
        headers |= header_references("Idempotent-Replayed")
    response: Described = {"description": success.description, "headers": headers}
    if success.content is not None:
        response["content"] = json_content(schema_of(success.content), success.example)
    elif success.example is not None:
        response["content"] = file_content([success.media_type], success.example)
    if is_one:
        response["links"] = _links(operation, operations)
    return response


def _links(created: Operation, operations: Sequence[Operation]) -> dict[str, Any]:
    """Link what was created to the operations on it, but for those on parts of it."""
    return {
        operation.id: {
            "operationId": operation.id,
            "parameters": {operation.parameter: "$response.body#/id"},
        }
        for operation in operations
        if operation.path.startswith(f"{created.path}/{{") and len(operation.parameters) == 1
    }


def _others(operation: Operation) -> Iterator[tuple[int, Described]]:
    """Yield the responses of an operation that are no success, by status."""
    if operation.tagged and operation.method == "GET":
        description = "The resource is still in the version that the client has."
        headers = _always(operation) | header_references("ETag")
        yield 304, {"description": description, "headers": headers}
    for status, group in groupby(possible_errors(operation), lambda error: error.status):
        is_unread = status == errors.UriTooLong.status
        always = UNREAD if is_unread else _always(operation)
        headers = HELP | always | OF_STATUS.get(status, {})
        if status == errors.Conflict.status and operation.method == "POST":
            headers |= header_references("Idempotent-Replayed")
        yield status, _errors([*group], headers)


def _always(operation: Operation) -> References:
    return ALWAYS | (DEPRECATED if operation.deprecation is not None else {})


def _errors(group: Sequence[PossibleError], headers: References) -> Described:
    examples = {
        error.code: reference("examples", error.code)
        if error.code in COMMON_ERRORS
        else error.example
        for error in group
    }
    schema = reference("schemas", "Error")
    return {
        "description": " ".join(error.cause for error in group),
        "headers": headers,
        "content": {"application/json": {"schema": schema, "examples": examples}},
    }
