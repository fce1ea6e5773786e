"""The operations on orders, and what the store has."""

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from petstore.api.entity_tags import precondition
from petstore.api.idempotency import answer_once
from petstore.api.messages import created_response, empty_response, json_response
from petstore.api.operation import Call
from petstore.api.pages import PageQuery, answer_from_memory
from petstore.clock import milliseconds
from petstore.domain.fields import Int64
from petstore.domain.orders import Order, OrderFilter, StatusOfOrder
from petstore.http.messages import Response
from petstore.store.orders import (
    cancel_order,
    get_order,
    list_orders,
    place_order,
    update_order,
)
from petstore.store.pets import get_inventory


class ListOrdersQuery(PageQuery, frozen=True):
    """The query parameters of ``listOrders``."""

    status: Annotated[StatusOfOrder, Meta(description="Filters by status.")] | UnsetType = UNSET
    petId: (  # noqa: N815 - JSON names are in camel case
        Annotated[Int64, Meta(description="Filters by animal.")] | UnsetType
    ) = UNSET


async def answer_list_orders(call: Call) -> Response:
    """Respond with a page of orders."""
    query: ListOrdersQuery = call.query.values
    wanted = OrderFilter(
        status=None if query.status is UNSET else query.status,
        pet_id=None if query.petId is UNSET else query.petId,
    )
    return await answer_from_memory(
        call, lambda reader: list_orders(reader, wanted, query.after, query.limit)
    )


async def answer_place_order(call: Call) -> Response:
    """Respond with the order placed and where it is."""
    services = call.services

    def placed(order: Order) -> Response:
        if order.reservedUntil is not UNSET:
            services.reservations.note(milliseconds(order.reservedUntil))
        return created_response(order, f"{call.request.path}/{order.id}")

    unit = place_order(call.body, services.clock(), services.reservation_minutes)
    return await answer_once(call, unit, placed)


async def answer_get_order(call: Call) -> Response:
    """Respond with one order."""
    return json_response(200, await get_order(call.services.store, call.path_id))


async def answer_update_order(call: Call) -> Response:
    """Respond with the order as it is now."""
    unit = update_order(call.path_id, call.body, call.services.clock(), precondition(call.request))
    return json_response(200, await call.services.store.write(unit))


async def answer_cancel_order(call: Call) -> Response:
    """Cancel an order."""
    await call.services.store.write(
        cancel_order(call.path_id, call.services.clock(), precondition(call.request))
    )
    return empty_response()


async def answer_get_inventory(call: Call) -> Response:
    """Respond with the number of animals of each status."""
    return json_response(200, await get_inventory(call.services.store))
