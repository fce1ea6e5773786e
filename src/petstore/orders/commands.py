"""``petstore orders``: the store orders of a running service."""

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import click

from petstore.cli.client import export_csv, file_argument, service_option
from petstore.cli.operations import MAX_PAGE, OperationCommand
from petstore.cli.options import MOMENT, TEXT, database_option, json_option
from petstore.cli.output import SectionedGroup, plain_failures, print_json, print_resource
from petstore.clock import system_clock
from petstore.console.numbers import plain_amount
from petstore.orders.model import EXPORTED, exported

if TYPE_CHECKING:  # imported where it is used, so that `petstore --help` is instant
    from petstore_client import Client

_STATUS = click.Choice(["placed", "approved", "delivered", "returned", "cancelled"])


_DETAILS = ("buyer", "note", "amount")
_place = partial(
    OperationCommand, operation_id="placeOrder", method="orders.place", arguments=["pet_id"]
)
_update = partial(OperationCommand, operation_id="updateOrder", method="orders.update")


@click.command()
@file_argument
@click.option("--status", type=_STATUS, help="Filter by status.")
@click.option("--placed-before", type=MOMENT, help="Only orders placed before this time.")
@click.option("--delivered-since", type=MOMENT, help="Only orders delivered since this time.")
@click.option("--delivered-before", type=MOMENT, help="Only orders delivered before this time.")
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

    BUYER is the whole name; its case does not matter. It prints how many orders it changed, and how
    many are open: these keep their buyer until they are delivered or cancelled. This command works
    on the database itself.
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
    document = {"changed": forgotten.closed, "open": forgotten.open}
    print_json(document) if as_json else print_resource(document)


orders = SectionedGroup(
    "orders", help="Place, approve, deliver, return and cancel orders of a running service."
)
orders.add_commands(
    OperationCommand(
        "list",
        "listOrders",
        "orders.list",
        columns=[
            *("id", "petId", "status", "reservedUntil", "shipDate", "placedAt", "amount"),
            "buyer",
        ],
    ),
    _place(
        "place",
        only=["ship_date", *_DETAILS],
        help="Order a pet that is available. It is reserved at once.",
    ),
    _place(
        "sell",
        fixed={"complete": True},
        only=_DETAILS,
        help="Sell a pet over the counter: the order is delivered at once.",
    ),
    OperationCommand("show", "getOrder", "orders.get"),
    _update("change", only=["ship_date", *_DETAILS], help="Change an order."),
    _update(
        "approve",
        fixed={"status": "approved"},
        help="Approve an order that was placed. It no longer lapses.",
    ),
    _update(
        "deliver",
        fixed={"status": "delivered"},
        help="Mark an approved order as delivered. The pet is sold.",
    ),
    _update(
        "cancel",
        fixed={"status": "cancelled"},
        only=["cancel_reason"],
        help="Cancel an order that is not delivered. The pet is available.",
    ),
    _update(
        "return",
        fixed={"status": "returned"},
        only=["return_reason", "refund"],
        help="Take the pet of a delivered order back. It is available.",
    ),
    title="One by one",
)
orders.add_commands(export, forget, title="All together")
