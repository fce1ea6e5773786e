"""The schemas of the OpenAPI document, in words and as tables."""

import re
from collections.abc import Iterator
from typing import Any, TypeAlias

from petstore.domain.fields import INT64_MAX

Json: TypeAlias = dict[str, Any]

_DEEPEST = 3
_INT64_BOUNDS = (-INT64_MAX - 1, INT64_MAX)
_NULL = {"type": "null"}
_NOUN = re.compile(r"^(integer|object|string)")


class Document:
    """An OpenAPI document whose references are followed."""

    def __init__(self, document: Json) -> None:
        self._document = document

    def operation(self, method: str, path: str) -> Json:
        """Return an operation by its method and path."""
        found: Json = self._document["paths"][path][method.lower()]
        return found

    def resolve(self, node: Json) -> Json:
        """Return what ``node`` is or refers to, with what stands beside the reference."""
        if "$ref" not in node:
            return node
        found = self._document
        for name in node["$ref"].removeprefix("#/").split("/"):
            found = found[name]
        beside = {name: value for name, value in node.items() if name != "$ref"}
        return {**self.resolve(found), **beside}

    def kind(self, schema: Json) -> str:
        """Return the type of a schema and its bounds, in words."""
        schema = self.resolve(schema)
        variants = schema.get("anyOf", [])
        if variants:
            kinds = [self.kind(variant) for variant in variants if variant != _NULL]
            return " or ".join([*kinds, *(["null"] if _NULL in variants else [])])
        if "enum" in schema:
            return "one of " + ", ".join(f"`{value}`" for value in schema["enum"])
        if "const" in schema:
            return f"`{schema['const']}`"
        if schema.get("type") == "array":
            items = self.kind(schema["items"]).removeprefix("one of ")
            return _with_bounds("array of " + _NOUN.sub(r"\1s", items), schema)
        return _with_bounds(_name(schema), schema)

    def members(self, schema: Json, prefix: str = "", depth: int = 0) -> Iterator[list[str]]:
        """Yield a row for each member of an object, or of the objects in an array."""
        schema = self._object(schema)
        required = schema.get("required", ())
        for name, member in schema.get("properties", {}).items():
            presence = "always" if name in required else ""
            text = self.resolve(member).get("description", "") or self._text(member)
            yield [f"`{prefix}{name}`", self.kind(member), presence, text]
            if depth < _DEEPEST:
                yield from self.members(member, f"{prefix}{name}.", depth + 1)

    def _object(self, schema: Json) -> Json:
        """Return the object that a schema is, or that its array or variants have."""
        schema = self.resolve(schema)
        for variant in schema.get("anyOf", ()):
            if variant != _NULL:
                return self._object(variant)
        return self._object(schema["items"]) if schema.get("type") == "array" else schema

    def _text(self, member: Json) -> str:
        """Return the description in a variant, where the member itself has none."""
        texts = (
            self.resolve(variant).get("description", "") for variant in member.get("anyOf", ())
        )
        return next(filter(None, texts), "")


def _name(schema: Json) -> str:
    names = {"date-time": "time (RFC 3339)", "int64": "integer"}
    kind: str = schema.get("type", "any")
    return names.get(schema.get("format", ""), kind)


def _with_bounds(kind: str, schema: Json) -> str:
    return ", ".join(filter(None, (kind, _bounds(schema))))


def _bounds(schema: Json) -> str:
    """Return the bounds of a schema in words; they are worth no word if any int64 is valid."""
    low, high = schema.get("minimum"), schema.get("maximum")
    if (low, high) == _INT64_BOUNDS:
        return "64 bits"
    unit = ""
    if low is None and high is None:
        unit = " items" if schema.get("type") == "array" else " characters"
        low = schema.get("minItems", schema.get("minLength")) or None
        high = schema.get("maxItems", schema.get("maxLength"))
    if low is None:
        return "" if high is None else f"at most {high}{unit}"
    if low == high:
        return f"always {low}{unit}"
    return f"at least {low}{unit}" if high in (None, INT64_MAX) else f"{low} to {high}{unit}"


def table(names: list[str], rows: list[list[str]]) -> str:
    """Return a Markdown table, without the columns that are empty throughout."""
    kept = [index for index in range(len(names)) if any(row[index] for row in rows)]
    lines = [[names[index] for index in kept], ["---"] * len(kept)]
    lines += [[_cell(row[index]) for index in kept] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
