"""The fields of orders in forms: what a sale leaves, and when to ship it."""

from datetime import UTC, datetime
from functools import partial
from typing import get_args

from msgspec import UNSET, UnsetType

from petstore.console.fields import Field, FieldSet, choice, optional, utc_moment
from petstore.console.numbers import plain_amount, typed_amount
from petstore.orders.model import OPEN_STATUSES, Order, OrderStatus

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
    animal = Field(
        *("petId", "Animal"),
        show=lambda order: str(order.pet_id),
        hint="A number, or any word of the name.",
        attributes={"aria-required": "true"},
    )
    return FieldSet(animal, _BUYER, _price(currency), _SHIP_DATE, _NOTE)


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
    """Return the ship date as the field of a form has it: in UTC, to the minute."""
    moment = order.ship_date
    if moment is UNSET:
        return ""
    try:
        return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="minutes")
    except OverflowError:  # the first or the last day of the calendar
        return moment.isoformat()


def exact(moment: datetime | UnsetType) -> str:
    """Return a moment with all its digits and its zone, empty if there is none."""
    return "" if moment is UNSET else moment.isoformat()


_SHIP_DATE = Field("shipDate", "Ship date", shown_ship_date, utc_moment, "moment")
