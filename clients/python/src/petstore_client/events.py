# Generated from the operations of the service by clients/python/generate.py: run `make client`.
"""Each type of event, as a constant and as a class with typed ``data``."""

from collections.abc import Mapping
from typing import Any, Final, Literal

from petstore_client.models import (
    Category,
    Event,
    Key,
    Order,
    Person,
    Pet,
    Webhook,
)

PET_CREATED: Final = "pet.created"


class PetCreated(Event, frozen=True, kw_only=True):
    """An event of the type ``pet.created``."""

    type: Literal["pet.created"]
    data: Pet


PET_UPDATED: Final = "pet.updated"


class PetUpdated(Event, frozen=True, kw_only=True):
    """An event of the type ``pet.updated``."""

    type: Literal["pet.updated"]
    data: Pet


PET_DELETED: Final = "pet.deleted"


class PetDeleted(Event, frozen=True, kw_only=True):
    """An event of the type ``pet.deleted``."""

    type: Literal["pet.deleted"]
    data: Pet


ORDER_PLACED: Final = "order.placed"


class OrderPlaced(Event, frozen=True, kw_only=True):
    """An event of the type ``order.placed``."""

    type: Literal["order.placed"]
    data: Order


ORDER_UPDATED: Final = "order.updated"


class OrderUpdated(Event, frozen=True, kw_only=True):
    """An event of the type ``order.updated``."""

    type: Literal["order.updated"]
    data: Order


ORDER_APPROVED: Final = "order.approved"


class OrderApproved(Event, frozen=True, kw_only=True):
    """An event of the type ``order.approved``."""

    type: Literal["order.approved"]
    data: Order


ORDER_DELIVERED: Final = "order.delivered"


class OrderDelivered(Event, frozen=True, kw_only=True):
    """An event of the type ``order.delivered``."""

    type: Literal["order.delivered"]
    data: Order


ORDER_RETURNED: Final = "order.returned"


class OrderReturned(Event, frozen=True, kw_only=True):
    """An event of the type ``order.returned``."""

    type: Literal["order.returned"]
    data: Order


ORDER_CANCELLED: Final = "order.cancelled"


class OrderCancelled(Event, frozen=True, kw_only=True):
    """An event of the type ``order.cancelled``."""

    type: Literal["order.cancelled"]
    data: Order


ORDER_LAPSED: Final = "order.lapsed"


class OrderLapsed(Event, frozen=True, kw_only=True):
    """An event of the type ``order.lapsed``."""

    type: Literal["order.lapsed"]
    data: Order


CATEGORY_CREATED: Final = "category.created"


class CategoryCreated(Event, frozen=True, kw_only=True):
    """An event of the type ``category.created``."""

    type: Literal["category.created"]
    data: Category


CATEGORY_UPDATED: Final = "category.updated"


class CategoryUpdated(Event, frozen=True, kw_only=True):
    """An event of the type ``category.updated``."""

    type: Literal["category.updated"]
    data: Category


CATEGORY_DELETED: Final = "category.deleted"


class CategoryDeleted(Event, frozen=True, kw_only=True):
    """An event of the type ``category.deleted``."""

    type: Literal["category.deleted"]
    data: Category


KEY_CREATED: Final = "key.created"


class KeyCreated(Event, frozen=True, kw_only=True):
    """An event of the type ``key.created``."""

    type: Literal["key.created"]
    data: Key


KEY_UPDATED: Final = "key.updated"


class KeyUpdated(Event, frozen=True, kw_only=True):
    """An event of the type ``key.updated``."""

    type: Literal["key.updated"]
    data: Key


KEY_ROTATED: Final = "key.rotated"


class KeyRotated(Event, frozen=True, kw_only=True):
    """An event of the type ``key.rotated``."""

    type: Literal["key.rotated"]
    data: Key


KEY_REVOKED: Final = "key.revoked"


