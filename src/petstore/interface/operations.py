"""The operations of the interface. Routes, checks and documentation all come from here."""

from petstore.categories import operations as categories
from petstore.events import operations as events
from petstore.imports import operations as imports
from petstore.interface.operation import Operation
from petstore.keys import operations as api_keys
from petstore.orders import operations as orders
from petstore.people import operations as people
from petstore.pets import operations as pets
from petstore.sales import operations as sales
from petstore.usage import operations as usage
from petstore.webhooks import operations as webhooks

OPERATIONS: tuple[Operation, ...] = (
    *pets.OPERATIONS,
    *categories.OPERATIONS,
    *imports.OPERATIONS,
    *orders.OPERATIONS,
    *sales.OPERATIONS,
    *events.OPERATIONS,
    *api_keys.OPERATIONS,
    *people.OPERATIONS,
    *usage.OPERATIONS,
    *webhooks.OPERATIONS,
)
OPERATIONS_BY_ID = {operation.id: operation for operation in OPERATIONS}
