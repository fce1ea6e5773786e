"""The fields of orders in forms: what a sale leaves, and when to ship it."""

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import NamedTuple, get_args

from msgspec import UNSET, UnsetType

from petstore.clock import Milliseconds, milliseconds, utc
from petstore.console.forms import Field, FieldSet, choice, optional, utc_moment
from petstore.console.history import History
from petstore.console.numbers import plain_amount, typed_amount
from petstore.console.page import PageRequest
from petstore.orders.model import OPEN_STATUSES, Order, OrderStatus, can_be_undone
from petstore.pets.model import Pet

_STATUSES = tuple((status, status) for status in get_args(OrderStatus))
STATUS_FILTER = choice("status", "Status", ("", "any"), *_STATUSES, parse=optional)
_BUYER = Field("buyer", "Buyer", parse=optional, attributes={"maxlength": 200})
_NOTE = Field(
    *("note", "Note"),
    show=lambda order: order.note or "",
    parse=optional,
    control="text",
    hint="What the staff should know.",
)


def sale_form(currency: str) -> FieldSet:
    return FieldSet(_BUYER, _price(currency))


def new_order_form(currency: str) -> FieldSet:
    pet = Field(
        *("petId", "Pet"),
        show=lambda order: str(order.pet_id),
        hint="A number, or any word of the name.",
        attributes={"aria-required": "true"},
    )
    return FieldSet(pet, _BUYER, _price(currency), _SHIP_DATE, _NOTE)


def order_form(order: Order, currency: str) -> FieldSet:
    """Return the form that changes an order: a closed one keeps all but its note."""
    if order.status in OPEN_STATUSES:
        return FieldSet(_BUYER, _price(currency), _SHIP_DATE, _NOTE)
    return FieldSet(_NOTE)


def _price(currency: str) -> Field:
    return Field(
        *("amount", f"Price in {currency}"),
        show=_shown_price,
        parse=partial(typed_amount, currency=currency),
        attributes={"inputmode": "decimal"},
    )


def _shown_price(order: Order) -> str:
    if order.amount is UNSET or order.currency is UNSET:
        return ""
    return plain_amount(order.amount, order.currency)


def shown_ship_date(order: Order) -> str:
    moment = order.ship_date
    if moment is UNSET:
        return ""
    try:
        return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="minutes")
    except OverflowError:  # the first or the last day of the calendar
        return moment.isoformat()


def exact(moment: datetime | UnsetType) -> str:
    return "" if moment is UNSET else moment.isoformat()


_SHIP_DATE = Field("shipDate", "Ship date", shown_ship_date, utc_moment, "moment")


class Sale(NamedTuple):
    """What is known of a sale: perhaps its ``order``, and who sold the pet.

    ``who`` is empty if that is no longer kept. ``can_be_undone`` is whether the order can still be
    cancelled.
    """

    order: Order | None
    who: str
    at: Milliseconds
    can_be_undone: bool


async def latest_order(visit: PageRequest, pet: Pet) -> Order | None:
    """Return the newest order of a pet. No other one can be open."""
    latest = {"petId": pet.id, "sort": "-id", "limit": 1}
    orders: Sequence[Order] = (await visit.execute("listOrders", query=latest)).value
    return orders[0] if orders else None


async def sale_of(visit: PageRequest, pet: Pet, history: History) -> Sale | None:
    """Return how a sold pet was sold, ``None`` if it is not sold or nothing is known."""
    if pet.status != "sold":
        return None
    line, order = history.change_of("status"), await latest_order(visit, pet)
    # Somebody may have taken the pet back since, and marked it as sold.
    if (
        order is None
        or not order.delivered_at
        or (line is not None and line.at > milliseconds(order.delivered_at))
    ):
        return None if line is None else Sale(None, line.who, line.at, can_be_undone=False)
    at = milliseconds(order.delivered_at)
    who = "" if line is None else line.who
    return Sale(order, who, at, can_be_undone(order, utc(visit.services.clock())))
