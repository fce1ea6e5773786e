"""The requests that bring events to webhooks (Standard Webhooks 1.0.0)."""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from petstore.categories.model import Category
from petstore.events.examples import example_of
from petstore.events.model import EVENT_TYPES, EventType, type_description
from petstore.interface.openapi.components import json_content, reference
from petstore.orders.model import Order
from petstore.pets.model import Pet
from petstore.webhooks.model import Webhook

TAG = "Deliveries"
"""The operations on webhooks have another tag: generated clients name a class after each."""

_RESOURCES: dict[str, type[Struct]] = {
    "pet": Pet,
    "order": Order,
    "category": Category,
    "webhook": Webhook,
}
"""What the ``data`` of an event is, by the first word of its type."""

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


def event_schemas(schemas: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of the events about each kind of resource, and of their ``data``.

    ``schemas`` are those of the resources and of ``Event``. A delivery is a request, so that
    ``readOnly`` would take the id of the resource out of it: ``data`` has a schema of its own. Not
    every generator can put an event together from parts, so that each has all members.
    """
    found: dict[str, Any] = {}
    for word, resource in _RESOURCES.items():
        name = resource.__name__
        types = [kind for kind in EVENT_TYPES if kind.startswith(f"{word}.")]
        found[f"{name}Snapshot"] = _snapshot(schemas[name])
        found[f"{name}Event"] = _event_about(name, types, schemas["Event"])
    return found


def _snapshot(schema: dict[str, Any]) -> dict[str, Any]:
    name = schema["title"]
    fields = {
        field: {key: value for key, value in about.items() if key != "readOnly"}
        for field, about in schema["properties"].items()
    }
    return schema | {
        "title": f"{name}Snapshot",
        "description": f"{name} after the event, or before it was deleted.",
        "properties": fields,
    }


def _event_about(name: str, types: Sequence[EventType], event: dict[str, Any]) -> dict[str, Any]:
    fields = event["properties"] | {
        "type": {"type": "string", "description": type_description(types)},
        "data": reference("schemas", f"{name}Snapshot"),
    }
    about = {"title": f"{name}Event", "description": f"An event about {name}."}
    return event | about | {"properties": fields}


def deliveries() -> dict[str, Any]:
    """Describe the delivery of each type of events."""
    return {kind: {"post": _delivery(kind)} for kind in EVENT_TYPES}


def _delivery(kind: EventType) -> dict[str, Any]:
    resource = _RESOURCES.get(kind.partition(".")[0])
    name = f"{'' if resource is None else resource.__name__}Event"
    event = reference("schemas", name)
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
