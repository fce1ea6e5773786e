"""The arguments of a tool, brought into the form of its schema: agents send them in other forms."""

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

_TYPES: dict[str, tuple[type, str]] = {
    "integer": (int, "an integer"),
    "boolean": (bool, "true or false"),
    "string": (str, "a text"),
    "array": (list, "a list"),
    "object": (dict, "an object"),
}
_MAX_TEXT = 4096  # characters, where the schema has no limit


class InvalidArguments(Exception):
    """The arguments of a call do not have the schema of its tool; the message says why."""


def fitted(schema: Mapping[str, Any], value: Any, place: str = "") -> Any:
    """Return a value by its schema: ``3.0`` and ``"3"`` as 3, and what is null and optional not.

    Names and sizes are checked before anything is looked at. The service checks the rest.

    Raises:
        InvalidArguments: the value cannot be meant.
    """
    option = schema.get("anyOf", [schema])[0]
    if value is None and _takes_null(schema):
        return None
    value = _meant(option["type"], value, place)
    if isinstance(value, dict):
        return _fitted_object(option, value, f"{place}." if place else "")
    if isinstance(value, list | str):
        most = option.get("maxItems") or option.get("maxLength", _MAX_TEXT)
        if len(value) > most:
            msg = f"{place}: expected at most {most} items or characters"
            raise InvalidArguments(msg)
    if isinstance(value, list):
        items = option["items"]
        return [fitted(items, each, f"{place}[{index}]") for index, each in enumerate(value)]
    if isinstance(value, str) and not re.search(option.get("pattern", ""), value):
        msg = f"{place}: expected a text of the form {option['pattern']}"
        raise InvalidArguments(msg)
    return value


def _meant(kind: str, value: Any, place: str) -> Any:
    if isinstance(value, str) and kind != "string":
        with suppress(ValueError, RecursionError):
            value = json.loads(value)
    if kind == "integer" and isinstance(value, float) and value.is_integer():
        value = int(value)
    wanted, in_words = _TYPES[kind]
    if type(value) is not wanted:  # True is no integer
        msg = f"{place}: expected {in_words}"
        raise InvalidArguments(msg)
    return value


def _fitted_object(schema: Mapping[str, Any], values: dict[str, Any], place: str) -> dict[str, Any]:
    properties = schema["properties"]
    unknown = next((name for name in values if name not in properties), None)
    if unknown is not None:
        msg = f"{place}{unknown[:60]}: unknown; expected {', '.join(properties) or 'no argument'}"
        raise InvalidArguments(msg)
    given = {
        name: value
        for name, value in values.items()
        if value is not None or _takes_null(properties[name])
    }
    for name in schema.get("required", ()):
        if name not in given:
            msg = f"{place}{name}: required"
            raise InvalidArguments(msg)
    return {name: fitted(properties[name], each, f"{place}{name}") for name, each in given.items()}


def _takes_null(schema: Mapping[str, Any]) -> bool:
    return {"type": "null"} in schema.get("anyOf", ())
