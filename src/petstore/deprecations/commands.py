"""``petstore deprecations``: which keys still call deprecated operations."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from petstore.cli.client import store_client_option
from petstore.cli.operation_commands import OperationCommand
from petstore.cli.resources import View, csv_option, print_csv
from petstore.deprecations.model import DeprecatedUse

if TYPE_CHECKING:  # imported where it is used, so that `petstore --help` is instant
    from petstore_client import Listed
    from petstore_client.models import KeyDeprecatedUse

_COLUMNS = ("keyId", "keyName", *DeprecatedUse.__struct_encode_fields__)

_USES: "View[KeyDeprecatedUse]" = View(
    {
        "key": "key_id",
        "name": "key_name",
        "operation": "operation",
        "calls": "calls",
        "last called (UTC)": "last_called_at",
        "user agent": "last_user_agent",
        "request id": "last_request_id",
        "ends": lambda use: use.sunset.date(),
        "use": "use",
    },
    ("user agent", "request id", "use"),
)


def _show(
    listed: "Callable[..., Listed[KeyDeprecatedUse]]", *, as_csv: bool, **options: Any
) -> None:
    if not as_csv:
        _USES.show_list(listed, **options)
        return
    if any(options.values()):
        msg = "--csv lists all of them: expected no other option for a list beside it"
        raise click.UsageError(msg)
    print_csv(_COLUMNS, (use for page in listed().pages() for use in page.response.json()))


deprecations = OperationCommand(
    "deprecations",
    "listDeprecations",
    "keys.deprecations",
    show=_show,
    options=[csv_option],
    client=store_client_option,
    help="""List the keys that called deprecated operations in the last 30 days.

    With a key in PETSTORE_KEY that has the scope keys:admin, requests go to the service at --url.
    Without one, the command works on the database itself.
    """,
)
