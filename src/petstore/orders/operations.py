"""The operations on orders, and the inventory."""

from functools import partial
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from petstore.clock import milliseconds
from petstore.databases.contract import Reader, Statement
from petstore.databases.pages import SHORT, Matches, in_short, unplanned
from petstore.domain.cursors import BY_ID, BY_NAME, MAX_COUNTED, NEWEST_FIRST
from petstore.domain.fields import Int64, Moment
from petstore.domain.names import end_of_prefix, plain_key
from petstore.domain.words import MatchPosition, position_at_start
from petstore.errors import IllegalTransition, OrderClosed, PetNotAvailable, UnknownPet
from petstore.events.changes import Extent
from petstore.interface.idempotency import change
from petstore.interface.operation import Call, Context, Operation, Result, Success
from petstore.interface.pages import (
    Count,
    PageQuery,
    Sort,
    cursor_of,
    page_result,
    require_plain_search,
    search_text,
)
from petstore.orders.model import Order, OrderCreate, OrderFilter, OrderPatch, StatusOfOrder
from petstore.orders.store import (
    COLUMNS,
    cancel_order,
    count_orders,
    get_order,
    list_orders,
    order_of,
    place_order,
    update_order,
)
from petstore.pets.model import Inventory
from petstore.pets.store import get_inventory, get_inventory_by_category


class ListOrdersQuery(PageQuery, frozen=True, rename="camel"):
    """The query parameters of ``listOrders``."""

    cursor: Annotated[str, cursor_of(BY_ID, NEWEST_FIRST, BY_NAME)] | UnsetType = UNSET
    status: Annotated[StatusOfOrder, Meta(description="Filters by status.")] | UnsetType = UNSET
    pet_id: Annotated[Int64, Meta(description="Filters by animal.")] | UnsetType = UNSET
    buyer: (
        Annotated[
            str,
            search_text(
                "Only orders whose buyer begins with this text, ignoring case and marks on letters,"
                " sorted by buyer and then `id`."
            ),
        ]
        | UnsetType
    ) = UNSET
    placed_before: (
        Annotated[Moment, Meta(description="Only orders placed before this moment (RFC 3339).")]
        | UnsetType
    ) = UNSET
    sort: Sort | UnsetType = UNSET
    count: Count | UnsetType = UNSET


class GetInventoryQuery(Struct, frozen=True):
    """The query parameters of ``getInventory``."""

    by: (
        Annotated[
            Literal["category"],
            Meta(
                description="`category` adds the counts of each category.",
                extra={"expected": "'category'"},
            ),
        ]
        | UnsetType
    ) = UNSET


async def _list(context: Context, call: Call[None, ListOrdersQuery]) -> Result[list[Order]]:
    query = call.query
    wanted, limit = OrderFilter(query.status, query.pet_id, query.placed_before), query.limit
    if query.buyer is not UNSET:
        return await _search(context, query, query.buyer, wanted)
    newest_first = query.sort == "-id"
    form = NEWEST_FIRST if newest_first else BY_ID
    start, store = query.start(form), context.services.store
    page = await list_orders(store, wanted, start, limit, newest_first=newest_first)
    total = await count_orders(store, wanted, MAX_COUNTED + 1) if query.count is True else None
    if query.placed_before is not UNSET:
        return page_result(page, form, total=total)
    shown = Extent.of("order", page.ids, query.status, query.pet_id)
    return page_result(page, form, shown, total)


async def _search(
    context: Context, query: ListOrdersQuery, prefix: str, wanted: OrderFilter
) -> Result[list[Order]]:
    require_plain_search(query, "buyer")
    after = query.start(BY_NAME)
    page = await search_orders(context.services.store, prefix, wanted, after, query.limit)
    return page_result(page, BY_NAME)


async def _place(context: Context, call: Call[OrderCreate, None]) -> Result[Order]:
    services = context.services
    minutes, currency = services.reservation_minutes, services.currency
    unit = place_order(call.body, services.clock(), minutes, currency, by=context.author)
    placed = await change(context, unit)
    if placed.value.reserved_until is not UNSET:
        services.reservations.note(milliseconds(placed.value.reserved_until))
    return placed


async def _get(context: Context, call: Call[None, None]) -> Result[Order]:
    return Result(await get_order(context.services.store, call.path_id))


async def _update(context: Context, call: Call[OrderPatch, None]) -> Result[Order]:
    services, check = context.services, context.conditions.check
    now, currency = services.clock(), services.currency
    unit = update_order(call.path_id, call.body, now, check, currency, by=context.author)
    return await change(context, unit)


