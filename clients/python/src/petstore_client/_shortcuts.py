"""Shorter ways to an operation, which the table of operations does not have."""

from petstore_client._calls import Call, into, number, only, parameters
from petstore_client._faces import D, Resource, operation
from petstore_client.models import Order, Pet


class PetById(Resource[D]):
    """One animal, by the list of animals: the operation ``getPet`` is deprecated."""

    @operation
    def get(self, pet_id: int) -> Call[Pet]:
        """Return an animal.

        Raises:
            NotFound: there is none with this id.
        """
        query = parameters(id=number(pet_id=pet_id))
        return Call("listPets", "GET", "/pets", only(Pet, f"pet {pet_id}"), query)


class OrderSteps(Resource[D]):
    """The steps of an order, each a change of its status."""

    @operation
    def approve(self, order_id: int, *, if_match: str | None = None) -> Call[Order]:
        """Approve a placed order and return it: it does not lapse any more.

        Raises:
            OutcomeUnknown: the connection broke, or the service failed, after it was sent.
        """
        return _move(order_id, "approved", if_match)

    @operation
    def deliver(self, order_id: int, *, if_match: str | None = None) -> Call[Order]:
        """Mark an approved order as delivered and return it: the animal is sold.

        Raises:
            OutcomeUnknown: the connection broke, or the service failed, after it was sent.
        """
        return _move(order_id, "delivered", if_match)


def _move(order_id: int, status: str, if_match: str | None) -> Call[Order]:
    path, body = f"/store/orders/{number(order_id=order_id)}", {"status": status}
    return Call("updateOrder", "PATCH", path, into(Order), body=body, if_match=if_match)