class KeyRevoked(Event, frozen=True, kw_only=True):
    """An event of the type ``key.revoked``."""

    type: Literal["key.revoked"]
    data: Key


KEY_UNBANNED: Final = "key.unbanned"


class KeyUnbanned(Event, frozen=True, kw_only=True):
    """An event of the type ``key.unbanned``."""

    type: Literal["key.unbanned"]
    data: Key


PERSON_CREATED: Final = "person.created"


class PersonCreated(Event, frozen=True, kw_only=True):
    """An event of the type ``person.created``."""

    type: Literal["person.created"]
    data: Person


PERSON_UPDATED: Final = "person.updated"


class PersonUpdated(Event, frozen=True, kw_only=True):
    """An event of the type ``person.updated``."""

    type: Literal["person.updated"]
    data: Person


PERSON_INVITED: Final = "person.invited"


class PersonInvited(Event, frozen=True, kw_only=True):
    """An event of the type ``person.invited``."""

    type: Literal["person.invited"]
    data: Person


KEY_LIMIT_NEAR: Final = "key.limit_near"


class KeyLimitNear(Event, frozen=True, kw_only=True):
    """An event of the type ``key.limit_near``."""

    type: Literal["key.limit_near"]
    data: Mapping[str, Any]


KEY_BANNED: Final = "key.banned"


class KeyBanned(Event, frozen=True, kw_only=True):
    """An event of the type ``key.banned``."""

    type: Literal["key.banned"]
    data: Mapping[str, Any]


KEY_EXPIRING: Final = "key.expiring"


class KeyExpiring(Event, frozen=True, kw_only=True):
    """An event of the type ``key.expiring``."""

    type: Literal["key.expiring"]
    data: Mapping[str, Any]


DEPRECATION_USED: Final = "deprecation.used"


class DeprecationUsed(Event, frozen=True, kw_only=True):
    """An event of the type ``deprecation.used``."""

    type: Literal["deprecation.used"]
    data: Mapping[str, Any]


WEBHOOK_DISABLED: Final = "webhook.disabled"


class WebhookDisabled(Event, frozen=True, kw_only=True):
    """An event of the type ``webhook.disabled``."""

    type: Literal["webhook.disabled"]
    data: Webhook


WEBHOOK_TEST: Final = "webhook.test"


class WebhookTest(Event, frozen=True, kw_only=True):
    """An event of the type ``webhook.test``."""

    type: Literal["webhook.test"]
    data: Webhook


BY_TYPE: Final[Mapping[str, type[Event]]] = {
    PET_CREATED: PetCreated,
    PET_UPDATED: PetUpdated,
    PET_DELETED: PetDeleted,
    ORDER_PLACED: OrderPlaced,
    ORDER_UPDATED: OrderUpdated,
    ORDER_APPROVED: OrderApproved,
    ORDER_DELIVERED: OrderDelivered,
    ORDER_RETURNED: OrderReturned,
    ORDER_CANCELLED: OrderCancelled,
    ORDER_LAPSED: OrderLapsed,
    CATEGORY_CREATED: CategoryCreated,
    CATEGORY_UPDATED: CategoryUpdated,
    CATEGORY_DELETED: CategoryDeleted,
    KEY_CREATED: KeyCreated,
    KEY_UPDATED: KeyUpdated,
    KEY_ROTATED: KeyRotated,
    KEY_REVOKED: KeyRevoked,
    KEY_UNBANNED: KeyUnbanned,
    PERSON_CREATED: PersonCreated,
    PERSON_UPDATED: PersonUpdated,
    PERSON_INVITED: PersonInvited,
    KEY_LIMIT_NEAR: KeyLimitNear,
    KEY_BANNED: KeyBanned,
    KEY_EXPIRING: KeyExpiring,
    DEPRECATION_USED: DeprecationUsed,
    WEBHOOK_DISABLED: WebhookDisabled,
    WEBHOOK_TEST: WebhookTest,
}
