"""The schemas of tools, from the OpenAPI document: what the service itself checks."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from petstore.interface.openapi.document import document
from petstore.interface.operation import Operation
from petstore.interface.operations import OPERATIONS

_JSON = "application/json"
_UNUSED = ("example", "format", "readOnly", "title")
# An agent does not wait for events, and reads the feed as far as it goes.
_LEFT_OUT = ("until", "wait")
_CURSOR = {"type": "string", "description": "For the next page: `next` of the previous one."}
# One version: If-Match also takes several, and * for any.
_VERSION = {
    "type": "string",
    "pattern": '^"[^"*]+"$',
    "description": "The `version` that you read. If it has changed since, nothing happens.",
}
_IDEMPOTENCY_KEY = {
    "type": "string",
    "description": (
        "Leave it out. Only if an error names one: call again with it and the same arguments, and"
        " the call acts once."
    ),
}


@cache
def operation_of(operation_id: str) -> Operation:
    """Return an operation of the interface."""
    return next(each for each in OPERATIONS if each.id == operation_id)


def input_schema(operation_id: str, items: str = "") -> dict[str, Any]:
    """Return the schema of the arguments: the parameters of an operation, and its body.

    The ``items`` of a body that is a list are one argument.
    """
    described, operation = _described(operation_id), operation_of(operation_id)
    parameters = [each for each in _parameters(described) if each["in"] != "header"]
    properties = {
        each["name"]: _plain(each["schema"]) | {"description": each["description"]}
        for each in parameters
        if each["name"] not in _LEFT_OUT
    }
    required = [each["name"] for each in parameters if each["required"]]
    if "cursor" in properties:
        properties["cursor"] = _CURSOR
    if "requestBody" in described:
        body = _plain(described["requestBody"]["content"][_JSON]["schema"])
        properties |= {items: body} if items else body["properties"]
        required += [items] if items else body.get("required", [])
    if operation.method == "PATCH":
        properties["version"] = _VERSION
        required.append("version")
    if operation.method == "POST":
        properties["idempotencyKey"] = _IDEMPOTENCY_KEY
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def output_schema(operation_id: str, name: str) -> dict[str, Any]:
    """Return the schema of what a tool returns of an operation, see ``tools.Tool.result``.

    It names what is in it, and no more: agents pay for each word, and read the result itself.
    """
    operation = operation_of(operation_id)
    success = _described(operation_id)["responses"][str(operation.success.status)]
    content: dict[str, Any] = _plain(success["content"][_JSON]["schema"])
    if not name:
        return {"type": "object", "required": content["required"]}
    more = "next" if operation.is_list else "version" if operation.tagged else None
    properties = {name: {"type": content["type"]}} | ({more: {"type": "string"}} if more else {})
    return {"type": "object", "properties": properties, "required": [name]}


@cache
def _document() -> dict[str, Any]:
    return document("", OPERATIONS)


def _described(operation_id: str) -> dict[str, Any]:
    operation = operation_of(operation_id)
    described: dict[str, Any] = _document()["paths"][operation.path][operation.method.lower()]
    return described


def _parameters(described: Mapping[str, Any]) -> list[dict[str, Any]]:
    shared = _document()["components"]["parameters"]
    return [
        shared[each["$ref"].rpartition("/")[2]] if "$ref" in each else each
        for each in described["parameters"]
    ]


def _plain(schema: Any) -> Any:
    """Return a schema without references, which not every client follows."""
    if isinstance(schema, list):
        return [_plain(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        schema = _document()["components"]["schemas"][name] | schema
    return {
        key: {name: _plain(each) for name, each in value.items()}
        if key == "properties"
        else _plain(value)
        for key, value in schema.items()
        if key not in ("$ref", *_UNUSED)
    }
