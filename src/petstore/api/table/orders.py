"""The rows of store orders and of the inventory."""

from petstore.api.operation import Operation, PathParameter, Success
from petstore.api.orders import (
    ListOrdersQuery,
    answer_cancel_order,
    answer_get_inventory,
    answer_get_order,
    answer_list_orders,
    answer_place_order,
    answer_update_order,
)
from petstore.api.table.parts import BODY_ERRORS, location, next_page
from petstore.domain.orders import NewOrder, Order, OrderPatch
from petstore.domain.pets import Inventory
from petstore.errors import (
    IllegalTransition,
    InvalidParameter,
    NotFound,
    OrderClosed,
    PetNotAvailable,
    UnknownPet,
)

_ORDER = {
    "id": 3,
    "petId": 7,
    "quantity": 1,
    "status": "placed",
    "complete": False,
    "placedAt": "2026-11-21T10:00:00Z",
    "shipDate": "2026-12-24T10:00:00Z",
    "reservedUntil": "2026-11-22T10:00:00Z",
}
_APPROVED = {name: value for name, value in _ORDER.items() if name != "reservedUntil"} | {
    "status": "approved"
}
_ORDER_ID = {"orderId": "$response.body#/id"}

ORDERS = (
    Operation(
        id="listOrders",
        method="GET",
        path="/store/orders",
        tag="Store",
        summary="List orders",
        description="Returns a page of orders, by ascending `id`.",
        handler=answer_list_orders,
        scope="orders:read",
        query=ListOrdersQuery,
        tagged=True,
        success=Success(
            200,
            "A page of orders.",
            list[Order],
            [_ORDER],
            headers=(next_page("/store/orders"),),
        ),
        errors=(InvalidParameter,),
    ),
    Operation(
        id="placeOrder",
        method="POST",
        path="/store/orders",
        tag="Store",
        summary="Order an animal",
        description=(
            "Reserves an `available` animal: it becomes `pending`. However many ask for it at"
            " once, one gets it. An order that is not approved by `reservedUntil` is cancelled,"
            " and the animal is available again."
        ),
        handler=answer_place_order,
        scope="orders:write",
        body=NewOrder,
        body_example={"petId": 7, "shipDate": "2026-12-24T10:00:00Z"},
        tagged=True,
        success=Success(
            201,
            "The order, with the `id` the service assigned.",
            Order,
            _ORDER,
            headers=(location("/store/orders/3"),),
            links={
                name: {"operationId": name, "parameters": _ORDER_ID}
                for name in ("getOrder", "updateOrder", "cancelOrder")
            },
        ),
        errors=(*BODY_ERRORS, UnknownPet, PetNotAvailable),
    ),
    Operation(
        id="getOrder",
        method="GET",
        path="/store/orders/{orderId}",
        tag="Store",
        summary="Get an order",
        description="Returns one order, also one that is delivered or cancelled.",
        handler=answer_get_order,
        scope="orders:read",
        parameter=PathParameter("orderId", "Identifier of the order."),
        tagged=True,
        success=Success(200, "The order.", Order, _ORDER),
        errors=(NotFound,),
    ),
    Operation(
        id="updateOrder",
        method="PATCH",
        path="/store/orders/{orderId}",
        tag="Store",
        summary="Approve, deliver or cancel an order, or change its date",
        description=(
            "Changes what the body names (RFC 7396). From `placed` the status can become"
            " `approved` or `cancelled`, from `approved` `delivered` or `cancelled`. The animal of"
            " a delivered order becomes `sold`, that of a cancelled one `available`. A `shipDate`"
            " of null takes it away; it can change while the order is placed or approved."
        ),
        handler=answer_update_order,
        scope="orders:write",
        parameter=PathParameter("orderId", "Identifier of the order to change."),
        body=OrderPatch,
        body_example={"status": "approved"},
        tagged=True,
        success=Success(200, "The order as it is now.", Order, _APPROVED),
        errors=(*BODY_ERRORS, NotFound, IllegalTransition, OrderClosed),
    ),
    Operation(
        id="cancelOrder",
        method="DELETE",
        path="/store/orders/{orderId}",
        tag="Store",
        summary="Cancel an order",
        description=(
            "Cancels an order that is not delivered; its animal becomes `available`. The order can"
            " still be read. Cancelling it again changes nothing."
        ),
        handler=answer_cancel_order,
        scope="orders:write",
        parameter=PathParameter("orderId", "Identifier of the order to cancel."),
        tagged=True,
        success=Success(204, "The order is cancelled."),
        errors=(NotFound, IllegalTransition),
    ),
    Operation(
        id="getInventory",
        method="GET",
        path="/store/inventory",
        tag="Store",
        summary="Count the animals",
        description="Returns the number of animals of each status.",
        handler=answer_get_inventory,
        scope="orders:read",
        success=Success(
            200, "The counts.", Inventory, {"available": 112, "pending": 3, "sold": 40}
        ),
    ),
)
