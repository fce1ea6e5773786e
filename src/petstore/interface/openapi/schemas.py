"""The schemas of the document, from the structs of bodies, parameters and responses."""

from collections.abc import Iterable, Sequence
from inspect import cleandoc
from typing import Annotated, Any, TypeAlias, get_args, get_origin

import msgspec

from petstore.domain.decoding import MAX_ITEMS
from petstore.domain.fields import INT64_MAX, INT64_MIN, NOT_BLANK, PRINTABLE, VISIBLE
from petstore.domain.plans import PlanName
from petstore.events.model import EVENT_TYPES
from petstore.imports.columns import Meaning
from petstore.imports.model import ImportState
from petstore.interface.messages import encode_json
from petstore.interface.operations import OPERATIONS
from petstore.keys.model import Environment, KeyNoticeData, KeyState, Role, Scope
from petstore.orders.model import OrderStatus
from petstore.people.model import PersonState
from petstore.pets.model import KeptBecause, Pet, PetStatus
from petstore.sales.model import By
from petstore.webhooks.model import DeliveryState

Schema: TypeAlias = dict[str, Any]
"""A part of the document: a schema, a parameter, a response."""

TEXT = {"type": "string"}
_REF = "#/components/schemas/{name}"
_INT64_BOUNDS = (INT64_MIN, INT64_MAX)
_ENUMERATIONS: dict[str, Sequence[str]] = {
    "PetStatus": get_args(PetStatus),
    "PetStatusOrNone": get_args(Meaning),
    "OrderStatus": get_args(OrderStatus),
    "PlanName": get_args(PlanName),
    "Scope": get_args(Scope),
    "Environment": get_args(Environment),
    "KeyState": get_args(KeyState),
    "PersonRole": get_args(Role),
    "PersonState": get_args(PersonState),
    "AccountState": ("active", "disabled"),
    "ActorType": ("key", "person", "operator", "service"),
    "OwnerType": ("key", "person"),
    "EventType": EVENT_TYPES,
    "DeliveryState": get_args(DeliveryState),
    "ImportState": get_args(ImportState),
    "UnknownCategories": ("refuse", "create"),
    "KeptBecause": get_args(KeptBecause),
    "SalesGroup": get_args(By),
    "IdOrder": ("id", "-id"),
    "SequenceOrder": ("sequence", "-sequence"),
}
_NAMES = {frozenset(values): name for name, values in _ENUMERATIONS.items()}
# As far as every language can compile it: ASCII alone, and without looking ahead. The descriptions
# say in words what else the service refuses.
_CONTROLS = r"\x00-\x1f\x7f"
_DOCUMENTED_PATTERNS = {
    NOT_BLANK: r"^[^\x00]*[^\x00\s][^\x00]*$",
    PRINTABLE: rf"^[^{_CONTROLS}]*[^{_CONTROLS}\s][^{_CONTROLS}]*$",
    VISIBLE: rf"^[^{_CONTROLS}\s]+$",
}
_ABSENT = object()
_DAY = "2026-11-24"
_EXAMPLES = {"date": _DAY, "date-time": f"{_DAY}T10:00:00Z", "boolean": True, "int64": 7}


class Error(msgspec.Struct, frozen=True):
    """The body of every response that is an error."""

    code: Annotated[str, msgspec.Meta(description="Machine-readable error code.")]
    message: Annotated[str, msgspec.Meta(description="Human-readable description.")]
    status: Annotated[int, msgspec.Meta(ge=400, le=599, description="The HTTP status code.")]


def component_schemas() -> dict[str, Schema]:
    bodies = [each.body for each in OPERATIONS if each.body and not each.media_types]
    contents = [each.success.content for each in OPERATIONS if each.success.content is not None]
    kinds = [*bodies, *contents, KeyNoticeData, Error]
    _, found = msgspec.json.schema_components(kinds, ref_template=_REF)
    of_requests = {body.__name__ for body in bodies}
    components = {
        name: {"title": name, **_without_defaults(_documented(schema), is_body=name in of_requests)}
        for name, schema in found.items()
    }
    enumerations = {
        name: TEXT
        | {"title": name, "description": f"{', '.join(of[:-1])} or {of[-1]}.", "enum": [*of]}
        for name, of in _ENUMERATIONS.items()
    }
    return components | enumerations | {"Pets": {"title": "Pets", **_list_of(Pet)}}


