"""Orders: one pet, one buyer."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Annotated, Literal, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import replace

from petstore.domain.fields import NO_U0000, Id, Int64, Moment, merged, printable_text
from petstore.domain.rows import RowMapping
from petstore.errors import IllegalTransition, InvalidBody, OrderClosed
from petstore.pets.model import PetStatus

OrderStatus: TypeAlias = Literal["placed", "approved", "delivered", "cancelled"]

MAX_AMOUNT = 10**12
"""The highest price of a pet."""

_UNDO_TIME = timedelta(minutes=1)
"""How long after a sale over the counter the order can be cancelled."""

OrderedPetId = Annotated[Int64, Meta(description="Identifier of the pet.")]

Quantity = Annotated[
    int,
    Meta(
        ge=1,
        le=1,
        description="Always 1, because every pet is unique.",
        extra={"expected": "1, because every pet is unique"},
    ),
]

ShipDate = Annotated[Moment, Meta(description="When to ship it (RFC 3339).")]

Buyer = Annotated[
    str, printable_text(200, "Who buys the pet. 1 to 200 characters. No event has it.")
]

Note = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=1000,
        pattern=NO_U0000,
        description=(
            "What the staff should know. 1 to 1000 characters, line breaks included, without"
            " U+0000. No event has it."
        ),
        extra={"expected": "1 to 1000 characters"},
    ),
]

Amount = Annotated[
    int,
    Meta(
        ge=0,
        le=MAX_AMOUNT,
        description="The price, in the smallest unit of the currency, such as cents.",
        extra={"expected": "an integer from 0 to 10^12"},
        extra_json_schema={"format": "int64"},
    ),
]

Currency = Annotated[
    str,
    Meta(
        pattern="^[A-Z]{3}$",
        description="The currency of the amount (ISO 4217): that of the store when it was set.",
        extra_json_schema={"readOnly": True},
    ),
]

CancelReason = Annotated[
    str, printable_text(200, "Why it was cancelled. 1 to 200 characters. No event has it.")
]

StatusOfOrder = Annotated[
    OrderStatus,
    Meta(
        description="The status of the order.",
        extra={"expected": "one of 'placed', 'approved', 'delivered', 'cancelled'"},
    ),
]

OrderMoves: TypeAlias = Mapping[OrderStatus, tuple[OrderStatus, ...]]
"""The statuses that can follow each status."""

_MOVES: OrderMoves = {
    "placed": ("approved", "cancelled"),
    "approved": ("delivered", "cancelled"),
    "delivered": (),
    "cancelled": (),
}
_MOVES_OF_SALES: OrderMoves = {**_MOVES, "delivered": ("cancelled",)}

OPEN_STATUSES = tuple(status for status, following in _MOVES.items() if following)
"""The statuses of an order that reserves its pet."""

PET_AFTER: dict[OrderStatus, PetStatus] = {"delivered": "sold", "cancelled": "available"}
"""The status of a pet after its order ends."""

PERSONAL = {"buyer": "buyer", "note": "note", "cancel_reason": "cancelReason"}
"""What events do not have, by the names in JSON."""

# What can change until the order is closed, by the names in JSON.
_UNTIL_CLOSED = {"buyer": "buyer", "amount": "amount", "ship_date": "shipDate"}


class OrderCreate(Struct, frozen=True, rename="camel"):
    """An order to place, or with ``complete`` a sale over the counter."""

    pet_id: OrderedPetId
    quantity: Quantity = 1
    ship_date: ShipDate | UnsetType = UNSET
    buyer: Buyer | UnsetType = UNSET
    note: Note | UnsetType = UNSET
    amount: Amount | UnsetType = UNSET
    complete: Annotated[
        bool,
        Meta(
            description="`true` sells the pet at once: the order is delivered, the pet sold.",
            extra={"expected": "true or false"},
        ),
    ] = False


class OrderPatch(Struct, frozen=True, rename="camel"):
    """Changes to an order (RFC 7396); null removes ``shipDate``, ``buyer``, ``note``, ``amount``.

    A ``cancelReason`` comes with the status ``cancelled``.
    """

    status: StatusOfOrder | UnsetType = UNSET
    ship_date: ShipDate | UnsetType | None = UNSET
    quantity: Quantity | UnsetType = UNSET
    buyer: Buyer | UnsetType | None = UNSET
    note: Note | UnsetType | None = UNSET
    amount: Amount | UnsetType | None = UNSET
    cancel_reason: CancelReason | UnsetType = UNSET


def _time(description: str) -> Meta:
    return Meta(tz=True, description=description, extra_json_schema={"readOnly": True})


class Order(Struct, frozen=True, rename="camel"):
    """An order. A placed one has ``reservedUntil``, if its reservation can lapse."""

    id: Id
    pet_id: OrderedPetId
    quantity: Quantity
    status: StatusOfOrder
    complete: Annotated[bool, Meta(description="Whether the order is delivered.")]
    placed_at: Annotated[datetime, _time("When the order was placed.")]
    ship_date: ShipDate | UnsetType = UNSET
    reserved_until: (
        Annotated[datetime, _time("When the reservation lapses, unless the order is approved.")]
        | UnsetType
    ) = UNSET
    buyer: Buyer | UnsetType = UNSET
    note: Note | UnsetType = UNSET
    amount: Amount | UnsetType = UNSET
    currency: Currency | UnsetType = UNSET
    approved_at: Annotated[datetime, _time("When it was approved.")] | UnsetType = UNSET
    delivered_at: (
        Annotated[datetime, _time("When it was delivered: the time of the sale.")] | UnsetType
    ) = UNSET
    cancelled_at: (
        Annotated[datetime, _time("When it was cancelled, or its reservation lapsed.")] | UnsetType
    ) = UNSET
    cancel_reason: CancelReason | UnsetType = UNSET


ORDERS = RowMapping(
    Order,
    texts=["ship_date"],
    computed={"quantity": "1", "complete": "status = 'delivered'"},
)


class OrderFilter(Struct, frozen=True):
    """The filters of a list of orders. Unset fields do not filter."""

    status: OrderStatus | UnsetType = UNSET
    pet_id: int | UnsetType = UNSET
    placed_before: datetime | UnsetType = UNSET

    def admits(self, order: Order) -> bool:
        return (
            (self.status is UNSET or self.status == order.status)
            and (self.pet_id is UNSET or self.pet_id == order.pet_id)
            and (self.placed_before is UNSET or order.placed_at < self.placed_before)
        )


def as_of(order: Order, now: datetime) -> Order:
    if order.reserved_until is UNSET or now < order.reserved_until:
        return order
    return lapsed(order)


def lapsed(order: Order) -> Order:
    """Return a placed order as it is from the end of its reservation on."""
    until = order.reserved_until
    return replace(order, status="cancelled", reserved_until=UNSET, cancelled_at=until)


def check_patch(patch: OrderPatch) -> None:
    """Refuse a patch whose members do not fit together."""
    if patch.cancel_reason is not UNSET and patch.status != "cancelled":
        msg = "cancelReason: expected only together with the status 'cancelled'"
        raise InvalidBody(msg)


def patched(order: Order, patch: OrderPatch, now: datetime, currency: str) -> Order:
    if not _MOVES[order.status]:
        for name, member in _UNTIL_CLOSED.items():
            if getattr(patch, name) is not UNSET:
                msg = f"order {order.id} is {order.status}: its {member} can no longer change"
                raise OrderClosed(msg)
    changed = merged(order, patch, "ship_date", "buyer", "note", "amount")
    if patch.amount is not UNSET:
        changed = replace(changed, currency=UNSET if patch.amount is None else currency)
    if patch.status is UNSET:
        return changed
    moves = _MOVES_OF_SALES if can_be_undone(order, now) else _MOVES
    return replace(moved(changed, patch.status, now, moves), cancel_reason=patch.cancel_reason)


def moved(order: Order, wanted: OrderStatus, now: datetime, moves: OrderMoves = _MOVES) -> Order:
    following = moves[order.status]
    if wanted not in following:
        msg = f"status: {order.status} is final; it cannot become {wanted}"
        if following:
            msg = f"status: {order.status} can become {' or '.join(following)}, not {wanted}"
        raise IllegalTransition(msg)
    return replace(
        order,
        status=wanted,
        complete=wanted == "delivered",
        reserved_until=UNSET,
        approved_at=now if wanted == "approved" else order.approved_at,
        delivered_at=now if wanted == "delivered" else UNSET,
        cancelled_at=now if wanted == "cancelled" else UNSET,
    )


def is_over_the_counter(order: Order) -> bool:
    return order.delivered_at == order.placed_at and order.approved_at is UNSET


def can_be_undone(order: Order, now: datetime) -> bool:
    is_recent = order.delivered_at is not UNSET and now < order.delivered_at + _UNDO_TIME
    return is_recent and is_over_the_counter(order)


def without_personal_data(order: Order) -> Order:
    """Return ``order`` as events show it: without buyer, note and reason."""
    return replace(order, **dict.fromkeys(PERSONAL, UNSET))
