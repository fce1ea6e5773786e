"""An example of every type of event."""

from typing import Any

from petstore.events.model import EVENT_TYPES, EventType

_PET = {"id": 7, "name": "Bella", "categoryId": 1, "status": "pending"}
_ORDER = {
    "id": 3,
    "petId": 7,
    "quantity": 1,
    "status": "placed",
    "complete": False,
    "placedAt": "2026-11-21T10:05:00.120000Z",
    "reservedUntil": "2026-11-22T10:05:00.120000Z",
}
_PLACED = {"status": "placed", "reservedUntil": _ORDER["reservedUntil"]}
_APPROVED = {name: value for name, value in _ORDER.items() if name != "reservedUntil"} | {
    "status": "approved",
    "approvedAt": "2026-11-21T10:06:00.120000Z",
}
_DELIVERED = {"status": "delivered", "complete": True, "deliveredAt": "2026-11-21T10:07:00.120000Z"}
_RETURNED = {
    **_DELIVERED,
    "status": "returned",
    "amount": 24900,
    "currency": "USD",
    "returnedAt": "2026-11-28T10:07:00.120000Z",
    "refund": 24900,
}
_CANCELLED = {"status": "cancelled", "cancelledAt": "2026-11-21T10:07:00.120000Z"}
_LAPSED = {name: value for name, value in _ORDER.items() if name != "reservedUntil"} | {
    "status": "cancelled",
    "cancelledAt": "2026-11-22T10:05:00.120000Z",
}
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

_KEY = {
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
_PERSON = {
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
    "order.placed": _ORDER,
    "order.updated": _ORDER | {"shipDate": "2026-12-24T10:00:00Z"},
    "order.approved": _APPROVED,
    "order.delivered": _APPROVED | _DELIVERED,
    "order.returned": _APPROVED | _RETURNED,
    "order.cancelled": _APPROVED | _CANCELLED,
    "order.lapsed": _LAPSED,
    "category.created": _CATEGORY,
    "category.updated": _CATEGORY,
    "category.deleted": _CATEGORY,
    "key.created": _KEY,
    "key.updated": _KEY,
    "key.rotated": _KEY,
    "key.revoked": _KEY | {"state": "revoked"},
    "key.unbanned": _KEY,
    "person.created": _PERSON,
    "person.updated": _PERSON | {"role": "manager"},
    "person.invited": _PERSON,
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
    "order.approved": _PLACED | {"approvedAt": None},
    "order.delivered": {"status": "approved", "complete": False, "deliveredAt": None},
    "order.returned": {"status": "delivered", "returnedAt": None, "refund": None},
    "order.cancelled": {"status": "approved", "cancelledAt": None},
    "order.lapsed": _PLACED | {"cancelledAt": None},
    "category.updated": {"description": None},
    "key.updated": {"plan": "free", "perMinute": 60, "perDay": 1000},
    "key.rotated": {},
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