def schema_of(content: Any, *, min_items: int = 0) -> Schema:
    if content == list[Pet]:
        return reference("schemas", "Pets")
    if get_origin(content) is list:
        (item,) = get_args(content)
        return _list_of(item, min_items)
    return reference("schemas", content.__name__)


def query_parameters(query: type[Any]) -> dict[str, Schema]:
    _, components = msgspec.json.schema_components([query], ref_template=_REF)
    properties: dict[str, Schema] = _documented(components[query.__name__])["properties"]
    return {
        name: parameter("query", name, schema.pop("description"), schema, _example(schema))
        for name, schema in properties.items()
    }


def _example(schema: Schema) -> Any:
    """Take the example that a parameter names out of its schema, or make one of its type."""
    if "examples" in schema:
        return schema.pop("examples")[0]
    if schema.get("type") == "array":
        return [_example(schema["items"])]
    values = _ENUMERATIONS.get(schema.get("$ref", "").rpartition("/")[2]) or schema.get("enum", ())
    made = schema.get("minimum") or _EXAMPLES.get(schema.get("format") or schema.get("type", ""))
    return schema.get("default", next(iter(values), made))


def _list_of(item: type[Any], min_items: int = 0) -> Schema:
    about = {"description": "A list, or a page of one.", "type": "array"}
    return about | {"minItems": min_items, "maxItems": MAX_ITEMS, "items": schema_of(item)}


def _documented(schema: Schema) -> Schema:
    """Return ``schema`` with what generated clients need, and without what they cannot take."""
    found = {name: _part(name, value) for name, value in schema.items()}
    options: list[Schema] = found.get("anyOf", [])
    for option in options:  # the description of what can be null, where every tool looks for it
        if "description" in option:
            found["description"] = option.pop("description")
    if options and all("enum" in option for option in options):
        found["enum"] = [value for option in found.pop("anyOf") for value in option["enum"]]
    if found.get("type") == "integer":
        found = _sized(found)
    if found.get("type") == "array":  # a client can repeat an item, even of what becomes a set
        found.pop("uniqueItems", None)
        found = {"minItems": 0, "maxItems": MAX_ITEMS} | found
    if not found.get("required", True):
        del found["required"]
    if "enum" not in found:
        return found
    others = {name: value for name, value in found.items() if name != "enum"}
    name = _NAMES.get(frozenset(found["enum"]))
    return found | TEXT if name is None else reference("schemas", name) | others


def _part(name: str, value: Any) -> Any:
    if name == "properties":
        return {field: _documented(of) for field, of in value.items()}
    if name == "anyOf":
        return [_documented(option) for option in value]
    if name in {"items", "additionalProperties"} and isinstance(value, dict):
        return _documented(value)
    if name == "description":
        return cleandoc(value).replace("``", "`")
    return _DOCUMENTED_PATTERNS.get(value, value) if name == "pattern" else value


def _sized(integer: Schema) -> Schema:
    """Name the size of an integer: without a format, clients in Java, Go and Rust take 32 bits.

    Bounds that the format has anyway are left out: JavaScript cannot state them exactly.
    """
    size = "int32" if integer.get("maximum", INT64_MAX) < 2**31 else "int64"
    return {"format": size} | {x: of for x, of in integer.items() if of not in _INT64_BOUNDS}


def _without_defaults(component: Schema, *, is_body: bool) -> Schema:
    """Say in words what ``default`` does: it makes members mandatory in clients."""
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


def parameter(place: str, name: str, about: str, schema: Schema, example: Any) -> Schema:
    described = {"name": name, "in": place, "required": place == "path", "description": about}
    return described | {"schema": schema, "example": example}


def reference(kind: str, name: str) -> Schema:
    return {"$ref": f"#/components/{kind}/{name}"}


def file_content(media_types: Iterable[str], example: Any) -> dict[str, Any]:
    """Describe a body that is a file of one of these media types, with an example of a text."""
    text = TEXT | {"description": "The content of the file."}
    binary = text | {"format": "binary"}
    return {
        name: {"schema": text, "example": example} if "text/" in name else {"schema": binary}
        for name in media_types
    }


def json_content(schema: Schema, example: Any) -> dict[str, Any]:
    return {"application/json": {"schema": schema, "example": example}}
