"""The operations of the interface. Routes, checks and documentation all come from here."""

from petstore.api import (
    api_keys,
    categories,
    deprecations,
    events,
    orders,
    pets,
    usage,
    webhooks,
)
from petstore.api.operation import Operation

OPERATIONS: tuple[Operation, ...] = (
    *pets.OPERATIONS,
    *categories.OPERATIONS,
    *orders.OPERATIONS,
    *events.OPERATIONS,
    *api_keys.OPERATIONS,
    *deprecations.OPERATIONS,
    *usage.OPERATIONS,
    *webhooks.OPERATIONS,
)
