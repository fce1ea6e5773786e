# Generated from the operations of the service by clients/python/generate.py: run `make client`.
"""Each type of event as a class with typed ``data``."""

from collections.abc import Mapping
from typing import Any, Literal

from petstore_client.models import Category, Event, Key, Order, Person, Pet, Webhook


class PetCreated(Event, frozen=True, kw_only=True):
    type: Literal["pet.created"]
    data: Pet


class PetUpdated(Event, frozen=True, kw_only=True):
    type: Literal["pet.updated"]
    data: Pet


class PetDeleted(Event, frozen=True, kw_only=True):
    type: Literal["pet.deleted"]
    data: Pet


class OrderPlaced(Event, frozen=True, kw_only=True):
    type: Literal["order.placed"]
    data: Order


class OrderUpdated(Event, frozen=True, kw_only=True):
    type: Literal["order.updated"]
    data: Order


class OrderApproved(Event, frozen=True, kw_only=True):
    type: Literal["order.approved"]
    data: Order


class OrderDelivered(Event, frozen=True, kw_only=True):
    type: Literal["order.delivered"]
    data: Order


class OrderReturned(Event, frozen=True, kw_only=True):
    type: Literal["order.returned"]
    data: Order


class OrderCancelled(Event, frozen=True, kw_only=True):
    type: Literal["order.cancelled"]
    data: Order


class OrderLapsed(Event, frozen=True, kw_only=True):
    type: Literal["order.lapsed"]
    data: Order


class CategoryCreated(Event, frozen=True, kw_only=True):
    type: Literal["category.created"]
    data: Category


class CategoryUpdated(Event, frozen=True, kw_only=True):
    type: Literal["category.updated"]
    data: Category


class CategoryDeleted(Event, frozen=True, kw_only=True):
    type: Literal["category.deleted"]
    data: Category


class KeyCreated(Event, frozen=True, kw_only=True):
    type: Literal["key.created"]
    data: Key


class KeyUpdated(Event, frozen=True, kw_only=True):
    type: Literal["key.updated"]
    data: Key


class KeyRotated(Event, frozen=True, kw_only=True):
    type: Literal["key.rotated"]
    data: Key


class KeyRevoked(Event, frozen=True, kw_only=True):
    type: Literal["key.revoked"]
    data: Key


class KeyUnbanned(Event, frozen=True, kw_only=True):
    type: Literal["key.unbanned"]
    data: Key


class PersonCreated(Event, frozen=True, kw_only=True):
    type: Literal["person.created"]
    data: Person


class PersonUpdated(Event, frozen=True, kw_only=True):
    type: Literal["person.updated"]
    data: Person


class PersonInvited(Event, frozen=True, kw_only=True):
    type: Literal["person.invited"]
    data: Person


class KeyLimitNear(Event, frozen=True, kw_only=True):
    type: Literal["key.limit_near"]
    data: Mapping[str, Any]


class KeyBanned(Event, frozen=True, kw_only=True):
    type: Literal["key.banned"]
    data: Mapping[str, Any]


class KeyExpiring(Event, frozen=True, kw_only=True):
    type: Literal["key.expiring"]
    data: Mapping[str, Any]


class DeprecationUsed(Event, frozen=True, kw_only=True):
    type: Literal["deprecation.used"]
    data: Mapping[str, Any]


class WebhookDisabled(Event, frozen=True, kw_only=True):
    type: Literal["webhook.disabled"]
    data: Webhook


class WebhookTest(Event, frozen=True, kw_only=True):
    type: Literal["webhook.test"]
    data: Webhook