async def _cancel(context: Context, call: Call[None, None]) -> Result[None]:
    now, check = context.services.clock(), context.conditions.check
    return await change(context, cancel_order(call.path_id, now, check, by=context.author))


async def _get_inventory(
    context: Context, call: Call[None, GetInventoryQuery]
) -> Result[Inventory]:
    get = get_inventory if call.query.by is UNSET else get_inventory_by_category
    return Result(await get(context.services.store))


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

_operation = partial(Operation, tag="Store", shows_orders=True)

OPERATIONS = (
    _operation(
        id="listOrders",
        method="GET",
        path="/store/orders",
        summary="List orders",
        description=(
            "Returns a page of orders, by ascending `id`. With `sort=-id` the newest come first;"
            " with `buyer` the orders are sorted by buyer. With `buyer` and another filter, a page"
            " may be shorter than `limit`, or even empty, and still have a next page."
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
            " is cancelled, and the animal is available again. With `complete` the animal is sold"
            " at once: the order is `delivered`, and the animal becomes `sold`."
        ),
        handler=_place,
        scope="orders:write",
        body=OrderCreate,
        body_example={"petId": 7, "buyer": "Jane Doe", "amount": 24900},
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
        summary="Approve, deliver or cancel an order, or change it otherwise",
        description=(
            "Changes the members in the body (RFC 7396). `placed` can become `approved` or"
            " `cancelled`; `approved` can become `delivered` or `cancelled`. The animal of a"
            " delivered order becomes `sold`, and the animal of a cancelled order becomes"
            " `available`. An order that was sold over the counter (`complete`) can be cancelled"
            " within a minute of `deliveredAt`. A null removes `shipDate`, `buyer`, `note` or"
            " `amount`. `note` can change at any time, the others while the order is placed or"
            " approved. A `cancelReason` comes with the status `cancelled`."
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
        description=(
            "Returns the number of animals of each status. With `by=category` it also returns the"
            " counts of each category, up to 1,000 of them."
        ),
        handler=_get_inventory,
        scope="orders:read",
        query=GetInventoryQuery,
        tagged=False,
        success=Success(
            200, "The counts.", Inventory, {"available": 112, "pending": 3, "sold": 40}
        ),
    ),
)


MAX_SCANNED = 2_000
"""The most orders that one page of a search looks at."""

# As for the names of animals (petstore.pets.search).
_AFTER = (
    "/*sqlite*/ (buyer_key, id) > (?2, ?3 COLLATE BINARY) /*end*/"
    f" /*pg (buyer_key, id) > ({unplanned(2, str)}, ?3) */"
)
_BEFORE_END = f" AND buyer_key < /*sqlite*/ ?4 /*end*/ /*pg {unplanned(4, str)} */"
_CHUNK = 200


async def search_orders(
    store: Reader, prefix: str, wanted: OrderFilter, after: MatchPosition | None, limit: int
) -> Matches[Order]:
    """Return the first ``limit`` orders behind ``after`` whose buyers' names begin with ``prefix``.

    Case and marks on letters do not matter. With filters, one page looks at ``MAX_SCANNED`` orders
    at most. So it may have fewer than ``limit``, even none, while there is a next one.
    """
    # One more than the page holds shows whether there is a next one.
    size = limit + 1 if wanted == OrderFilter() else _CHUNK
    found: list[Order] = []
    scanned = 0
    while True:
        rows = await store.read(_select_by_buyer(prefix, after, size))
        for *row, key in rows:
            order = order_of(tuple(row))
            if wanted.admits(order):
                if len(found) == limit:
                    return Matches(found, after)
                found.append(order)
            after = position_at_start(key, order.id)
        scanned += len(rows)
        if len(rows) < size:
            return Matches(found, None)
        if scanned >= MAX_SCANNED:
            return Matches(found, after)


def _select_by_buyer(prefix: str, after: MatchPosition | None, limit: int) -> Statement:
    """Return the SELECT of orders by buyer, ``after`` a position: each row ends with its key."""
    first = plain_key(prefix)
    key, order_id = (first, 0) if after is None else max((first, 0), (after.name, after.id))
    end = end_of_prefix(first)
    conditions = f"buyer_key IS NOT NULL AND {_AFTER}{_BEFORE_END if end else ''}"
    sql = f"SELECT {COLUMNS}, buyer_key FROM orders WHERE {conditions} ORDER BY buyer_key, id"  # noqa: S608
    return Statement(
        f"{in_short(sql) if limit <= SHORT + 1 else sql} LIMIT ?1",
        (limit, key, order_id, end) if end else (limit, key, order_id),
        name="search_orders",
    )
