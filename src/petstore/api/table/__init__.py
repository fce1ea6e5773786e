"""The interface as a table: what is not here does not exist, and what is here is documented."""

from petstore.api.operation import Operation
from petstore.api.table.api_keys import API_KEYS
from petstore.api.table.categories import CATEGORIES
from petstore.api.table.orders import ORDERS
from petstore.api.table.parts import BASE as BASE
from petstore.api.table.pets import PETS
from petstore.api.table.usage import USAGE

OPERATIONS: tuple[Operation, ...] = (*PETS, *CATEGORIES, *ORDERS, *API_KEYS, *USAGE)
