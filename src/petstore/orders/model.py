"""Orders: one animal, one buyer."""

from datetime import datetime
from typing import Annotated, Literal, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import replace

from petstore.domain.fields import Id, Int64, Moment
from petstore.errors import IllegalTransition, OrderClosed
from petstore.pets.model import PetStatus

OrderStatus: TypeAlias = Literal["placed", "approved", "delivered", "cancelled"]

OrderedPetId = Annotated[Int64, Meta(description="Identifier of the animal.")]

Quantity = Annotated[
    int,
    Meta(
        ge=1,
        le=1,
        description="Always 1, because every animal is unique.",
        extra={"expected": "1, because every animal is unique"},
    ),
]

ShipDate = Annotated[Moment, Meta(description="When to ship it (RFC 3339).")]

StatusOfOrder = Annotated[
    OrderStatus,
    Meta(
        description="The status of the order.",
        extra={"expected": "one of 'placed', 'approved', 'delivered', 'cancelled'"},
    ),
]

_MOVES: dict[OrderStatus, tuple[OrderStatus, ...]] = {
    "placed": ("approved", "cancelled"),
    "approved": ("delivered", "cancelled"),
    "delivered": (),
    "cancelled": (),
}

OPEN_STATUSES = tuple(status for status, following in _MOVES.items() if following)
"""The statuses of an order that reserves its animal."""

PET_AFTER: dict[OrderStatus, PetStatus] = {"delivered": "sold", "cancelled": "available"}
"""The status of an animal after its order ends."""


class OrderCreate(Struct, frozen=True, rename="camel"):
    """An order to place."""

    pet_id: OrderedPetId
    quantity: Quantity = 1
    ship_date: ShipDate | UnsetType = UNSET


class OrderPatch(Struct, frozen=True, rename="camel"):
    """Changes to an order (RFC 7396); a ``shipDate`` of null removes it."""

    status: StatusOfOrder | UnsetType = UNSET
    ship_date: ShipDate | UnsetType | None = UNSET
    quantity: Quantity | UnsetType = UNSET


class Order(Struct, frozen=True, rename="camel"):
    """An order. A placed one has ``reservedUntil``, if its reservation can lapse."""

    id: Id
    pet_id: OrderedPetId
    quantity: Quantity
    status: StatusOfOrder
    complete: Annotated[bool, Meta(description="Whether the order is delivered.")]
    placed_at: Annotated[datetime, Meta(tz=True, description=("When the order was placed."))]
    ship_date: ShipDate | UnsetType = UNSET
    reserved_until: (
        Annotated[
            datetime,
            Meta(
                tz=True, description=("When the reservation lapses, unless the order is approved.")
            ),
        ]
        | UnsetType
    ) = UNSET


class OrderFilter(Struct, frozen=True):
    """The filters of a list of orders. Unset fields do not filter."""

    status: OrderStatus | UnsetType = UNSET
    pet_id: int | UnsetType = UNSET


def as_of(order: Order, now: datetime) -> Order:
    """Return ``order`` as it is at ``now``: cancelled if its reservation has lapsed."""
    if order.reserved_until is UNSET or now < order.reserved_until:
        return order
    return replace(order, status="cancelled", reserved_until=UNSET)


def patched(order: Order, patch: OrderPatch) -> Order:
    """Return ``order`` changed by ``patch``.

    Raises:
        IllegalTransition: the status cannot follow the current one.
        OrderClosed: the order is delivered or cancelled, so its date cannot change.
    """
    changed = order
    if patch.ship_date is not UNSET:
        if not _MOVES[order.status]:
            msg = f"order {order.id} is {order.status}: its shipDate can no longer change"
            raise OrderClosed(msg)
        changed = replace(changed, ship_date=UNSET if patch.ship_date is None else patch.ship_date)
    return changed if patch.status is UNSET else moved(changed, patch.status)


def moved(order: Order, wanted: OrderStatus) -> Order:
    """Return ``order`` in the status ``wanted``.

    Raises:
        IllegalTransition: it cannot follow the current one.
    """
    following = _MOVES[order.status]
    if wanted not in following:
        choices = " or ".join(following) or "nothing else"
        msg = f"status: {order.status} can become {choices}, not {wanted}"
        raise IllegalTransition(msg)
    return replace(order, status=wanted, complete=wanted == "delivered", reserved_until=UNSET)
