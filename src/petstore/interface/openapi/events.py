"""The schemas of events in deliveries, one for each kind of resource, and the deliveries."""

from typing import Any

from petstore.events.examples import example_of
from petstore.events.model import ADMIN_EVENT_TYPES, EVENT_TYPES, EventType, type_description
from petstore.interface.openapi.schemas import TEXT, Schema, json_content, parameter, reference
from petstore.keys.model import KeyNoticeData
from petstore.orders.model import PERSONAL, Order
from petstore.usage.counter import DeprecationNoticeData

_NOTICES = {"deprecation": DeprecationNoticeData.__name__, "keyNotice": KeyNoticeData.__name__}
_NULL = {"type": "null"}


def event_schemas(schemas: dict[str, Schema]) -> dict[str, Schema]:
    """Return the schemas of events about each kind of resource, with their parts, by name.

    ``schemas`` are those of the resources, of notices and of ``Event``. A delivery is a request, so
    that ``readOnly`` would take the id of the resource out of it: ``data`` has a schema of its own.
    Not every generator can put an event together from parts, so that each has all members.
    """
    found: dict[str, Schema] = {}
    for subject in dict.fromkeys(map(_subject, EVENT_TYPES)):
        types = [kind for kind in EVENT_TYPES if _subject(kind) == subject]
        event, name = schemas["Event"], _NOTICES.get(subject, f"{subject.capitalize()}Snapshot")
        members = event["properties"] | {
            "type": {"type": "string", "description": type_description(types)},
            "data": reference("schemas", name),
        }
        del members["previous"]
        about = "for the owner of a key"
        if subject not in _NOTICES:
            resource = subject.capitalize()
            about = f"about {resource}"
            found[name] = _snapshot(schemas[resource])
            found[f"{resource}Previous"] = _previous(found[name], resource)
            members["previous"] = reference("schemas", f"{resource}Previous")
        title = _event_name(subject)
        described = {"title": title, "description": f"An event {about}.", "properties": members}
        found[title] = event | described
    return found


def _subject(event_type: EventType) -> str:
    """Return what events of a type are about: the first word, unless it is a notice for a key."""
    word = event_type.partition(".")[0]
    return "keyNotice" if word == "key" and event_type not in ADMIN_EVENT_TYPES else word


def _event_name(subject: str) -> str:
    word = subject.removesuffix("Notice").capitalize()
    return f"{word}{'Notice' if subject in _NOTICES else 'Event'}"


def _snapshot(resource: Schema) -> Schema:
    name = resource["title"]
    hidden = PERSONAL.values() if name == Order.__name__ else ()
    members = {
        member: {key: value for key, value in about.items() if key != "readOnly"}
        for member, about in resource["properties"].items()
        if member not in hidden
    }
    about = f"{name} after the event, or before it was deleted."
    return resource | {"title": f"{name}Snapshot", "description": about, "properties": members}


def _previous(snapshot: Schema, resource: str) -> Schema:
    """Return the schema of the old values of some members of a resource."""
    members = snapshot["properties"].items()
    return {
        "title": f"{resource}Previous",
        "description": f"The old values of the members of {resource} that changed.",
        "type": "object",
        "properties": {each: _nullable(about) for each, about in members if each != "id"},
    }


def _nullable(schema: Schema) -> Schema:
    if "anyOf" in schema:
        return schema
    value = {name: of for name, of in schema.items() if name != "description"}
    return {"anyOf": [value, _NULL], "description": schema["description"]}


_SIGNED = "`v1,` and the HMAC-SHA256 of `id.timestamp.body` in base64; more may follow a space."
_UNIX = {"type": "integer", "format": "int64"}
_HEADERS = [
    (
        "webhook-id",
        "The `id` of the event, the same at each attempt.",
        TEXT,
        "evt_5f1c3c6a9a3d2b3f",
    ),
    ("webhook-timestamp", "When it was sent, in Unix seconds.", _UNIX, 1795255500),
    ("webhook-signature", _SIGNED, TEXT, "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4="),
]
SIGNATURE = {row[0]: parameter("header", *row) | {"required": True} for row in _HEADERS}
"""The parameters of every delivery, by the names of their components."""

_DESCRIPTION = (
    "The request that the service sends to the URL of a webhook. Check `webhook-signature`, and"
    " respond within 15 seconds."
)


def deliveries() -> dict[str, Any]:
    return {kind: {"post": _delivery(kind)} for kind in EVENT_TYPES}


def _delivery(kind: EventType) -> dict[str, Any]:
    event = reference("schemas", _event_name(_subject(kind)))
    return {
        "operationId": kind,
        "summary": kind,
        "description": _DESCRIPTION,
        "security": [],
        "parameters": [reference("parameters", name) for name in SIGNATURE],
        "requestBody": {"required": True, "content": json_content(event, example_of(kind))},
        "responses": {
            "2XX": {"description": "The event is taken. Otherwise it is sent again."},
            "410": {"description": "The webhook is disabled at once."},
        },
    }
