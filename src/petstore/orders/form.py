"""The fields of orders in forms, and what pages tell of open orders and of sales."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import NamedTuple

from msgspec import UNSET, UnsetType

from petstore.clock import Milliseconds, milliseconds, utc
from petstore.console.forms import Field, FieldSet, isolated, optional
from petstore.console.history import History
from petstore.console.numbers import money_in_words, plain_amount, typed_amount
from petstore.console.page import PageRequest
from petstore.domain.time_zones import local_time, typed_moment
from petstore.interface.operation import Result
from petstore.orders.model import OPEN_STATUSES, Order, OrderStatus
from petstore.pets.model import Pet

DETAILS = ("buyer", "amount", "shipDate", "note")
"""The fields that every order has."""

_REASON = {"maxlength": 200}
_OPEN_PAGES_READ = 3  # of open orders: no shop has more than 300 of a kind


def order_form(request: PageRequest, order: Order | None = None) -> FieldSet:
    """Return what can be typed of an order: of a returned one its refund and reason, too."""
    zone = request.time_zone
    currency = order.currency if order and order.currency else request.services.currency

    def shown_date(order: Order) -> str:
        if order.ship_date is UNSET:
            return ""
        return local_time(order.ship_date, zone).replace(tzinfo=None).isoformat(timespec="minutes")

    fields = [
        Field("buyer", "Buyer", parse=optional, attributes={"maxlength": 200}),
        _price("amount", "Price", currency),
        Field("shipDate", "Ship date", shown_date, partial(typed_moment, zone=zone), "moment"),
        Field(
            *("note", "Note"),
            show=lambda order: order.note or "",
            parse=optional,
            control="text",
            hint="What the staff should know.",
        ),
    ]
    if order is not None and order.status == "returned":
        fields.append(_price("refund", "Refund", currency))
        fields.append(Field("returnReason", "Reason", attributes=_REASON))
    return FieldSet(*fields)


def ending_form(order: Order) -> FieldSet:
    return FieldSet(
        Field("cancelReason", "Reason", parse=optional),
        Field("returnReason", "Reason", parse=optional),
        _price("refund", "Refund", order.currency or ""),
    )


def _price(name: str, label: str, currency: str) -> Field:
    return Field(
        *(name, f"{label} in {currency}"),
        show=lambda order: _plain(getattr(order, name), order.currency),
        parse=partial(typed_amount, currency=currency, name=name),
        attributes={"inputmode": "decimal"},
    )


def sold_in_words(order: Order, pet: str) -> str:
    """Return a sale in words, such as ``Sold Hazel to Maria for $1,249.50 (order 157)``."""
    to = f" to {isolated(order.buyer)}" if order.buyer else ""
    price = ""
    if order.amount is not UNSET and order.currency is not UNSET:
        price = f" for {money_in_words(order.amount, order.currency)}"
    return f"Sold {isolated(pet)}{to}{price} (order {order.id})."


def _plain(amount: int | UnsetType, currency: str | UnsetType) -> str:
    return "" if amount is UNSET or currency is UNSET else plain_amount(amount, currency)


def exact(moment: datetime | UnsetType) -> str:
    return "" if moment is UNSET else moment.isoformat()


class Card(NamedTuple):
    """An order as pages show it, and its pet if it exists and the person may see it."""

    order: Order
    pet: Pet | None
    now: datetime
    days_late: int

    @property
    def pet_name(self) -> str:
        return f"pet {self.order.pet_id}" if self.pet is None else self.pet.name

    @property
    def is_available(self) -> bool:
        return self.pet is not None and self.pet.status == "available"

    @property
    def seen(self) -> Mapping[str, str]:
        """The hidden fields of a form that changes the order: which version the person saw."""
        return {"version": Result(self.order).version, "seen": self.order.status}


def days_late(order: Order, request: PageRequest) -> int:
    if order.ship_date is UNSET or order.status not in OPEN_STATUSES:
        return 0
    return max(0, (request.today - local_time(order.ship_date, request.time_zone).date()).days)


async def open_orders(
    request: PageRequest, status: OrderStatus, cursor: str = ""
) -> tuple[list[Order], str]:
    """Return open orders, the latest first, and the cursor of others if they are too many."""
    orders = list[Order]()
    for _ in range(_OPEN_PAGES_READ):
        query = {"status": status, "limit": 100, "cursor": cursor or None}
        found = await request.execute("listOrders", query=query)
        orders += found.value
        cursor = found.next
        if not cursor:
            break
    return sorted(orders, key=lambda order: -days_late(order, request)), cursor


def card_of(request: PageRequest, order: Order, pet: Pet | None) -> Card:
    return Card(order, pet, utc(request.services.clock()), days_late(order, request))


class Sale(NamedTuple):
    """What is known of a sale; ``who`` is empty if that is no longer kept."""

    order: Order | None
    who: str
    at: Milliseconds


async def latest_order(request: PageRequest, pet: Pet) -> Order | None:
    latest = {"petId": pet.id, "sort": "-id", "limit": 1}
    orders: Sequence[Order] = (await request.execute("listOrders", query=latest)).value
    return orders[0] if orders else None


async def sale_of(request: PageRequest, pet: Pet, history: History) -> Sale | None:
    """Return how a sold pet was sold, ``None`` if it is not sold or nothing is known."""
    if pet.status != "sold":
        return None
    line, order = history.change_of("status"), await latest_order(request, pet)
    # The pet may have been made available since, and marked as sold.
    if (
        order is None
        or order.status != "delivered"
        or not order.delivered_at
        or (line is not None and line.at > milliseconds(order.delivered_at))
    ):
        return None if line is None else Sale(None, line.who, line.at)
    return Sale(order, "" if line is None else line.who, milliseconds(order.delivered_at))
