"""``petstore orders``: the store orders of a running service."""

from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from petstore.cli.options import ID, MOMENT
from petstore.cli.output import SectionedGroup
from petstore.cli.resources import View, list_options, resource_options, utc

if TYPE_CHECKING:  # imported where it is used, so that `petstore --help` is instant
    from petstore_client import Client
    from petstore_client.models import Order

_STATUS = click.Choice(["placed", "approved", "delivered", "cancelled"])


def _line(order: "Order") -> str:
    line = f"Order {order.id}: pet {order.pet_id}, {order.status}"
    if order.reserved_until is not None:
        line += f", reserved until {utc(order.reserved_until)} UTC"
    if order.ship_date is not None:
        line += f", ships {utc(order.ship_date)} UTC"
    return line


_ORDERS: "View[Order]" = View(
    {
        "id": lambda order: order.id,
        "pet": lambda order: order.pet_id,
        "status": lambda order: order.status,
        "placed (UTC)": lambda order: order.placed_at,
        "reserved until (UTC)": lambda order: order.reserved_until,
        "ships (UTC)": lambda order: order.ship_date,
    },
    _line,
    ("placed (UTC)", "ships (UTC)", "reserved until (UTC)"),
)


@click.group(cls=SectionedGroup)
def orders() -> None:
    """Place, approve, deliver and cancel orders of a running service."""


@orders.command()
@click.argument("pet_id", metavar="PET_ID", type=ID)
@click.option("--ship-date", type=MOMENT, help="When to ship it, such as 2026-12-24T10:00:00Z.")
@resource_options
def place(*, pet_id: int, ship_date: datetime | None, client: "Client", as_json: bool) -> None:
    """Order an animal that is available. It is reserved at once."""
    placed = client.orders.place.raw(pet_id=pet_id, ship_date=ship_date)
    _ORDERS.show(placed, as_json=as_json)


@orders.command("list")
@click.option("--status", type=_STATUS, help="Only those of this status.")
@click.option("--pet", type=int, help="Only those of this animal, by its ID.")
@click.option("--newest", is_flag=True, help="The newest first.")
@list_options
def list_orders(
    *, status: str | None, pet: int | None, newest: bool, client: "Client", **options: Any
) -> None:
    """List orders."""
    pages = partial(client.orders.pages, status=status, pet_id=pet, sort="-id" if newest else None)
    _ORDERS.show_list(pages, **options)


@orders.command()
@click.argument("order_id", metavar="ORDER_ID", type=ID)
@resource_options
def show(*, order_id: int, client: "Client", as_json: bool) -> None:
    """Show one order."""
    _ORDERS.show(client.orders.get.raw(order_id), as_json=as_json)


def _move(name: str, status: str, explanation: str) -> None:
    """Add the command ``name``, which brings an order to ``status``."""

    @orders.command(name, help=explanation)
    @click.argument("order_id", metavar="ORDER_ID", type=ID)
    @resource_options
    def move(*, order_id: int, client: "Client", as_json: bool) -> None:
        _ORDERS.show(client.orders.update.raw(order_id, status=status), as_json=as_json)


_move("approve", "approved", "Approve an order that was placed. It no longer lapses.")
_move("deliver", "delivered", "Mark an approved order as delivered. The animal is sold.")
_move("cancel", "cancelled", "Cancel an order that is not delivered. The animal is available.")
