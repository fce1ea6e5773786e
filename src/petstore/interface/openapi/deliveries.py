"""The requests that bring events to webhooks (Standard Webhooks 1.0.0)."""

from typing import Any

from petstore.events.examples import example_of
from petstore.events.model import EVENT_TYPES, EventType
from petstore.interface.openapi.components import json_content, reference
from petstore.interface.openapi.events import event_schema

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
