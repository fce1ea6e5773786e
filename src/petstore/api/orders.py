"""The operations on orders, and the inventory."""

from functools import partial
from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from petstore.api.entity_tags import precondition
from petstore.api.idempotency import respond_once
from petstore.api.messages import created_response, empty_response, json_response
from petstore.api.operation import Call, Operation, Success
from petstore.api.pages import PageQuery, Sort, cached_page, cursor_of
from petstore.clock import milliseconds
from petstore.domain.fields import Int64
from petstore.domain.orders import Order, OrderCreate, OrderFilter, OrderPatch, StatusOfOrder
from petstore.domain.paging import (
    MAX_SORTED_CURSOR,
    SORTED_CURSOR_PATTERN,
    decode_newest_cursor,
    encode_newest_cursor,
)
from petstore.domain.pets import Inventory
from petstore.errors import IllegalTransition, OrderClosed, PetNotAvailable, UnknownPet
from petstore.http.messages import Response
from petstore.store.orders import cancel_order, get_order, list_orders, place_order, update_order
from petstore.store.pets import get_inventory


class ListOrdersQuery(PageQuery, frozen=True):
    """The query parameters of ``listOrders``."""

    cursor: Annotated[str, cursor_of(SORTED_CURSOR_PATTERN, MAX_SORTED_CURSOR)] | UnsetType = UNSET
    status: Annotated[StatusOfOrder, Meta(description="Filters by status.")] | UnsetType = UNSET
    petId: (  # noqa: N815 - JSON names are in camel case
        Annotated[Int64, Meta(description="Filters by animal.")] | UnsetType
    ) = UNSET
    sort: Sort | UnsetType = UNSET


async def _list(call: Call[None, ListOrdersQuery]) -> Response:
    query = call.query.values
    wanted, limit = OrderFilter(query.status, query.petId), query.limit
    if query.sort == "-id":
        return await cached_page(
            call,
            lambda reader: list_orders(
                reader, wanted, query.start(decode_newest_cursor), limit, newest_first=True
            ),
            encode_newest_cursor,
        )
    return await cached_page(call, lambda reader: list_orders(reader, wanted, query.after, limit))


async def _place(call: Call[OrderCreate, None]) -> Response:
    services = call.services

    def placed(order: Order) -> Response:
        if order.reservedUntil is not UNSET:
            services.reservations.note(milliseconds(order.reservedUntil))
        return created_response(order, f"{call.url}/{order.id}")

    unit = place_order(call.body, services.clock(), services.reservation_minutes)
    return await respond_once(call, unit, placed)


async def _get(call: Call[None, None]) -> Response:
    return json_response(200, await get_order(call.services.store, call.path_id))


async def _update(call: Call[OrderPatch, None]) -> Response:
    unit = update_order(call.path_id, call.body, call.services.clock(), precondition(call.request))
    return json_response(200, await call.services.store.write(unit))


async def _cancel(call: Call[None, None]) -> Response:
    unit = cancel_order(call.path_id, call.services.clock(), precondition(call.request))
    await call.services.store.write(unit)
    return empty_response()


async def _get_inventory(call: Call[None, None]) -> Response:
    return json_response(200, await get_inventory(call.services.store))


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

_operation = partial(Operation, tag="Store", shows_orders=True)

OPERATIONS = (
    _operation(
        id="listOrders",
        method="GET",
        path="/store/orders",
        summary="List orders",
        description=(
            "Returns a page of orders, by ascending `id`. With `sort=-id` the newest come first."
        ),
        handler=_list,
        scope="orders:read",
        query=ListOrdersQuery,
        success=Success(200, "A page of orders.", list[Order], [_ORDER]),
    ),
    _operation(
        id="placeOrder",
        method="POST",
        path="/store/orders",
        summary="Order an animal",
        description=(
            "Reserves an `available` animal: it becomes `pending`. If several buyers order"
            " the same animal, only one succeeds. An order that is not approved by `reservedUntil`"
            " is cancelled, and the animal is available again."
        ),
        handler=_place,
        scope="orders:write",
        body=OrderCreate,
        body_example={"petId": 7, "shipDate": "2026-12-24T10:00:00Z"},
        success=Success(201, "The order, with the `id` the service assigned.", Order, _ORDER),
        errors=(UnknownPet, PetNotAvailable),
    ),
    _operation(
        id="getOrder",
        method="GET",
        path="/store/orders/{orderId}",
        summary="Get an order",
        description="Returns one order, even if it is delivered or cancelled.",
        handler=_get,
        scope="orders:read",
        success=Success(200, "The order.", Order, _ORDER),
    ),
    _operation(
        id="updateOrder",
        method="PATCH",
        path="/store/orders/{orderId}",
        summary="Approve, deliver or cancel an order, or change its date",
        description=(
            "Changes the members in the body (RFC 7396). `placed` can become `approved` or"
            " `cancelled`; `approved` can become `delivered` or `cancelled`. The animal of a"
            " delivered order becomes `sold`, and the animal of a cancelled order becomes"
            " `available`. A `shipDate` of null removes the date. It can change while the order is"
            " placed or approved."
        ),
        handler=_update,
        scope="orders:write",
        body=OrderPatch,
        body_example={"status": "approved"},
        success=Success(200, "The order as it is now.", Order, _APPROVED),
        errors=(IllegalTransition, OrderClosed),
    ),
    _operation(
        id="cancelOrder",
        method="DELETE",
        path="/store/orders/{orderId}",
        summary="Cancel an order",
        description=(
            "Cancels an order that is not delivered; its animal becomes `available`. The order"
            " can still be read. Cancelling it again has no effect."
        ),
        handler=_cancel,
        scope="orders:write",
        success=Success(204, "The order is cancelled."),
        errors=(IllegalTransition,),
    ),
    _operation(
        id="getInventory",
        method="GET",
        path="/store/inventory",
        summary="Count the animals",
        description="Returns the number of animals of each status.",
        handler=_get_inventory,
        scope="orders:read",
        tagged=False,
        success=Success(
            200, "The counts.", Inventory, {"available": 112, "pending": 3, "sold": 40}
        ),
    ),
)
