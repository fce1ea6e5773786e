"""Write the errors, models, events and resources of the client from the table of operations.

It imports nothing of the client, so it can mend it. Methods that are by hand are in ``_BASES``.
"""

import re
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from inspect import getdoc
from keyword import iskeyword
from pathlib import Path
from subprocess import PIPE
from textwrap import fill, indent
from typing import Any, get_args, get_origin

from msgspec.json import schema_components

from petstore.errors import SecretAlreadyShown
from petstore.events.model import ADMIN_EVENT_TYPES, EVENT_TYPES, kind_of
from petstore.interface.operation import Operation
from petstore.interface.operations import OPERATIONS

_WIDTH = 100
PACKAGE = Path(__file__).parent / "src/petstore_client"

_BASES = {"Pets": "PetById", "Events": "EventFeed"}
_BY_HAND = ("getPet", "listEvents")
_NAMES = {
    "Inventory": "InventoryCounts",
    "Sales": "SalesCounts",
    "Usage": "KeyUsage",
    "KeyCreatePlan": "PlanName",
    "ImportUnknowncategories": "UnknownCategories",
}
_STATUSES = {400: "BadRequest", 403: "Forbidden", 409: "Conflict", 410: "Gone", 429: "RateLimited"}
_HEADERS = {"POST": "idempotency_key", "PATCH": "if_match", "DELETE": "if_match"}
_FORMATS = {"date": "date", "date-time": "datetime"}
_TYPES = {"boolean": "bool", "integer": "int", "object": "Mapping[str, Any]", "string": "str"}
_ABOUT = {
    "limit": "The size of a page, from 1 to 100. By default 100.",
    "if_match": "The ``etag`` of the version to change. A later version is left as it is.",
}
_PLAIN = ("cursor", "idempotency_key")  # the names say it
_PYTHON = {
    # Sentences that only HTTP or another language needs.
    r"(?:^|(?<=\.) )[^.]*(?:\bLink\b(?!. header of)|\bpage may\b|\[\]|JavaScript)[^.]*\.": "",
    r"Returns a (?:page|paginated list) of": "Iterates over",
    r"; may be repeated, up to \d+ times": "; one, or any number",
    "the members in the body": "what you name",
    "the `Link` header": "the `cursor`",
    r"\bnull\b": "`None`",
    r"\b(is|be) absent\b": r"\1 `None`",
    "`+([^`]+)`+": r"``\1``",
}
"""What the interface says of HTTP and JSON, and what Python says instead."""

_HEAD = '''\
# Generated from the operations of the service by clients/python/generate.py: run `make client`.
"""{}"""
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import Any, Generic, Literal, TypeAlias
from msgspec import UNSET, UnsetType, field
from types import NoneType
from petstore_client._calls import Call, Items, Listing, called, listed
from petstore_client._by_hand import EventFeed, PetById
from petstore_client._faces import D, Resource, listing, operation
from petstore_client._model import Model, Versioned, without
'''


def generated() -> dict[Path, str]:
    """Return the text of each generated module, by its path."""
    modules = (_errors, _models, _events, _resources)
    texts = {module.__name__.strip("_"): module() for module in modules}
    return {PACKAGE / f"{name}.py": _formatted(text) for name, text in texts.items()}


def _errors() -> str:
    kinds = sorted({x for row in OPERATIONS for x in row.errors}, key=lambda x: (x.status, x.code))
    text = _HEAD.format("The one tree of errors: ``PetstoreError`` is the base of all.")
    text += "from petstore_client._errors import *\n"
    for kind in kinds:
        text += f'class {kind.__name__}({_STATUSES[kind.status]}, code="{kind.code}"):\n'
        text += _docstring(_prose(getdoc(kind) or ""))
    return text


def _models() -> str:
    text = _HEAD.format("What the service returns, as typed structs. Unknown members are ignored.")
    text += "".join(f"{x}: TypeAlias = Literal{[*of]}\n" for of, x in _ALIASES.items())
    # A model stands behind those that it is made of.
    names = sorted(_MODELS, key=lambda name: (_depth(name), name in _PARENTS))
    return text + "".join(map(_model, names)) + "".join(map(_item_of_batch, _BATCHES))


