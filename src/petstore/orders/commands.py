"""``petstore orders``: the store orders of a running service."""

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import click

from petstore.cli.client import service_option
from petstore.cli.operation_commands import OperationCommand
from petstore.cli.options import MOMENT, TEXT, database_option, json_option
from petstore.cli.output import SectionedGroup, counted, plain_failures, print_json
from petstore.cli.resources import MAX_PAGE, View, export_csv, file_argument
from petstore.clock import system_clock
from petstore.console.numbers import money_in_words, plain_amount
from petstore.orders.model import EXPORTED, exported

if TYPE_CHECKING:  # imported where it is used, so that `petstore --help` is instant
    from petstore_client import Client
    from petstore_client.models import Order

_STATUS = click.Choice(["placed", "approved", "delivered", "returned", "cancelled"])


def _price(order: "Order") -> str | None:
    if order.amount is None:
        return None
    return money_in_words(order.amount, str(order.currency))


_ORDERS: "View[Order]" = View(
    {
        "id": "id",
        "pet": "pet_id",
        "status": "status",
        "placed (UTC)": "placed_at",
        "reserved until (UTC)": "reserved_until",
        "ships (UTC)": "ship_date",
        "buyer": "buyer",
        "amount": _price,
    },
    ("buyer", "amount", "placed (UTC)", "ships (UTC)", "reserved until (UTC)"),
    ("id", "placed (UTC)"),
)
_place = partial(
    OperationCommand,
    operation_id="placeOrder",
    method="orders.place",
    view=_ORDERS,
    arguments=["pet_id"],
)
_update = partial(
    OperationCommand,
    operation_id="updateOrder",
    method="orders.update",
    view=_ORDERS,
)


@click.command()
@file_argument
@click.option("--status", type=_STATUS, help="Filter by status.")
@click.option("--placed-before", type=MOMENT, help="Only those placed before this moment.")
@click.option("--delivered-since", type=MOMENT, help="Only those delivered since this moment.")
@click.option("--delivered-before", type=MOMENT, help="Only those delivered before this moment.")
@service_option
def export(*, file: Path, service: str, **filters: Any) -> None:
    """Write orders to FILE, or to standard output, as CSV that is safe in a spreadsheet.

    Times are in the time zone of the shop.
    """
    export_csv(file, service, "order", EXPORTED, partial(_pages, filters), spreadsheet_safe=True)


def _pages(filters: dict[str, Any], client: "Client") -> Iterator[list[dict[str, Any]]]:
    zone = ZoneInfo(client.sales.get().time_zone)
    categories = {each.id: each.name for each in client.categories.list(limit=MAX_PAGE)}
    sellers = _sellers(client)
    for page in client.orders.list(limit=MAX_PAGE, **filters).pages():
        rows: list[dict[str, Any]] = page.response.json()
        ids = {row["petId"] for row in rows}
        pets = {each.id: each for each in client.pets.list(id=ids)} if ids else {}
        yield [
            exported(
                *(row, zone, plain_amount),
                soldBy=sellers.get(row["id"], ""),
                pet=pet.name if (pet := pets.get(row["petId"])) else "",
                category=categories.get(pet.category_id, "") if pet else "",
            )
            for row in rows
        ]


def _sellers(client: "Client") -> dict[int, str]:
    """Return who delivered which orders: by name only if the key may see who there is."""
    # Imported where it is used, so that `petstore --help` is instant.
    from petstore_client.errors import Forbidden

    names = dict[str, str]()
    with suppress(Forbidden):
        names = {f"person {each.id}": each.name for each in client.people.list(limit=MAX_PAGE)}
        names |= {f"key {each.id}": each.name for each in client.keys.list(limit=MAX_PAGE)}
    sellers = dict[int, str]()
    for event in client.events.list(types=["order.delivered"], limit=MAX_PAGE):
        actor = event.actor
        shown = f"{actor.type} {actor.id}" if actor and actor.id else "service"
        sellers[int(event.resource.partition("/")[2])] = names.get(shown, shown)
    return sellers


@click.command()
@click.argument("buyer", type=TEXT)
@json_option
@database_option
def forget(*, buyer: str, as_json: bool, database: str) -> None:
    """Remove BUYER, with notes and reasons, from all closed orders.

    BUYER is the whole name; its case does not matter. Orders that are open keep their buyer: cancel
    or deliver them first. This command works on the database itself.
    """
    # Imported where it is used, so that `petstore --help` is instant.
    from petstore.backends import in_store, require_store
    from petstore.events.model import SERVICE
    from petstore.orders.buyers import forget_buyer

    with plain_failures():
        require_store(database)
        forgotten = in_store(
            database, lambda store: forget_buyer(store, buyer, system_clock, SERVICE)
        )
    if as_json:
        print_json({"changed": forgotten.closed, "open": forgotten.open})
        return
    click.echo(f"{counted(forgotten.closed, 'order')} changed.")
    if forgotten.open:
        has = "has" if forgotten.open == 1 else "have"
        click.echo(f"{counted(forgotten.open, 'open order')} still {has} this buyer.", err=True)


orders = SectionedGroup(
    "orders", help="Place, approve, deliver, return and cancel orders of a running service."
)
orders.add_commands(
    OperationCommand("list", "listOrders", "orders.list", _ORDERS),
    _place(
        "place",
        left_out=["quantity", "complete"],
        help="Order a pet that is available. It is reserved at once.",
    ),
    _place(
        "sell",
        fixed={"complete": True},
        left_out=["quantity", "ship_date"],
        help="Sell a pet over the counter: the order is delivered at once.",
    ),
    OperationCommand("show", "getOrder", "orders.get", _ORDERS),
    _update(
        "change",
        left_out=["status", "quantity", "cancel_reason", "return_reason", "refund"],
        help="Change an order. Fields without an option do not change.",
    ),
    _update(
        "approve",
        fixed={"status": "approved"},
        only=[],
        help="Approve an order that was placed. It no longer lapses.",
    ),
    _update(
        "deliver",
        fixed={"status": "delivered"},
        only=[],
        help="Mark an approved order as delivered. The pet is sold.",
    ),
    _update(
        "cancel",
        fixed={"status": "cancelled"},
        only=["cancel_reason"],
        words={"cancel_reason": "reason"},
        help="Cancel an order that is not delivered. The pet is available.",
    ),
    _update(
        "return",
        fixed={"status": "returned"},
        only=["return_reason", "refund"],
        words={"return_reason": "reason"},
        help="Take the pet of a delivered order back. It is available.",
    ),
    title="One by one",
)
orders.add_commands(export, forget, title="All together")
