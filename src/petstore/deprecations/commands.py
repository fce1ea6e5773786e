"""``petstore deprecations``: which keys still call deprecated operations."""

from typing import TYPE_CHECKING, Any

import click

from petstore.cli.output import text_output
from petstore.cli.resources import View, store_list_options
from petstore.deprecations.model import DeprecatedUse
from petstore.domain.csv_files import csv_writer

if TYPE_CHECKING:  # imported where it is used, so that `petstore --help` is instant
    from petstore_client import Client
    from petstore_client.models import KeyDeprecatedUse

_COLUMNS = ("keyId", "keyName", *DeprecatedUse.__struct_encode_fields__)

_USES: "View[KeyDeprecatedUse]" = View(
    {
        "key": lambda use: use.key_id,
        "name": lambda use: use.key_name,
        "operation": lambda use: use.operation,
        "calls": lambda use: use.calls,
        "last called (UTC)": lambda use: use.last_called_at,
        "user agent": lambda use: use.last_user_agent,
        "request id": lambda use: use.last_request_id,
        "ends": lambda use: f"{use.sunset:%Y-%m-%d}",
        "use": lambda use: use.use,
    },
    str,
    ("user agent", "request id", "use"),
)


@click.command()
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV that is safe in a spreadsheet.")
@store_list_options
def deprecations(*, as_csv: bool, client: "Client", **options: Any) -> None:
    """List the keys that called deprecated operations in the last 30 days.

    With a key in PETSTORE_KEY that has the scope keys:admin, requests go to the service at --url.
    Without one, the command works on the database itself.
    """
    if not as_csv:
        _USES.show_list(client.keys.deprecations, **options)
        return
    if any(options.values()):
        msg = "--csv lists all of them: expected no other option for a list beside it"
        raise click.UsageError(msg)
    write = csv_writer(text_output(), _COLUMNS, spreadsheet_safe=True)
    for page in client.keys.deprecations().pages():
        for use in page.response.json():
            write(use)