def _depth(name: str) -> int:
    """Return how deep a model is made of others."""
    parts = re.findall(r"'\$ref': '(\w+)'", str(_MODELS[name]))
    return max((_depth(part) + 1 for part in parts), default=0)


def _item_of_batch(name: str) -> str:
    """Return what a method takes a list of: what is ``None`` is not sent."""
    text = f"class {name}(Model, frozen=True, kw_only=True, omit_defaults=True):\n"
    text += _docstring(_prose(_SENT[name]["description"]))
    return text + _fields(_members(_SENT[name]), partial(_taken, method="POST"))


def _model(name: str) -> str:
    rows = [row for row in OPERATIONS if row.success.content is _KINDS.get(name)]
    root = "Versioned" if any(row.method == "PATCH" for row in rows) else "Model"
    base = _PARENTS.get(name, root)
    inherited = _members(_MODELS[base]) if base in _MODELS else {}
    own = {each: x for each, x in _members(_MODELS[name]).items() if each not in inherited}
    text = f"class {name}({base}, frozen=True, kw_only=True):\n"
    text += _docstring(_prose(_MODELS[name]["description"])) + _fields(own, _held)
    hidden = f'    def __repr__(self) -> str: return without(self, "{next(iter(own))}")\n'
    return text + hidden * any(SecretAlreadyShown in row.errors for row in rows)


def _fields(members: dict[str, dict[str, Any]], kind: Callable[[dict[str, Any]], str]) -> str:
    """Return the fields of a model, each with a comment beside it, or before it if that is long."""
    text = ""
    for name, member in members.items():
        line, about = f"    {name}: {kind(member)}", f"  # {_about(member)}" * (name != "id")
        if len(line + about) > _WIDTH:
            text += fill(
                about.strip("# "), _WIDTH, initial_indent="    # ", subsequent_indent="    # "
            )
            line, about = f"\n{line}", ""
        text += f"{line}{about}\n"
    return text


def _held(member: dict[str, Any]) -> str:
    """Return the type of a field of a model, and its default."""
    # An editor proposes the literals; a later service may add others.
    kind = _type(member) + " | str" * ("enum" in member)
    kind = re.sub(r"list\[(EventType|Scope)\]", "list[str]", kind)
    if kind.startswith("Mapping") and member["is_required"]:
        return "Any"  # the classes of the events say more
    if member.get("default") == []:  # an earlier service may not have it
        return f"{kind} = field(default_factory={kind})"
    if "default" in member:
        return f"{kind} = {member['default']!r}"
    return kind if member["is_required"] and "anyOf" not in member else f"{kind} | None = None"


def _events() -> str:
    text = _HEAD.format("Each type of event as a class with typed ``data``.")
    classes, kinds = "", {"Event"}
    for each in EVENT_TYPES:
        kind = kind_of(each)  # the resource itself, but for keys: what concerns one
        is_notice = kind == "key" and each not in ADMIN_EVENT_TYPES
        data = "Mapping[str, Any]" if is_notice else kind.capitalize()
        kinds |= {data} & {*_KINDS}
        name = "".join(map(str.title, re.split("[._]", each)))
        classes += f"class {name}(Event, frozen=True, kw_only=True):\n"
        classes += f'    type: Literal["{each}"]\n    data: {data}\n'
    return f"{text}from petstore_client.models import {', '.join(kinds)}\n{classes}"


def _resources() -> str:
    text = _HEAD.format("The resources of the service, each with its operations.")
    models = ", ".join([*_ALIASES.values(), *_MODELS, *_BATCHES])
    text += f"from petstore_client.models import {models}\n"
    client = f"class Resources(Resource[D]):\n{_docstring('The resources of a client.')}"
    client += "    def __init__(self, driver: D) -> None:\n        self._driver: D = driver\n"
    for name in dict.fromkeys(map(_resource, OPERATIONS)):
        kind = _NAMES.get(name.capitalize(), name.capitalize())
        rows = (row for row in OPERATIONS if _resource(row) == name and row.id not in _BY_HAND)
        text += f"class {kind}({_BASES.get(kind, 'Resource')}[D]):\n"
        text += _docstring(f"The operations of ``client.{name}``.")
        methods = (_batch_method(row) if row.is_batch else _method(row) for row in rows)
        text += "".join(indent(method, "    ") for method in methods)
        client += f"        self.{name}: {kind}[D] = {kind}(driver)\n"
    return text + client


