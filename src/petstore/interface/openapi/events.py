"""The schemas of events: one for each kind of resource, and one for events of any type."""

from typing import Any

from msgspec import Struct

from petstore.categories.model import Category
from petstore.deprecations.model import DeprecationNoticeData
from petstore.events.examples import example_of
from petstore.events.model import ADMIN_EVENT_TYPES, EVENT_TYPES, EventType, type_description
from petstore.interface.openapi.schemas import json_content, reference
from petstore.keys.model import Key, KeyNoticeData
from petstore.orders.model import PERSONAL, Order
from petstore.people.model import Person
from petstore.pets.model import Pet
from petstore.webhooks.model import Webhook

_Schemas = dict[str, dict[str, Any]]

# What the `data` of an event is, by what the event is about. Tools take the first schema that fits,
# so those with more required members come before others.
_KEY_NOTICE = "keyNotice"
_NOTICES: dict[str, type[Struct]] = {
    "deprecation": DeprecationNoticeData,
    _KEY_NOTICE: KeyNoticeData,
}
_DATA: dict[str, type[Struct]] = {
    "order": Order,
    "webhook": Webhook,
    "key": Key,
    "person": Person,
    "pet": Pet,
    "category": Category,
    **_NOTICES,
}
_OTHER = {
    "title": "OtherData",
    "description": "The `data` of an event of a type that was added later.",
    "type": "object",
    "additionalProperties": True,
}
_NULL = {"type": "null"}


def event_schema(event_type: EventType) -> str:
    return _event_name(_subject(event_type))


def event_schemas(schemas: _Schemas) -> _Schemas:
    """Return the schemas of events about each kind of resource, and of ``Event``, with their parts.

    ``schemas`` are those of the resources, of notices and of ``Event``. A delivery is a request, so
    that ``readOnly`` would take the id of the resource out of it: ``data`` has a schema of its own.
    Not every generator can put an event together from parts, so that each has all members. An
    ``Event`` of the feed has any type, so that its ``data`` is one of all these, or an object.
    """
    event = schemas["Event"]
    data = {word: _data(schemas[kind.__name__]) for word, kind in _DATA.items()}
    previous = {word: _previous(data[word]) for word in data if word not in _NOTICES}
    events = [_event_about(word, event, data[word], previous.get(word)) for word in data]
    of_any = _previous_of_any(previous)
    parts = [*data.values(), *previous.values(), _OTHER, of_any, *events]
    return {each["title"]: each for each in (*parts, _any_event(event, [*data.values()], of_any))}


def _subject(event_type: EventType) -> str:
    """Return what events of a type are about: the first word, unless it is a notice for a key."""
    word = event_type.partition(".")[0]
    return _KEY_NOTICE if word == "key" and event_type not in ADMIN_EVENT_TYPES else word


def _event_name(subject: str) -> str:
    word = subject.removesuffix("Notice").capitalize()
    return f"{word}{'Notice' if subject in _NOTICES else 'Event'}"


def _data(schema: dict[str, Any]) -> dict[str, Any]:
    name = schema["title"]
    if name in {notice.__name__ for notice in _NOTICES.values()}:
        return schema
    hidden = PERSONAL.values() if name == Order.__name__ else ()
    members = {
        member: {key: value for key, value in about.items() if key != "readOnly"}
        for member, about in schema["properties"].items()
        if member not in hidden
    }
    return schema | {
        "title": f"{name}Snapshot",
        "description": f"{name} after the event, or before it was deleted.",
        "properties": members,
    }


