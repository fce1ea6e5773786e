"""Shorter ways to an operation, which the table of operations does not have."""

from typing import Any

from petstore_client._calls import Call, called, number, only, parameters
from petstore_client._faces import D, Resource, operation
from petstore_client.models import Order, Pet


class PetById(Resource[D]):
    """One pet, by the list of pets: the operation ``getPet`` is deprecated."""

    @operation
    def get(self, pet_id: int) -> Call[Pet]:
        """Return a pet.

        Raises:
            NotFound: there is none with this id.
        """
        query = parameters(id=number("pet_id", pet_id))
        return Call("GET /pets", "GET", "/pets", only(Pet, f"pet {pet_id}"), query)


class OrderSteps(Resource[D]):
    """The steps of an order, each a change of its status."""

    @operation
    def approve(self, order_id: int, *, if_match: str | None = None) -> Call[Order]:
        """Approve a placed order and return it: it does not lapse any more.

        Raises:
            OutcomeUnknown: the connection broke, or the service failed, after it was sent.
        """
        return _moved("approved", locals())

    @operation
    def deliver(self, order_id: int, *, if_match: str | None = None) -> Call[Order]:
        """Mark an approved order as delivered and return it: the pet is sold.

        Raises:
            OutcomeUnknown: the connection broke, or the service failed, after it was sent.
        """
        return _moved("delivered", locals())


def _moved(status: str, arguments: dict[str, Any]) -> Call[Order]:
    return called(Order, "PATCH", "/store/orders/{order_id}", arguments | {"status": status})
