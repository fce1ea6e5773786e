"""``petstore orders``: the store orders of a running service."""

from typing import Any, NotRequired, TypedDict

import click

from petstore.cli.options import ID
from petstore.cli.resources import Resources, list_options, resource_options, utc

_STATUS = click.Choice(["placed", "approved", "delivered", "cancelled"])


class Order(TypedDict):
    """An order as the service returns it."""

    id: int
    petId: int
    status: str
    placedAt: str
    reservedUntil: NotRequired[str]
    shipDate: NotRequired[str]


def _line(order: Order) -> str:
    line = f"Order {order['id']}: pet {order['petId']}, {order['status']}"
    if "reservedUntil" in order:
        line += f", reserved until {utc(order['reservedUntil'])} UTC"
    if "shipDate" in order:
        line += f", ships {utc(order['shipDate'])} UTC"
    return line


_COLUMNS = {
    "id": "id",
    "pet": "petId",
    "status": "status",
    "placed (UTC)": "placedAt",
    "reserved until (UTC)": "reservedUntil",
    "ships (UTC)": "shipDate",
}
_DISPENSABLE = ("placed (UTC)", "ships (UTC)", "reserved until (UTC)")
_ORDERS = Resources("/store/orders", Order, _COLUMNS, _line, _DISPENSABLE)


@click.group()
def orders() -> None:
    """Place, approve, deliver and cancel orders of a running service."""


@orders.command()
@click.argument("pet_id", metavar="PET_ID", type=ID)
@click.option("--ship-date", metavar="TIME", help="When to ship it, such as 2026-12-24T10:00:00Z.")
@resource_options
def place(*, pet_id: int, ship_date: str | None, **options: Any) -> None:
    """Order an animal that is available. It is reserved at once."""
    _ORDERS.create({"petId": pet_id, "shipDate": ship_date}, **options)


@orders.command("list")
@click.option("--status", type=_STATUS, help="Only those of this status.")
@click.option("--pet", type=int, help="Only those of this animal, by its ID.")
@list_options
def list_orders(*, status: str | None, pet: int | None, **options: Any) -> None:
    """List orders."""
    _ORDERS.show_list([("status", status), ("petId", pet)], **options)


@orders.command()
@click.argument("order_id", metavar="ORDER_ID", type=ID)
@resource_options
def show(*, order_id: int, **options: Any) -> None:
    """Show one order."""
    _ORDERS.get(order_id, **options)


def _move(name: str, status: str, explanation: str) -> None:
    """Add the command ``name``, which brings an order to ``status``."""

    @orders.command(name, help=explanation)
    @click.argument("order_id", metavar="ORDER_ID", type=ID)
    @resource_options
    def move(*, order_id: int, **options: Any) -> None:
        _ORDERS.change(order_id, {"status": status}, **options)


_move("approve", "approved", "Approve an order that was placed. It no longer lapses.")
_move("deliver", "delivered", "Say that an approved order is delivered. The animal is sold.")
_move("cancel", "cancelled", "Cancel an order that is not delivered. The animal is available.")
