"""``petstore orders``: the store orders of a running service."""

from collections.abc import Iterator
from contextlib import nullcontext
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from petstore.cli.client import client_of, service_option, wait_in_bar
from petstore.cli.options import (
    ID,
    MOMENT,
    NONE,
    TEXT,
    Command,
    Integer,
    OrWord,
    database_option,
    given,
    json_option,
)
from petstore.cli.output import (
    SectionedGroup,
    counted,
    plain_failures,
    print_json,
    progress,
    replacing_text,
    text_output,
)
from petstore.cli.resources import View, list_options, resource_options, utc
from petstore.clock import system_clock
from petstore.console.numbers import money_in_words
from petstore.domain.csv_files import csv_writer
from petstore.orders.model import MAX_AMOUNT
from petstore.orders.model import Order as StoredOrder

if TYPE_CHECKING:  # imported where it is used, so that `petstore --help` is instant
    from petstore_client import Client
    from petstore_client.models import Order, OrderStatus

_MAX_PAGE = 100
_COLUMNS = StoredOrder.__struct_encode_fields__
_AMOUNT = Integer(0, MAX_AMOUNT)
_STATUS = click.Choice(["placed", "approved", "delivered", "cancelled"])


def _line(order: "Order") -> str:
    line = f"Order {order.id}: pet {order.pet_id}, {order.status}"
    if order.reserved_until is not None:
        line += f", reserved until {utc(order.reserved_until)} UTC"
    if order.ship_date is not None:
        line += f", ships {utc(order.ship_date)} UTC"
    if order.buyer is not None:
        line += f", for {order.buyer}"
    if (price := _price(order)) is not None:
        line += f", {price}"
    return line


def _price(order: "Order") -> str | None:
    if order.amount is None:
        return None
    return money_in_words(order.amount, str(order.currency))


_ORDERS: "View[Order]" = View(
    {
        "id": lambda order: order.id,
        "pet": lambda order: order.pet_id,
        "status": lambda order: order.status,
        "placed (UTC)": lambda order: order.placed_at,
        "reserved until (UTC)": lambda order: order.reserved_until,
        "ships (UTC)": lambda order: order.ship_date,
        "buyer": lambda order: order.buyer,
        "amount": _price,
    },
    _line,
    ("buyer", "amount", "placed (UTC)", "ships (UTC)", "reserved until (UTC)"),
)


@click.group(cls=SectionedGroup)
def orders() -> None:
    """Place, approve, deliver and cancel orders of a running service."""


def _sale_options(command: Command) -> Command:
    """Give a command the options for what a sale leaves."""
    buyer = click.option("--buyer", type=TEXT, help="Who buys it.")
    note = click.option("--note", type=TEXT, help="What the staff should know.")
    amount = click.option(
        "--amount",
        type=_AMOUNT,
        help="The price in the smallest unit of the currency: 1250 is 12.50.",
    )
    return buyer(note(amount(command)))


@orders.command()
@click.argument("pet_id", metavar="PET_ID", type=ID)
@click.option("--ship-date", type=MOMENT, help="When to ship it, such as 2026-12-24T10:00:00Z.")
@_sale_options
@resource_options
def place(*, pet_id: int, client: "Client", as_json: bool, **options: Any) -> None:
    """Order an animal that is available. It is reserved at once."""
    _ORDERS.show(client.orders.place.raw(pet_id=pet_id, **options), as_json=as_json)


@orders.command()
@click.argument("pet_id", metavar="PET_ID", type=ID)
@_sale_options
@resource_options
def sell(*, pet_id: int, client: "Client", as_json: bool, **options: Any) -> None:
    """Sell an animal over the counter: the order is delivered at once."""
    sold = client.orders.place.raw(pet_id=pet_id, complete=True, **options)
    _ORDERS.show(sold, as_json=as_json)


@orders.command("list")
@click.option("--status", type=_STATUS, help="Only those of this status.")
@click.option("--pet", type=int, help="Only those of this animal, by its ID.")
@click.option(
    "--buyer",
    type=TEXT,
    metavar="PREFIX",
    help="Filters by how the buyer's name begins, in any case; sorts by buyer.",
)
@click.option("--placed-before", type=MOMENT, help="Only those placed before this moment.")
@click.option("--newest", is_flag=True, help="The newest first.")
@list_options
def list_orders(
    *,
    status: "OrderStatus | None",
    pet: int | None,
    buyer: str | None,
    placed_before: datetime | None,
    newest: bool,
    client: "Client",
    **options: Any,
) -> None:
    """List orders, by ID unless an option sorts them."""
    if newest and buyer is not None:
        msg = "--newest and --buyer cannot be used together"
        raise click.UsageError(msg)
    pages = partial(
        client.orders.list,
        status=status,
        pet_id=pet,
        buyer=buyer,
        placed_before=placed_before,
        sort="-id" if newest else None,
    )
    _ORDERS.show_list(pages, **options)


