"""The operations on orders, and the inventory."""

from functools import partial
from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from petstore.clock import milliseconds
from petstore.domain.cursors import BY_ID, NEWEST_FIRST
from petstore.domain.fields import Int64
from petstore.errors import IllegalTransition, OrderClosed, PetNotAvailable, UnknownPet
from petstore.events.changes import Extent
from petstore.interface.idempotency import change
from petstore.interface.operation import Call, Context, Operation, Result, Success
from petstore.interface.pages import PageQuery, Sort, cursor_of, page_result
from petstore.orders.model import Order, OrderCreate, OrderFilter, OrderPatch, StatusOfOrder
from petstore.orders.store import cancel_order, get_order, list_orders, place_order, update_order
from petstore.pets.model import Inventory
from petstore.pets.store import get_inventory


class ListOrdersQuery(PageQuery, frozen=True, rename="camel"):
    """The query parameters of ``listOrders``."""

    cursor: Annotated[str, cursor_of(BY_ID, NEWEST_FIRST)] | UnsetType = UNSET
    status: Annotated[StatusOfOrder, Meta(description="Filters by status.")] | UnsetType = UNSET
    pet_id: Annotated[Int64, Meta(description="Filters by animal.")] | UnsetType = UNSET
    sort: Sort | UnsetType = UNSET


async def _list(context: Context, call: Call[None, ListOrdersQuery]) -> Result[list[Order]]:
    query = call.query
    wanted, limit = OrderFilter(query.status, query.pet_id), query.limit
    newest_first = query.sort == "-id"
    form = NEWEST_FIRST if newest_first else BY_ID
    start, reader = query.start(form), await context.reader()
    page = await list_orders(reader, wanted, start, limit, newest_first=newest_first)
    shown = Extent.of("order", page.ids, query.status, query.pet_id)
    return page_result(page, form, shown)


async def _place(context: Context, call: Call[OrderCreate, None]) -> Result[Order]:
    services = context.services
    unit = place_order(call.body, services.clock(), services.reservation_minutes, by=context.author)
    placed = await change(context, unit)
    if placed.value.reserved_until is not UNSET:
        services.reservations.note(milliseconds(placed.value.reserved_until))
    return placed


async def _get(context: Context, call: Call[None, None]) -> Result[Order]:
    return Result(await get_order(context.services.store, call.path_id))


async def _update(context: Context, call: Call[OrderPatch, None]) -> Result[Order]:
    now, check = context.services.clock(), context.conditions.check
    unit = update_order(call.path_id, call.body, now, check, by=context.author)
    return await change(context, unit)


async def _cancel(context: Context, call: Call[None, None]) -> Result[None]:
    now, check = context.services.clock(), context.conditions.check
    return await change(context, cancel_order(call.path_id, now, check, by=context.author))


async def _get_inventory(context: Context, _: Call[None, None]) -> Result[Inventory]:
    return Result(await get_inventory(context.services.store))


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
        cached=True,
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
