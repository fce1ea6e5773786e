"""``petstore sales``: the sales of a running service in numbers."""

from typing import TYPE_CHECKING

import click

from petstore.cli.operation_commands import OperationCommand
from petstore.cli.output import print_json, print_table
from petstore.cli.resources import csv_option, print_csv
from petstore.console.numbers import money_in_words

if TYPE_CHECKING:  # imported where it is used, so that `petstore --help` is instant
    from petstore_client import Response
    from petstore_client.models import Sales

_KEYS = {"day": "day", "category": "categoryId"}


def _show(response: "Response[Sales]", *, as_csv: bool, as_json: bool) -> None:
    if as_csv and as_json:
        msg = "--csv and --json: expected only one of them"
        raise click.UsageError(msg)
    found, by = response.json(), response.value.by
    if as_json:
        print_json(found)
    elif as_csv:
        columns = (_KEYS[by], "orders", "amount", "returns", "refunded", "currency")
        print_csv(columns, found["rows"])
    else:
        shown = [
            {
                by: str(row.get(_KEYS[by], "-")),
                "orders": str(row["orders"]),
                "amount": money_in_words(row["amount"], row["currency"]),
                "returns": str(row["returns"]),
                "refunded": money_in_words(row["refunded"], row["currency"]),
            }
            for row in found["rows"]
        ]
        print_table(shown)


sales = OperationCommand(
    "sales",
    "getSales",
    "sales.get",
    show=_show,
    options=[csv_option],
    help="Count the orders delivered and returned, and add up the money, by day or by category.",
)
