"""An example of every type of event."""

from typing import Any

from petstore.events.model import EVENT_TYPES, EventType

_PET = {"id": 7, "name": "Bella", "categoryId": 1, "status": "pending"}
_RESERVED = {"reservedUntil": "2026-11-22T10:05:00.120000Z"}
_APPROVED = {"approvedAt": "2026-11-21T10:06:00.120000Z"}
_DELIVERED = {"deliveredAt": "2026-11-21T10:07:00.120000Z"}
_CANCELLED = {"cancelledAt": "2026-11-21T10:07:00.120000Z"}
_RETURNED = {"returnedAt": "2026-11-28T10:07:00.120000Z"}
_LAPSED = {"cancelledAt": "2026-11-22T10:05:00.120000Z"}


def _order(status: str, *more: dict[str, str]) -> dict[str, Any]:
    order = {"id": 3, "petId": 7, "quantity": 1, "status": status}
    order |= {
        "complete": status in {"delivered", "returned"},
        "placedAt": "2026-11-21T10:05:00.120000Z",
    }
    return order | {name: at for moments in more for name, at in moments.items()}


_CATEGORY = {"id": 1, "name": "Dogs", "description": "Great and small."}

WEBHOOK = {
    "id": 2,
    "url": "https://shop.example/hooks",
    "types": ["order.placed"],
    "description": "The website",
    "enabled": True,
    "disabledReason": None,
    "createdAt": "2026-11-21T10:00:00Z",
    "lastSuccessAt": None,
    "failingSince": None,
    "owner": {"type": "key", "id": 4},
}
"""A webhook."""

KEY = {
    "id": 4,
    "name": "Till 2",
    "plan": "pro",
    "perMinute": 300,
    "perDay": 10000,
    "scopes": ["orders:read", "orders:write", "pets:read", "pets:write"],
    "allowedNetworks": [],
    "environment": "production",
    "tokenEnds": "x7Qm",
    "state": "active",
    "bannedUntil": None,
    "createdAt": "2026-11-21T10:00:00Z",
    "expiresAt": None,
    "lastUsedAt": None,
}
PERSON = {
    "id": 6,
    "name": "Grace Hopper",
    "login": "grace@shop.example",
    "role": "clerk",
    "state": "invited",
    "createdAt": "2026-11-21T10:00:00Z",
    "lastSeenAt": None,
}

DEPRECATED_USE = {
    "operation": "getPet",
    "method": "GET",
    "path": "/v1/pets/{petId}",
    "since": "2026-11-21T00:00:00Z",
    "sunset": "2030-12-05T00:00:00Z",
    "use": "GET /v1/pets, with id for one pet or with status",
    "documentation": "/docs/operations/getPet",
    "calls": 312,
    "lastCalledAt": "2026-11-21T10:05:00Z",
    "lastUserAgent": "corner-shop/1.4",
    "lastRequestId": "3f9c0a7be1d2",
}
"""What a key has called of a deprecated operation."""

_DATA: dict[EventType, dict[str, Any]] = {
    "pet.created": _PET | {"status": "available"},
    "pet.updated": _PET,
    "pet.deleted": _PET | {"status": "available"},
    "order.placed": _order("placed", _RESERVED),
    "order.updated": _order("placed", _RESERVED, {"shipDate": "2026-12-24T10:00:00Z"}),
    "order.approved": _order("approved", _APPROVED),
    "order.delivered": _order("delivered", _APPROVED, _DELIVERED),
    "order.returned": _order("returned", _APPROVED, _DELIVERED, _RETURNED)
    | {"amount": 24900, "currency": "USD", "refund": 24900},
    "order.cancelled": _order("cancelled", _APPROVED, _CANCELLED),
    "order.lapsed": _order("cancelled", _LAPSED),
    "category.created": _CATEGORY,
    "category.updated": _CATEGORY,
    "category.deleted": _CATEGORY,
    "key.created": KEY,
    "key.updated": KEY,
    "key.rotated": KEY,
    "key.revoked": KEY | {"state": "revoked"},
    "key.unbanned": KEY,
    "person.created": PERSON,
    "person.updated": PERSON | {"role": "manager"},
    "person.invited": PERSON,
    "key.limit_near": {
        "keyId": 4,
        "percent": 80,
        "limit": 10000,
        "used": 8000,
        "resetAt": "2026-11-22T00:00:00Z",
    },
    "key.banned": {
        "keyId": 4,
        "bannedAt": "2026-11-21T10:05:00Z",
        "bannedUntil": "2026-11-21T10:10:00Z",
        "level": 1,
    },
    "key.expiring": {"keyId": 4, "expiresAt": "2026-11-28T10:00:00Z"},
    "deprecation.used": {"keyId": 4} | DEPRECATED_USE,
    "webhook.disabled": WEBHOOK | {"enabled": False, "disabledReason": "failing", "types": []},
    "webhook.test": WEBHOOK,
}
_PREVIOUS: dict[EventType, dict[str, Any]] = {
    "pet.updated": {"status": "available"},
    "order.updated": {"shipDate": None},
    "order.approved": _RESERVED | {"status": "placed", "approvedAt": None},
    "order.delivered": {"status": "approved", "complete": False, "deliveredAt": None},
    "order.returned": {"status": "delivered", "returnedAt": None, "refund": None},
    "order.cancelled": {"status": "approved", "cancelledAt": None},
    "order.lapsed": _RESERVED | {"status": "placed", "cancelledAt": None},
    "category.updated": {"description": None},
    "key.updated": {"plan": "free", "perMinute": 60, "perDay": 1000},
    "key.rotated": {"tokenEnds": "9aKc"},
    "key.revoked": {"state": "active"},
    "key.unbanned": {"bannedUntil": "2026-11-21T10:10:00Z"},
    "person.updated": {"role": "clerk"},
    "person.invited": {},
    "webhook.disabled": {"enabled": True, "disabledReason": None},
}
_OF_SERVICE = ("order.lapsed", "webhook.disabled")


def example_of(event_type: EventType) -> dict[str, Any]:
    data = _DATA[event_type]
    kind = event_type.partition(".")[0]
    is_of_key = "keyId" in data
    sequence = EVENT_TYPES.index(event_type) + 1
    event = {
        "id": f"evt_5f1c3c6a9a3d2b3f0a7e9d{sequence:02}",
        "type": event_type,
        "timestamp": "2026-11-21T10:05:00.120Z",
        "resource": f"key/{data['keyId']}" if is_of_key else f"{kind}/{data['id']}",
        "sequence": sequence,
        "data": data,
    }
    if event_type in _PREVIOUS:
        event["previous"] = _PREVIOUS[event_type]
    if is_of_key or event_type in _OF_SERVICE:
        return event | {"actor": {"type": "service"}}
    return event | {"actor": {"type": "person", "id": 5}, "requestId": "3f9c0a7be1d2"}
