"""The schemas of the document, from the structs of bodies, parameters and responses."""

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal, TypeAlias, get_args, get_origin

import msgspec

from petstore.deprecations.model import DeprecationNoticeData
from petstore.domain.decoding import MAX_ITEMS
from petstore.domain.fields import INT64_MAX, INT64_MIN, NO_U0000, NOT_BLANK, PRINTABLE, VISIBLE
from petstore.interface.messages import encode_json
from petstore.interface.operation import Operation
from petstore.keys.model import KeyNoticeData
from petstore.pets.model import Pet, PetStatus

_REF = "#/components/schemas/{name}"
_STATUSES = get_args(PetStatus)
_INT32_MAX = 2**31 - 1
# What the service checks with these, not every generated client can compile. Their fields say it in
# words, and the document has a simpler pattern or none.
_DOCUMENTED_PATTERNS = {NOT_BLANK: r"\S", PRINTABLE: r"\S", VISIBLE: r"^\S+$", NO_U0000: None}
_ABSENT = object()
_SCHEMAS = ("items", "additionalProperties")
_LISTS_OF_SCHEMAS = ("anyOf",)


class Error(msgspec.Struct, frozen=True):
    """The body of every response that is an error."""

    code: Annotated[str, msgspec.Meta(description="Machine-readable error code.")]
    message: Annotated[str, msgspec.Meta(description="Human-readable description.")]
    status: Annotated[int, msgspec.Meta(ge=400, le=599, description="The HTTP status code.")]


def component_schemas(operations: Sequence[Operation]) -> dict[str, Any]:
    """Return the schemas of all bodies of ``operations``, by name."""
    bodies = [each.body for each in operations if each.body and not each.media_types]
    contents = [each.success.content for each in operations if each.success.content is not None]
    kinds = [*bodies, *contents, DeprecationNoticeData, KeyNoticeData, Error]
    _, found = msgspec.json.schema_components(kinds, ref_template=_REF)
    of_requests = {body.__name__ for body in bodies}
    components = {
        name: {"title": name, **_without_defaults(_documented(schema), is_body=name in of_requests)}
        for name, schema in found.items()
    }
    # The interface names these two. In the code they are aliases, which have no name.
    return components | {
        "Pets": {"title": "Pets", **_list_of(Pet)},
        "PetStatus": {
            "title": "PetStatus",
            "description": "Whether an animal can be bought.",
            "type": "string",
            "enum": [*_STATUSES],
        },
    }


def schema_of(content: Any, *, min_items: int = 0) -> dict[str, Any]:
    """Return the schema of a body: a reference to a component, or a list of such."""
    if content == list[Pet]:
        return reference("schemas", "Pets")
    if get_origin(content) is list:
        (item,) = get_args(content)
        return _list_of(item, min_items)
    return reference("schemas", content.__name__)


def parameter_schemas(query: type[Any]) -> dict[str, Any]:
    _, components = msgspec.json.schema_components([query], ref_template=_REF)
    properties: dict[str, Any] = _documented(components[query.__name__])["properties"]
    return properties


def _list_of(item: type[Any], min_items: int = 0) -> dict[str, Any]:
    about = {"description": "A list, or a page of one.", "type": "array"}
    return about | {"minItems": min_items, "maxItems": MAX_ITEMS, "items": schema_of(item)}


def _documented(schema: dict[str, Any]) -> dict[str, Any]:
    """Return ``schema`` with what generated clients need, and without what they cannot take."""
    found = dict(schema)
    for name, inner in schema.items():
        if name in _SCHEMAS:
            found[name] = _documented(inner)
        elif name in _LISTS_OF_SCHEMAS:
            found[name] = [_documented(each) for each in inner]
        elif name == "properties":
            found[name] = {field: _documented(each) for field, each in inner.items()}
    for change in (_describe_choice, _describe_integer, _describe_array, _describe_text):
        change(found)
    if not found.get("required", True):
        del found["required"]
    if set(found.get("enum", ())) == set(_STATUSES):
        others = {name: value for name, value in found.items() if name not in ("type", "enum")}
        return reference("schemas", "PetStatus") | others
    return found


def _describe_choice(schema: dict[str, Any]) -> None:
    """Move the description of a value that may be null to where every tool looks for it."""
    for option in schema.get("anyOf", ()):
        if "description" in option:
            schema["description"] = option.pop("description")


def _describe_integer(schema: dict[str, Any]) -> None:
    """Name its size: without a format, clients in Java, Go and Rust take 32 bits.

    Bounds that the format has anyway are left out: JavaScript cannot state them exactly.
    """
    if schema.get("type") == "integer":
        is_short = schema.get("maximum", INT64_MAX) <= _INT32_MAX
        schema.setdefault("format", "int32" if is_short else "int64")
        for name, bound in (("minimum", INT64_MIN), ("maximum", INT64_MAX)):
            if schema.get(name) == bound:
                del schema[name]


def _describe_array(schema: dict[str, Any]) -> None:
    """Let a client repeat an item, even where the service makes a set of it."""
    if schema.get("type") == "array":
        schema.pop("uniqueItems", None)
        schema.setdefault("minItems", 0)
        schema.setdefault("maxItems", MAX_ITEMS)


def _describe_text(schema: dict[str, Any]) -> None:
    """Name the type of an enumeration, and replace the patterns that clients cannot compile."""
    if "enum" in schema:
        schema["type"] = "string"
    pattern = _DOCUMENTED_PATTERNS.get(schema.get("pattern", ""), _ABSENT)
    if pattern is None:
        del schema["pattern"]
    elif pattern is not _ABSENT:
        schema["pattern"] = pattern


def _without_defaults(component: dict[str, Any], *, is_body: bool) -> dict[str, Any]:
    """Return a schema without ``default``, which makes members of requests mandatory in clients.

    A request's description says it in words. A response always has the member.
    """
    for name, field in component["properties"].items():
        default = field.pop("default", _ABSENT)
        if not is_body and default is not _ABSENT:
            component.setdefault("required", []).append(name)
        elif default is not _ABSENT and default is not None:
            field["description"] += f" Default: {_words(default)}."
    return component


def _words(default: Any) -> str:
    if isinstance(default, list | tuple):
        return ", ".join(_words(item) for item in sorted(default)) or "none"
    text = default if isinstance(default, str) else encode_json(default).decode()
    return f"`{text}`"


Kind: TypeAlias = Literal["schemas", "headers", "parameters", "responses", "examples"]


def reference(kind: Kind, name: str) -> dict[str, Any]:
    """Return a reference to a component."""
    return {"$ref": f"#/components/{kind}/{name}"}


def file_content(media_types: Iterable[str], example: Any) -> dict[str, Any]:
    """Describe a body that is a file of one of these media types, with an example of a text."""
    text = {"type": "string", "description": "The content of the file."}
    binary = text | {"format": "binary"}
    return {
        name: {"schema": text, "example": example} if "text/" in name else {"schema": binary}
        for name in media_types
    }


def json_content(schema: dict[str, Any], example: Any) -> dict[str, Any]:
    """Describe a body in JSON with one example."""
    return {"application/json": {"schema": schema, "example": example}}
