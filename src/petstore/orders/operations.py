"""The operations on orders."""

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from petstore.clock import milliseconds
from petstore.domain.cursors import BY_DELIVERY, BY_ID, MAX_COUNTED, NEWEST_FIRST
from petstore.domain.fields import Int64, Moment
from petstore.errors import IllegalTransition, PetNotAvailable, UnknownPet
from petstore.events.changes import PageRange
from petstore.interface.idempotency import change
from petstore.interface.operation import Call, Context, Result, Success
from petstore.interface.pages import (
    Count,
    PageQuery,
    Sort,
    cursor_of,
    page_result,
    require_plain_search,
    search_text,
)
from petstore.interface.resource import Resource, reading
from petstore.orders.model import Order, OrderCreate, OrderFilter, OrderPatch, StatusOfOrder
from petstore.orders.store import (
    cancel_order,
    count_orders,
    get_order,
    list_delivered,
    list_orders,
    place_order,
    search_orders,
    update_order,
)

_Buyer = Annotated[
    str,
    search_text(
        "Only orders whose buyer has, for each word of this text, a word that begins with"
        " it, in any order, ignoring case, marks on letters and punctuation inside words."
    ),
]
_PlacedBefore = Annotated[
    Moment, Meta(description="Only orders placed before this moment (RFC 3339).")
]
_DeliveredSince = Annotated[
    Moment,
    Meta(
        description=(
            "Only orders delivered at this moment (RFC 3339) or later, also if they were"
            " returned. The latest delivery comes first. Cannot be used together with"
            " `sort` and `count`."
        )
    ),
]
_DeliveredBefore = Annotated[
    Moment, Meta(description="As `deliveredSince`: only orders delivered before this moment.")
]


class ListOrdersQuery(PageQuery, frozen=True, rename="camel"):
    cursor: Annotated[str, cursor_of(BY_DELIVERY, NEWEST_FIRST, BY_ID)] | UnsetType = UNSET
    status: Annotated[StatusOfOrder, Meta(description="Filters by status.")] | UnsetType = UNSET
    pet_id: Annotated[Int64, Meta(description="Filters by pet.")] | UnsetType = UNSET
    buyer: _Buyer | UnsetType = UNSET
    placed_before: _PlacedBefore | UnsetType = UNSET
    delivered_since: _DeliveredSince | UnsetType = UNSET
    delivered_before: _DeliveredBefore | UnsetType = UNSET
    sort: Sort | UnsetType = UNSET
    count: Count | UnsetType = UNSET


async def _list(context: Context, call: Call[None, ListOrdersQuery]) -> Result[list[Order]]:
    query = call.query
    wanted = OrderFilter(
        *(query.status, query.pet_id, query.placed_before),
        *(query.delivered_since, query.delivered_before),
    )
    limit, store = query.limit, context.services.store
    if query.buyer is not UNSET:
        require_plain_search(query, "buyer")
        return page_result(await search_orders(store, query.buyer, wanted, query.after, limit))
    if wanted.is_by_delivery:
        require_plain_search(query, "deliveredSince or deliveredBefore")
        orders, last = await list_delivered(store, wanted, query.start(BY_DELIVERY), limit)
        return Result(orders, BY_DELIVERY.encode(last) if last else "")
    newest_first = query.sort == "-id"
    form = NEWEST_FIRST if newest_first else BY_ID
    page = await list_orders(store, wanted, query.start(form), limit, newest_first=newest_first)
    total = await count_orders(store, wanted, MAX_COUNTED + 1) if query.count is True else None
    if query.placed_before is not UNSET:
        return page_result(page, form, total=total)
    shown = PageRange.of("order", page.ids, query.status, query.pet_id)
    return page_result(page, form, shown, total)


async def _place(context: Context, call: Call[OrderCreate, None]) -> Result[Order]:
    placed = await change(context, place_order(context.change, call.body))
    if placed.value.reserved_until is not UNSET:
        context.services.reservations.note(milliseconds(placed.value.reserved_until))
    return placed


_ORDER = {
    "id": 3,
    "petId": 7,
    "quantity": 1,
    "status": "placed",
    "complete": False,
    "placedAt": "2026-11-21T10:00:00Z",
    "shipDate": "2026-12-24T10:00:00Z",
    "reservedUntil": "2026-11-22T10:00:00Z",
    "buyer": "Jane Doe",
    "amount": 24900,
    "currency": "USD",
}
_APPROVED = {name: value for name, value in _ORDER.items() if name != "reservedUntil"} | {
    "status": "approved",
    "approvedAt": "2026-11-21T10:05:00Z",
}

_RESOURCE = Resource(
    *(Order, "/store/orders", "Store", "an order", "orders:read", "orders:write", _ORDER),
    shows_orders=True,
)

OPERATIONS = (
    _RESOURCE.list(
        _list,
        ListOrdersQuery,
        "Returns a page of orders, by ascending `id`. With `sort=-id` the newest come first."
        " With `buyer` and another filter, a page may be"
        " shorter than `limit`, or even empty, and still have a next page.",
    ),
    _RESOURCE.create(
        place_order,
        OrderCreate,
        "Reserves an `available` pet: it becomes `pending`. If several buyers order the same"
        " pet, only one succeeds. An order that is not approved by `reservedUntil` is cancelled,"
        " and the pet is available again. With `complete` the pet is sold at once: the order"
        " is `delivered`, and the pet becomes `sold`.",
        id="placeOrder",
        summary="Order a pet",
        handler=_place,
        body_example={"petId": 7, "buyer": "Jane Doe", "amount": 24900},
        errors=(UnknownPet, PetNotAvailable),
    ),
    _RESOURCE.get(reading(get_order), "Returns one order, even if it is closed."),
    _RESOURCE.update(
        update_order,
        OrderPatch,
        "`placed` can become `approved` or `cancelled`; `approved` can become `delivered` or"
        " `cancelled`; `delivered` can become `returned`. The pet of a delivered order becomes"
        " `sold`, and the pet of a cancelled or returned order becomes `available`. `shipDate`,"
        " `buyer`, `note` and `amount` can change at any time, and a null removes them. A"
        " `cancelReason` comes with the status `cancelled`; a `returnReason` and a `refund` come"
        " with `returned`, and can change afterwards. By default the refund is the whole amount.",
        example=_APPROVED,
        summary="Change, approve, deliver, return or cancel an order",
        body_example={"status": "approved"},
        errors=(IllegalTransition,),
    ),
    _RESOURCE.delete(
        cancel_order,
        "Cancels an order that is not delivered; its pet becomes `available`. The order can"
        " still be read. Cancelling it again has no effect.",
        id="cancelOrder",
        summary="Cancel an order",
        success=Success(204, "The order is cancelled."),
        errors=(IllegalTransition,),
    ),
)
