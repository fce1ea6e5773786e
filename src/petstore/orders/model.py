"""Orders: one pet, one buyer."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Annotated, Any, Literal, TypeAlias
from zoneinfo import ZoneInfo

from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import replace

from petstore.domain.decoding import RowMapping
from petstore.domain.fields import Id, Int64, Moment, any_text, merged, printable_text
from petstore.domain.time_zones import local_time
from petstore.errors import IllegalTransition, InvalidBody
from petstore.pets.model import PetStatus

OrderStatus: TypeAlias = Literal["placed", "approved", "delivered", "returned", "cancelled"]

MAX_AMOUNT = 10**12
"""The highest price of a pet."""

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
    any_text(
        *(1, 1000),
        "What the staff should know. 1 to 1000 characters, line breaks included, without U+0000."
        " No event has it.",
    ),
]


def _amount(description: str, expected: str) -> Meta:
    return Meta(
        ge=0,
        le=MAX_AMOUNT,
        description=description,
        extra={"expected": f"an integer from 0 to {expected}"},
    )


Amount = Annotated[
    int, _amount("The price, in the smallest unit of the currency, such as cents.", "10^12")
]

Currency = Annotated[
    str,
    Meta(
        pattern="^[A-Z]{3}$",
        description="The currency of the amount (ISO 4217): the store's when it was first set.",
        extra_json_schema={"readOnly": True},
    ),
]

CancelReason = Annotated[
    str, printable_text(200, "Why it was cancelled. 1 to 200 characters. No event has it.")
]

ReturnReason = Annotated[
    str, printable_text(200, "Why it was returned. 1 to 200 characters. No event has it.")
]

_REFUND = "What the buyer got back for a returned pet, up to `amount`. By default all of it."
Refund = Annotated[int, _amount(_REFUND, "the amount")]

StatusOfOrder = Annotated[OrderStatus, Meta(description="The status of the order.")]

_MOVES: Mapping[OrderStatus, tuple[OrderStatus, ...]] = {
    "placed": ("approved", "cancelled"),
    "approved": ("delivered", "cancelled"),
    "delivered": ("returned",),
    "returned": (),
    "cancelled": (),
}

PET_AFTER: Mapping[OrderStatus, PetStatus] = {
    "delivered": "sold",
    "returned": "available",
    "cancelled": "available",
}

OPEN_STATUSES = tuple(status for status in _MOVES if status not in PET_AFTER)
"""The statuses of an order that reserves its pet."""

PERSONAL = {
    "buyer": "buyer",
    "note": "note",
    "cancel_reason": "cancelReason",
    "return_reason": "returnReason",
}
"""What events do not have, by the names in JSON."""


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
        Meta(description="`true` sells the pet at once: the order is delivered, the pet sold."),
    ] = False


class OrderPatch(Struct, frozen=True, rename="camel"):
    """Changes to an order (RFC 7396); null removes ``shipDate``, ``buyer``, ``note``, ``amount``.

    A ``cancelReason`` comes with the status ``cancelled``, ``returnReason`` and ``refund`` with
    ``returned``.
    """

    status: StatusOfOrder | UnsetType = UNSET
    ship_date: ShipDate | UnsetType | None = UNSET
    quantity: Quantity | UnsetType = UNSET
    buyer: Buyer | UnsetType | None = UNSET
    note: Note | UnsetType | None = UNSET
    amount: Amount | UnsetType | None = UNSET
    cancel_reason: CancelReason | UnsetType = UNSET
    return_reason: ReturnReason | UnsetType = UNSET
    refund: Refund | UnsetType = UNSET


def _time(description: str) -> Meta:
    return Meta(tz=True, description=description, extra_json_schema={"readOnly": True})


class Order(Struct, frozen=True, rename="camel"):
    """An order. A placed one has ``reservedUntil``, if its reservation can lapse."""

    id: Id
    pet_id: OrderedPetId
    quantity: Quantity
    status: StatusOfOrder
    complete: Annotated[bool, Meta(description="Whether the order was delivered.")]
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
    returned_at: Annotated[datetime, _time("When the pet was returned.")] | UnsetType = UNSET
    return_reason: ReturnReason | UnsetType = UNSET
    refund: Refund | UnsetType = UNSET


ORDERS = RowMapping(
    Order, texts=["ship_date"], computed={"quantity": "1", "complete": "delivered_at IS NOT NULL"}
)


_TIMES = ("placedAt", "shipDate", "approvedAt", "deliveredAt", "returnedAt", "cancelledAt")
EXPORTED = (
    *("id", "status", "petId", "pet", "category", "buyer", "amount", "currency", "refund"),
    *("soldBy", *_TIMES),
    *("note", "cancelReason", "returnReason"),
)


def exported(
    order: Mapping[str, Any], zone: ZoneInfo, amount_text: Callable[[int, str], str], **names: str
) -> dict[str, Any]:
    """``names`` are what the order has by number: ``pet``, ``category`` and ``soldBy``."""
    row = {**order, **names}
    for name in ("amount", "refund"):
        if name in row:
            row[name] = amount_text(row[name], row["currency"])
    for name in _TIMES:
        if name in row:
            moment = local_time(datetime.fromisoformat(row[name]), zone)
            row[name] = f"{moment:%Y-%m-%d %H:%M:%S}"
    return row


class OrderFilter(Struct, frozen=True):
    status: OrderStatus | UnsetType = UNSET
    pet_id: int | UnsetType = UNSET
    placed_before: datetime | UnsetType = UNSET
    delivered_since: datetime | UnsetType = UNSET
    delivered_before: datetime | UnsetType = UNSET

    @property
    def is_by_delivery(self) -> bool:
        return (self.delivered_since, self.delivered_before) != (UNSET, UNSET)

    def admits(self, order: Order) -> bool:
        since, before, moment = self.delivered_since, self.delivered_before, order.delivered_at
        return (
            (self.status is UNSET or self.status == order.status)
            and (self.pet_id is UNSET or self.pet_id == order.pet_id)
            and (self.placed_before is UNSET or order.placed_at < self.placed_before)
            and (since is UNSET or (moment is not UNSET and since <= moment))
            and (before is UNSET or (moment is not UNSET and moment < before))
        )


def as_of(order: Order, now: datetime) -> Order:
    if order.reserved_until is UNSET or now < order.reserved_until:
        return order
    return lapsed(order)


def lapsed(order: Order) -> Order:
    until = order.reserved_until
    return replace(order, status="cancelled", reserved_until=UNSET, cancelled_at=until)


def check_patch(patch: OrderPatch) -> None:
    if patch.cancel_reason is not UNSET and patch.status != "cancelled":
        raise InvalidBody("cancelReason: expected only together with the status 'cancelled'")
    if patch.status not in (UNSET, "returned"):
        _require_no_return(patch)


def _require_no_return(patch: OrderPatch) -> None:
    for name, value in (("returnReason", patch.return_reason), ("refund", patch.refund)):
        if value is not UNSET:
            raise InvalidBody(f"{name}: expected only for an order that is returned")


def patched(order: Order, patch: OrderPatch, now: datetime, currency: str) -> Order:
    changed = merged(order, patch, "ship_date", "buyer", "note", "amount")
    if patch.amount is not UNSET:
        kept = order.currency or currency  # the store's may be another one by now
        changed = replace(changed, currency=UNSET if patch.amount is None else kept)
    if patch.status is not UNSET:
        changed = moved(changed, patch.status, now)
    if changed.status != "returned":
        _require_no_return(patch)
    changed = merged(changed, patch, "cancel_reason", "return_reason", "refund")
    amount, refund = changed.amount, changed.refund
    if refund is UNSET or (amount is not UNSET and refund <= amount):
        return changed
    if patch.refund is UNSET:
        msg = f"amount: expected at least the refund, {refund}"
    elif amount is UNSET:
        msg = "refund: expected none, because the order has no amount"
    else:
        msg = f"refund: expected at most the amount, {amount}"
    raise InvalidBody(msg)


def moved(order: Order, wanted: OrderStatus, now: datetime) -> Order:
    following = _MOVES[order.status]
    if wanted not in following:
        msg = f"status: {order.status} is final; it cannot become {wanted}"
        if following:
            msg = f"status: {order.status} can become {' or '.join(following)}, not {wanted}"
        raise IllegalTransition(msg)
    return replace(
        order,
        status=wanted,
        complete=wanted in ("delivered", "returned"),
        reserved_until=UNSET,
        refund=order.amount if wanted == "returned" else UNSET,
        **{f"{wanted}_at": now},
    )


def without_personal_data(order: Order) -> Order:
    return replace(order, **dict.fromkeys(PERSONAL, UNSET))
