"""``petstore deprecations``: which keys still call deprecated operations."""

from typing import Any

import click
from msgspec import to_builtins

from petstore.cli.options import database_option, json_option
from petstore.cli.output import print_json, print_table, text_output
from petstore.cli.stores import in_store
from petstore.clock import system_clock
from petstore.deprecations.model import DeprecatedUse
from petstore.domain.csv_files import csv_writer

_ALL = 2**62
_COLUMNS = ("keyId", "keyName", *DeprecatedUse.__struct_encode_fields__)
_DISPENSABLE = ("user agent", "request id", "use")
_DATE, _TO_THE_MINUTE = len("2026-12-01"), len("2026-12-01T12:00")


@click.command()
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV that is safe in a spreadsheet.")
@json_option
@database_option
def deprecations(*, as_csv: bool, as_json: bool, database: str) -> None:
    """List the keys that called deprecated operations in the last 30 days."""
    if as_csv and as_json:
        msg = "--csv and --json: expected only one of them"
        raise click.UsageError(msg)
    # Imported where it is used, so that `petstore --help` is instant.
    from petstore.deprecations.operations import deprecated_operations
    from petstore.deprecations.store import list_uses
    from petstore.interface.operations import OPERATIONS

    operations = deprecated_operations(OPERATIONS)
    page = in_store(
        database, lambda store: list_uses(store, operations, None, None, _ALL, system_clock)
    )
    found = [{name: use[name] for name in _COLUMNS} for use in to_builtins(page.items)]
    if as_json:
        print_json(found)
    elif as_csv:
        _print_csv(found)
    elif found:
        print_table([_row(use) for use in found], _DISPENSABLE, "--json")
    else:
        click.echo("No key has called a deprecated operation in the last 30 days.", err=True)


def _print_csv(found: list[dict[str, Any]]) -> None:
    write = csv_writer(text_output(), _COLUMNS, spreadsheet_safe=True)
    for use in found:
        write(use)


def _row(use: dict[str, Any]) -> dict[str, str]:
    return {
        "key": str(use["keyId"]),
        "name": use["keyName"],
        "operation": use["operation"],
        "calls": str(use["calls"]),
        "last called (UTC)": use["lastCalledAt"][:_TO_THE_MINUTE].replace("T", " "),
        "user agent": use["lastUserAgent"] or "-",
        "request id": use["lastRequestId"],
        "ends": use["sunset"][:_DATE],
        "use": use["use"],
    }