@orders.command()
@click.argument("order_id", metavar="ORDER_ID", type=ID)
@resource_options
def show(*, order_id: int, client: "Client", as_json: bool) -> None:
    """Show one order."""
    _ORDERS.show(client.orders.get.raw(order_id), as_json=as_json)


@orders.command()
@click.argument("order_id", metavar="ORDER_ID", type=ID)
@click.option("--ship-date", type=OrWord(MOMENT, "none"), help="When to ship it; or none.")
@click.option("--buyer", type=TEXT, help="Who buys it.")
@click.option("--no-buyer", is_flag=True, help="Remove the buyer.")
@click.option("--note", type=TEXT, help="What the staff should know.")
@click.option("--no-note", is_flag=True, help="Remove the note.")
@click.option(
    "--amount",
    type=OrWord(_AMOUNT, "none"),
    help="The price in the smallest unit of the currency; or none.",
)
@resource_options
def change(
    *, order_id: int, no_buyer: bool, no_note: bool, client: "Client", as_json: bool, **options: Any
) -> None:
    """Change an order. Fields without an option do not change."""
    for name, removes in (("buyer", no_buyer), ("note", no_note)):
        if removes and options[name] is not None:
            msg = f"--{name} and --no-{name} cannot be used together"
            raise click.UsageError(msg)
        if removes:
            options[name] = NONE
    _ORDERS.show(client.orders.update.raw(order_id, **given(options)), as_json=as_json)


def _move(name: str, status: "OrderStatus", explanation: str) -> None:
    """Add the command ``name``, which brings an order to ``status``."""

    @orders.command(name, help=explanation)
    @click.argument("order_id", metavar="ORDER_ID", type=ID)
    @resource_options
    def move(*, order_id: int, client: "Client", as_json: bool) -> None:
        _ORDERS.show(client.orders.update.raw(order_id, status=status), as_json=as_json)


_move("approve", "approved", "Approve an order that was placed. It no longer lapses.")
_move("deliver", "delivered", "Mark an approved order as delivered. The animal is sold.")


@orders.command()
@click.argument("order_id", metavar="ORDER_ID", type=ID)
@click.option("--reason", type=TEXT, help="Why it is cancelled.")
@resource_options
def cancel(*, order_id: int, reason: str | None, client: "Client", as_json: bool) -> None:
    """Cancel an order that is not delivered. The animal is available.

    A sale over the counter can be cancelled within a minute.
    """
    changes: dict[str, Any] = {} if reason is None else {"cancel_reason": reason}
    cancelled = client.orders.update.raw(order_id, status="cancelled", **changes)
    _ORDERS.show(cancelled, as_json=as_json)


@orders.command()
@click.argument("file", type=click.Path(dir_okay=False, writable=True, path_type=Path), default="-")
@click.option("--status", type=_STATUS, help="Only those of this status.")
@click.option("--placed-before", type=MOMENT, help="Only those placed before this moment.")
@service_option
def export(*, file: Path, service: str, **filters: Any) -> None:
    """Write orders to FILE, or to standard output, as CSV that is safe in a spreadsheet."""
    to_stdout = str(file) == "-"
    outcome = "the output is incomplete" if to_stdout else f"{file} is unchanged"
    with (
        plain_failures(lambda: outcome),
        nullcontext(text_output()) if to_stdout else replacing_text(file) as out,
        progress("Exporting") as on_progress,
        client_of(service, wait_in_bar(on_progress), lambda: outcome) as client,
    ):
        write, count = csv_writer(out, _COLUMNS, spreadsheet_safe=True), 0
        for rows in _pages(client, filters):
            for row in rows:
                write(row)
            count += len(rows)
            on_progress(count)
    click.echo(f"{counted(count, 'order')} exported.", err=True)


def _pages(client: "Client", filters: dict[str, Any]) -> Iterator[list[dict[str, Any]]]:
    """Yield the orders of a service as CSV has them, a page at a time."""
    for page in client.orders.list(limit=_MAX_PAGE, **filters).pages():
        yield [
            row | {"complete": "true" if row["complete"] else "false"}
            for row in page.response.json()
        ]


@orders.command()
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


orders.add_section(
    "One by one",
    *(orders.commands[name] for name in ("list", "place", "sell", "show", "change")),
    *(orders.commands[name] for name in ("approve", "deliver", "cancel")),
)
orders.add_section("All together", export, forget)