def _resource(row: Operation) -> str:
    return row.path.split("/")[2] if row.path.startswith("/store/") else row.tag.lower()


def _name(row: Operation) -> str:
    verb, last = re.split("[A-Z]", row.id)[0], row.path.split("/")[-1]
    # A list of something else, or a part, is called as that is: ``keys.usage``.
    is_other = last not in (_resource(row), *(f"{{{each}}}" for each in row.parameters))
    name = last if verb in ("list", "get") and is_other else verb
    return name + "_current" * ("/current/" in row.path)


def _method(row: Operation) -> str:
    body = _sent_by(row)
    sent = _members(_SENT[body.__name__]) if body else {}
    first = map(_snake, row.parameters)
    names = sorted(sent, key=lambda each: each in ("limit", "cursor"))
    taken = {each: _taken(sent[each], row.method) for each in names}
    taken |= {_HEADERS[row.method]: "str | None = None"} if row.method in _HEADERS else {}
    about = {x: _ABOUT.get(x) or _about(sent[x]) for x in taken if x not in _PLAIN}
    if row.media_types:
        taken |= {"media_type": f'str = "{row.media_types[0]}"'}
        about |= {"content": "The file.", "media_type": f"One of {', '.join(row.media_types)}."}
    content = ["content: bytes"] if row.media_types else []
    signature = ["self", *(f"{each}: int" for each in first), *content]
    signature += ["*"][: len(taken)]
    signature += [f"{each}: {kind}" for each, kind in taken.items()]
    kind, call = _call(row)
    text = "@listing\n" if kind.startswith("Listing") else "@operation\n"
    text += f"def {_name(row)}({', '.join(signature)}) -> {kind}:\n{_doc(row, about)}"
    return f"{text}    return {call}\n"


def _batch_method(row: Operation) -> str:
    """Return the method of an operation that takes a list, beside the one that takes an item."""
    (sent,), name = get_args(row.body), _resource(row)
    kind = f"Items[{_item(row).__name__}]"
    text = f"@operation\ndef {re.split('[A-Z]', row.id)[0]}_many(\n"
    text += f"    self, {name}: Iterable[{sent.__name__}], *, idempotency_key: str | None = None\n"
    text += f") -> Call[{kind}]:\n"
    about = "At least one. Each 100 of them are a request, all of which or none are added."
    text += _doc(row, {name: about})
    text += f'    return called({kind}, "{row.method}", "{row.path}",'
    return f'{text} {{"idempotency_key": idempotency_key}}, body=[*{name}])\n'


def _call(row: Operation) -> tuple[str, str]:
    """Return the type of a call, and the call with all that the method takes."""
    path = _snake(row.path)
    if get_origin(row.success.content) is list:
        kind = _item(row).__name__
        return f"Listing[{kind}]", f'listed({kind}, "{path}", locals())'
    kind = "None" if row.success.content is None else _item(row).__name__
    if row.success.media_type.startswith("text/"):
        kind = "str"
    made = "NoneType" if kind == "None" else kind
    free = ", charged=False" * (not row.charged)
    call = f'called({made}, "{row.method}", "{path}", locals()'
    return f"Call[{kind}]", f"{call}{free})"


def _taken(member: dict[str, Any], method: str) -> str:
    """Return the type of a parameter of a method, and its default."""
    kind = _type(member).replace("list[int]", "int | list[int]").replace("list[", "Iterable[")
    if method == "PATCH":
        return f"{kind} | UnsetType{' | None' * ('anyOf' in member)} = UNSET"
    return kind if member["is_required"] else f"{kind} | None = None"


def _doc(row: Operation, about: dict[str, str]) -> str:
    scope = f" Your key needs the scope ``{row.scope}``." if row.scope else ""
    raised = [kind.__name__ for kind in row.errors]
    raised += ["OutcomeUnknown"] * (row.method in ("PATCH", "DELETE"))
    raises = f" Raises {' or '.join(f'``{each}``' for each in raised)}." * bool(raised)
    return _docstring(f"{row.summary}.\n\n{_prose(row.description)}{scope}{raises}", 8, Args=about)


