"""Events in the OpenAPI document: their schemas by kind of resource, deliveries and examples."""

from typing import Any

from msgspec import UNSET

from petstore.domain.fields import open_list
from petstore.events.model import ADMIN_EVENT_TYPES, EVENT_TYPES, EventType
from petstore.interface.openapi.schemas import TEXT, Schema, json_content, parameter, reference
from petstore.interface.operations import OPERATIONS_BY_ID
from petstore.keys.model import KeyNoticeData
from petstore.orders.model import PERSONAL, Order
from petstore.usage.counter import KeyDeprecatedUse

_NOTICES = {"deprecation": KeyDeprecatedUse.__name__, "keyNotice": KeyNoticeData.__name__}


def event_schemas(schemas: dict[str, Schema]) -> dict[str, Schema]:
    """Return the schemas of events about each kind of resource, with their parts, by name.

    ``schemas`` are for the resources, notices and ``Event``. A delivery is a request, so
    that ``readOnly`` would take the id of the resource out of it: ``data`` has a schema of its own.
    Not every generator can put an event together from parts, so that each has all members.
    """
    found: dict[str, Schema] = {}
    for subject in dict.fromkeys(map(_subject, EVENT_TYPES)):
        types = [kind for kind in EVENT_TYPES if _subject(kind) == subject]
        event, name = schemas["Event"], _NOTICES.get(subject, f"{subject.capitalize()}Snapshot")
        members = event["properties"] | {
            "type": {"type": "string", "description": open_list(types, "types")},
            "data": reference("schemas", name),
        }
        about = "for the owner of a key"
        if subject in _NOTICES:
            del members["previous"]
        else:
            resource = subject.capitalize()
            about = f"about {resource}"
            found[name] = _snapshot(schemas[resource])
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


_SIGNED = "`v1,` and the HMAC-SHA256 of `id.timestamp.body` in base64; more may follow a space."
_UNIX = {"type": "integer", "format": "int64"}
_HEADERS = [
    ("webhook-id", "The `id` of the event, the same at each attempt.", TEXT, "evt_5f1c3c6a9a3d"),
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


def _moved(status: str, at: str, **others: Any) -> dict[str, Any]:
    return {"status": status, f"{status}At": at, **others}


_EARLIER = {
    "order.cancelled": "order.approved",
    "order.delivered": "order.approved",
    "order.returned": "order.delivered",
}
_BANNED_UNTIL = "2026-11-21T10:10:00Z"
_CHANGES: dict[str, dict[str, Any]] = {
    "pet.updated": {"status": "pending"},
    "order.updated": {"shipDate": "2026-12-23T10:00:00Z"},
    "order.approved": _moved("approved", "2026-11-21T10:06:00.120000Z", reservedUntil=UNSET),
    "order.delivered": _moved("delivered", "2026-11-21T10:07:00.120000Z", complete=True),
    "order.returned": _moved("returned", "2026-11-28T10:07:00.120000Z", refund=24900),
    "order.cancelled": _moved("cancelled", "2026-11-21T10:07:00.120000Z"),
    "order.lapsed": _moved("cancelled", "2026-11-22T10:05:00.120000Z", reservedUntil=UNSET),
    "category.updated": {"name": "Small ferrets"},
    "key.updated": {"plan": "business", "perMinute": 1000, "perDay": 100000},
    "key.rotated": {"tokenEnds": "9aKc"},
    "key.revoked": {"state": "revoked"},
    "key.unbanned": {"bannedUntil": None},
    "person.updated": {"role": "manager"},
    "person.invited": {},
    "webhook.disabled": {"enabled": False, "disabledReason": "failing"},
}
"""What an event of a type changed of the example of its resource; an unset field is gone."""

_NOTICE_DATA: dict[str, dict[str, Any]] = {
    "key.limit_near": {
        "percent": 80,
        "limit": 10000,
        "used": 8000,
        "resetAt": "2026-11-22T00:00:00Z",
    },
    "key.banned": {"bannedAt": "2026-11-21T10:05:00Z", "bannedUntil": _BANNED_UNTIL, "level": 1},
    "key.expiring": {"expiresAt": "2026-11-28T10:00:00Z"},
}


def example_of(event_type: EventType) -> dict[str, Any]:
    data, kind = _data(event_type), event_type.partition(".")[0]
    sequence = EVENT_TYPES.index(event_type) + 1
    event = {
        "id": f"evt_5f1c3c6a9a3d2b3f0a7e9d{sequence:02}",
        "type": event_type,
        "timestamp": "2026-11-21T10:05:00.120Z",
        "resource": f"key/{data['keyId']}" if "keyId" in data else f"{kind}/{data['id']}",
        "sequence": sequence,
        "data": data,
    }
    if event_type in _CHANGES:
        before = _before(event_type)
        event["previous"] = {name: before.get(name) for name in _CHANGES[event_type]}
    if "keyId" in data or event_type in ("order.lapsed", "webhook.disabled"):
        return event | {"actor": {"type": "service"}}
    return event | {"actor": {"type": "person", "id": 5}, "requestId": "3f9c0a7be1d2"}


def _data(event_type: str) -> dict[str, Any]:
    if event_type in _NOTICE_DATA:
        return {"keyId": 4} | _NOTICE_DATA[event_type]
    if event_type == "deprecation.used":
        return {**OPERATIONS_BY_ID["listDeprecations"].success.example[0]}
    data = _before(event_type) | _CHANGES.get(event_type, {})
    return {name: value for name, value in data.items() if value is not UNSET}


def _before(event_type: str) -> dict[str, Any]:
    if event_type in _EARLIER:
        return _data(_EARLIER[event_type])
    resource = OPERATIONS_BY_ID[f"get{event_type.partition('.')[0].title()}"].success.example
    before = {name: value for name, value in resource.items() if name not in PERSONAL.values()}
    return before | ({"bannedUntil": _BANNED_UNTIL} if event_type == "key.unbanned" else {})
