"""The schemas of the arguments of tools, from the OpenAPI document, and arguments by them."""

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from typing import Any

from petstore.interface.openapi.document import document
from petstore.interface.operation import Operation
from petstore.interface.operations import OPERATIONS

_UNUSED = ("$ref", "example", "format", "pattern", "readOnly", "title")
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
_TYPES = {"integer": int, "boolean": bool, "string": str, "array": list, "object": dict}


class InvalidArguments(Exception):
    """The arguments of a call do not have the schema of its tool; the message says why."""


def input_schema(operation: Operation, items: str = "") -> dict[str, Any]:
    """Return the schema of the arguments: the parameters of an operation, and its body.

    The ``items`` of a body that is a list are one argument.
    """
    described = _document()["paths"][operation.path][operation.method.lower()]
    properties: dict[str, Any] = {}
    required = []
    for each in map(_resolved, described["parameters"]):
        if each["in"] != "header" and each["name"] not in _LEFT_OUT:
            schema = _plain(each["schema"])
            properties[each["name"]] = schema | {"description": each["description"]}
            required += [each["name"]] if each["required"] else []
    if "cursor" in properties:
        properties["cursor"] = _CURSOR
    if "requestBody" in described:
        body = _plain(described["requestBody"]["content"]["application/json"]["schema"])
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


@cache
def _document() -> dict[str, Any]:
    return document("", OPERATIONS)


def _resolved(item: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in item:
        return item
    _, _, kind, name = item["$ref"].split("/")
    referred: dict[str, Any] = _document()["components"][kind][name]
    return referred | item


def _plain(schema: Any) -> Any:
    """Return a schema without references, which not every client follows."""
    if isinstance(schema, list):
        return [_plain(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: {name: _plain(each) for name, each in value.items()}
        if key == "properties"
        else _plain(value)
        for key, value in _resolved(schema).items()
        if key not in _UNUSED
    }


def fitted(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments as the client library takes them; agents also send ``3.0`` or ``"3"`` for 3.

    A null that is not in the schema is left out. The service checks the rest, such as sizes and
    what is in a list.
    """
    properties, given = schema["properties"], {}
    for name, value in arguments.items():
        if name not in properties:
            msg = f"{name[:60]}: unknown; expected {', '.join(properties) or 'no argument'}"
            raise InvalidArguments(msg)
        options = properties[name].get("anyOf", [properties[name]])
        if value is not None:
            given[name] = _fitted(name, options[0], value)
        elif {"type": "null"} in options:
            given[name] = None
    for name in schema["required"]:
        if name not in given:
            msg = f"{name}: required"
            raise InvalidArguments(msg)
    return given


def _fitted(name: str, schema: Mapping[str, Any], value: Any) -> Any:
    kind: str = schema["type"]
    wanted: Any = _TYPES[kind]
    if isinstance(value, str) and kind != "string":
        with suppress(ValueError, RecursionError):
            value = json.loads(value)
    if kind == "integer" and isinstance(value, float) and value.is_integer():
        value = int(value)
    if type(value) is not wanted:  # True is no integer
        msg = f"{name}: expected a value of type {kind}"
        raise InvalidArguments(msg)
    if kind == "array":
        return [_fitted(f"{name}[{at}]", schema["items"], each) for at, each in enumerate(value)]
    if "pattern" in schema and not re.search(schema["pattern"], value):
        msg = f"{name}: expected a text of the form {schema['pattern']}"
        raise InvalidArguments(msg)
    return value
