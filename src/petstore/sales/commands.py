"""``petstore sales``: the sales of a running service in numbers."""

from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from petstore.cli.options import TEXT
from petstore.cli.output import print_json, print_table, text_output
from petstore.cli.resources import resource_options
from petstore.console.numbers import money_in_words
from petstore.domain.csv_files import csv_writer

if TYPE_CHECKING:  # imported where it is used, so that `petstore --help` is instant
    from petstore_client import Client
    from petstore_client.models import SalesBy

_KEYS = {"day": "day", "category": "categoryId"}
_DAY = click.DateTime(["%Y-%m-%d"])


@click.command()
@click.option("--from", "first", type=_DAY, help="The first day. [default: six days before --to]")
@click.option("--to", "last", type=_DAY, help="The last day. [default: today]")
@click.option(
    "--time-zone", type=TEXT, metavar="NAME", help="That of the days, such as Europe/Berlin."
)
@click.option("--by", type=click.Choice([*_KEYS]), default="day", help="What the rows are.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
@resource_options
def sales(
    *,
    first: datetime | None,
    last: datetime | None,
    time_zone: str | None,
    by: "SalesBy",
    as_csv: bool,
    client: "Client",
    as_json: bool,
) -> None:
    """Count the orders that were delivered, and add up their amounts, by day or by category."""
    if as_csv and as_json:
        msg = "--csv and --json: expected only one of them"
        raise click.UsageError(msg)
    found = client.sales.get.raw(
        from_=first and first.date(), to=last and last.date(), time_zone=time_zone, by=by
    ).json()
    if as_json:
        print_json(found)
    elif as_csv:
        write = csv_writer(
            text_output(), (_KEYS[by], "orders", "amount", "currency"), spreadsheet_safe=True
        )
        for row in found["rows"]:
            write(row)
    elif found["rows"]:
        print_table([_row(by, row) for row in found["rows"]])
    else:
        click.echo("None found.", err=True)


def _row(by: str, row: dict[str, Any]) -> dict[str, str]:
    return {
        by: str(row.get(_KEYS[by], "-")),
        "orders": str(row["orders"]),
        "amount": money_in_words(row["amount"], row["currency"]),
    }
