"""Orders, and the inventory."""

from datetime import datetime
from typing import Literal

from msgspec import UNSET, UnsetType

from petstore_client._calls import Call, Listing, given, into, members, nothing, parameters
from petstore_client._faces import D, Resource, listing, operation, paging
from petstore_client.models import Inventory, Order, OrderStatus


class Orders(Resource[D]):
    """Orders: ``client.orders``."""

    @operation
    def place(
        self,
        *,
        pet_id: int,
        ship_date: datetime | None = None,
        quantity: int | None = None,
        idempotency_key: str | None = None,
    ) -> Call[Order]:
        """Order an available animal and return the order, which reserves it.

        Raises:
            PetNotAvailable: somebody else was faster, or the animal is not for sale.
        """
        return Call(
            *("placeOrder", "POST", "/store/orders", into(Order)),
            body=given(pet_id=pet_id, ship_date=ship_date, quantity=quantity),
            idempotency_key=idempotency_key,
        )

    @operation
    def get(self, order_id: int) -> Call[Order]:
        """Return an order."""
        return Call("getOrder", "GET", f"/store/orders/{order_id:d}", into(Order))

    @operation
    def update(
        self,
        order_id: int,
        *,
        status: OrderStatus | UnsetType = UNSET,
        ship_date: datetime | UnsetType | None = UNSET,
        quantity: int | UnsetType = UNSET,
        if_match: str | None = None,
    ) -> Call[Order]:
        """Change what is named and return the order; a ``ship_date`` of ``None`` removes it.

        Raises:
            OutcomeUnknown: the connection broke, or the service failed, after it was sent.
        """
        body = members(status=status, ship_date=ship_date, quantity=quantity)
        return _change(order_id, body, if_match)

    @operation
    def approve(self, order_id: int, *, if_match: str | None = None) -> Call[Order]:
        """Approve a placed order and return it: it does not lapse any more.

        Raises:
            OutcomeUnknown: the connection broke, or the service failed, after it was sent.
        """
        return _change(order_id, {"status": "approved"}, if_match)

    @operation
    def deliver(self, order_id: int, *, if_match: str | None = None) -> Call[Order]:
        """Mark an approved order as delivered and return it: the animal is sold.

        Raises:
            OutcomeUnknown: the connection broke, or the service failed, after it was sent.
        """
        return _change(order_id, {"status": "delivered"}, if_match)

    @operation
    def cancel(self, order_id: int, *, if_match: str | None = None) -> Call[None]:
        """Cancel a placed or approved order: the animal is available again.

        To cancel an order that is cancelled changes nothing.

        Raises:
            OutcomeUnknown: the connection broke, or the service failed, after it was sent.
        """
        path = f"/store/orders/{order_id:d}"
        return Call("cancelOrder", "DELETE", path, nothing, if_match=if_match)

    @listing
    def list(
        self,
        *,
        status: OrderStatus | None = None,
        pet_id: int | None = None,
        sort: Literal["id", "-id"] | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Listing[Order]:
        """Iterate over all orders. ``limit`` is the size of a page, from 1 to 100."""
        query = parameters(status=status, pet_id=pet_id, sort=sort, limit=limit, cursor=cursor)
        return Listing("listOrders", "/store/orders", Order, query)

    pages = paging(list)  # noqa: A003 - the method above


class InventoryCounts(Resource[D]):
    """The inventory: ``client.inventory``."""

    @operation
    def get(self) -> Call[Inventory]:
        """Return the number of animals of each status."""
        return Call("getInventory", "GET", "/store/inventory", into(Inventory))


def _change(order_id: int, body: dict[str, object], if_match: str | None) -> Call[Order]:
    path = f"/store/orders/{order_id:d}"
    return Call("updateOrder", "PATCH", path, into(Order), body=body, if_match=if_match)