def _type(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return _ALIASES.get(tuple(schema["enum"]), f"Literal{schema['enum']}")
    if "items" in schema:
        item = schema["items"].get("anyOf", [schema["items"]])[0]
        return f"list[{_type(item)}]"
    if "additionalProperties" in schema:
        return f"dict[str, {_type(schema['additionalProperties'])}]"
    plain = _FORMATS.get(schema.get("format", "")) or _TYPES.get(schema.get("type", ""), "Any")
    kind = str(schema.get("$ref", plain))
    return "Mapping[str, Any]" if kind in _SENT and kind not in _MODELS else kind


def _members(schema: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the schemas of the members of an object, by their names in Python."""
    found = {}
    for name, member in schema["properties"].items():
        value = member.get("anyOf", [member])[0]  # the other one is null
        found[_snake(name)] = member | value | {"is_required": name in schema["required"]}
        if "description" not in found[_snake(name)]:
            sys.exit(f"{schema['title']}.{name}: expected a description")
    return found


def _item(row: Operation) -> Any:
    return next(iter(get_args(row.success.content)), row.success.content)


def _about(member: dict[str, Any]) -> str:
    about, default = _prose(member["description"]).removesuffix("."), member.get("default")
    return f"{about}." + f" By default ``{default}``." * isinstance(default, str | int)


def _prose(text: str) -> str:
    for pattern, words in _PYTHON.items():
        text = re.sub(pattern, words, text)
    return re.sub(
        "(?<=``)(?!getPet)[a-z]+[A-Z][a-zA-Z]+", lambda x: _CALLS.get(x[0]) or _snake(x[0]), text
    )


def _snake(name: str) -> str:
    snake = re.sub("[A-Z]", lambda found: f"_{found[0].lower()}", name)
    return f"{snake}_" if iskeyword(snake) else snake


def _docstring(text: str, depth: int = 4, **sections: dict[str, str]) -> str:
    """Return a docstring, to be indented by ``depth``."""
    summary, *paragraphs = text.split("\n\n")
    wrapped = partial(fill, width=_WIDTH - depth, break_on_hyphens=False)
    blocks = [summary, *(wrapped(" ".join(each.split())) for each in paragraphs)]
    for title, entries in sections.items():
        lines = [wrapped(f"    {x}: {y}", subsequent_indent=8 * " ") for x, y in entries.items()]
        blocks += ["\n".join([f"{title}:", *lines])] if lines else []
    return indent('"""' + "\n\n".join(blocks) + "\n" * (len(blocks) > 1) + '"""\n', "    ")


def _formatted(text: str) -> str:
    """Return a text without the imports that it does not need, as ``ruff format`` leaves it."""
    for command in ("check --fix --select F401,F541,I,RUF022", "format"):
        ruff = [sys.executable, "-m", "ruff", *command.split(), "--quiet", "-"]
        text = subprocess.run(ruff, input=text, stdout=PIPE, text=True, check=True).stdout
    return text


_KINDS = {kind.__name__: kind for kind in map(_item, OPERATIONS) if kind}
_, _MODELS = schema_components(_KINDS.values(), ref_template="{name}")


def _sent_by(row: Operation) -> Any:
    return row.query if row.media_types else row.body or row.query


_BODIES = {*map(_sent_by, OPERATIONS)} - {None}
_, _SENT = schema_components(_BODIES, ref_template="{name}")
_CALLS = {row.id: f"{_resource(row)}.{_name(row)}" for row in OPERATIONS}
_BATCHES = [*dict.fromkeys(get_args(row.body)[0].__name__ for row in OPERATIONS if row.is_batch)]
_PARENTS = {x: of for x, kind in _KINDS.items() if (of := kind.__base__.__name__) in _MODELS}
_ALIASES = {
    tuple(schema["enum"]): _NAMES.get(alias := f"{model}{name.capitalize()}", alias)
    for model, of in reversed([*_MODELS.items(), ("KeyCreate", _SENT["KeyCreate"])])
    for name, schema in of["properties"].items()
    if "enum" in schema
}
_ALIASES |= {
    tuple(_SENT[model]["properties"][name]["items"]["enum"]): alias
    for model, name, alias in (
        ("WebhookCreate", "types", "EventType"),
        ("KeyCreate", "scopes", "Scope"),
    )
}

if __name__ == "__main__":
    for path, text in generated().items():
        path.write_text(text)