def _previous(snapshot: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of the old values of some members of a resource."""
    name, members = snapshot["title"].removesuffix("Snapshot"), snapshot["properties"]
    return {
        "title": f"{name}Previous",
        "description": f"The old values of the members of {name} that changed.",
        "type": "object",
        "properties": {each: _nullable(about) for each, about in members.items() if each != "id"},
    }


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    if "anyOf" in schema:
        return schema
    value = {name: of for name, of in schema.items() if name != "description"}
    return {"anyOf": [value, _NULL], "description": schema["description"]}


def _previous_of_any(previous: _Schemas) -> dict[str, Any]:
    """Return the schema of the old values of any resource.

    All of them are optional, so a choice of schemas would tell nothing apart, and later types have
    others. Members of several resources have the same name, such as ``status``; these are texts.
    """
    members: _Schemas = {}
    for schema in previous.values():
        for name, about in schema["properties"].items():
            text = {"anyOf": [{"type": "string"}, _NULL], "description": f"The old `{name}`."}
            members[name] = text if name in members else about
    return {
        "title": "AnyPrevious",
        "description": "The old values of the members that changed, of a resource of any kind.",
        "type": "object",
        "properties": members,
        "additionalProperties": True,
    }


def _event_about(
    word: str, event: dict[str, Any], data: dict[str, Any], previous: dict[str, Any] | None
) -> dict[str, Any]:
    types = [kind for kind in EVENT_TYPES if _subject(kind) == word]
    members = event["properties"] | {
        "type": {"type": "string", "description": type_description(types)},
        "data": reference("schemas", data["title"]),
    }
    del members["previous"]
    if previous is not None:
        members["previous"] = reference("schemas", previous["title"])
    subject = f"about {data['title'].removesuffix('Snapshot')}"
    return event | {
        "title": _event_name(word),
        "description": f"An event {'for the holder of a key' if previous is None else subject}.",
        "properties": members,
    }


def _any_event(
    event: dict[str, Any], data: list[dict[str, Any]], previous: dict[str, Any]
) -> dict[str, Any]:
    members = event["properties"]
    choice = [reference("schemas", each["title"]) for each in (*data, _OTHER)]
    own = {
        "data": members["data"] | {"anyOf": choice},
        "previous": members["previous"] | reference("schemas", previous["title"]),
    }
    for member in own.values():
        del member["type"]
    return event | {"properties": members | own}


TAG = "Deliveries"
"""The operations on webhooks have another tag: generated clients name a class after each."""

_SIGNATURE: dict[str, dict[str, Any]] = {
    "webhook-id": {
        "description": "The `id` of the event, the same at each attempt.",
        "schema": {"type": "string"},
        "example": "evt_5f1c3c6a9a3d2b3f0a7e9d01",
    },
    "webhook-timestamp": {
        "description": "When it was sent, in Unix seconds.",
        "schema": {"type": "integer", "format": "int64"},
        "example": 1795255500,
    },
    "webhook-signature": {
        "description": (
            "`v1,` and the HMAC-SHA256 of `id.timestamp.body` in base64; more may follow a space."
        ),
        "schema": {"type": "string"},
        "example": "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=",
    },
}

SIGNATURE: dict[str, dict[str, Any]] = {
    name: {"name": name, "in": "header", "required": True, **about}
    for name, about in _SIGNATURE.items()
}
"""The parameters of every delivery, by the names of their components."""

_DESCRIPTION = (
    "The request that the service sends to the URL of a webhook. Check `webhook-signature`, and"
    " respond within 15 seconds."
)


def deliveries() -> dict[str, Any]:
    """Describe the delivery of each type of events."""
    return {kind: {"post": _delivery(kind)} for kind in EVENT_TYPES}


def _delivery(kind: EventType) -> dict[str, Any]:
    event = reference("schemas", event_schema(kind))
    return {
        "operationId": kind,
        "tags": [TAG],
        "summary": kind,
        "description": _DESCRIPTION,
        "security": [],
        "parameters": [reference("parameters", name) for name in SIGNATURE],
        "requestBody": {"required": True, "content": json_content(event, example_of(kind))},
        "responses": {
            "2XX": {"description": "The event is taken. Whatever else comes, it is sent again."},
            "410": {"description": "The webhook is disabled at once."},
        },
    }
