"""``petstore usage`` and ``petstore deprecations``: what keys have used, and should not."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from petstore.cli.client import store_client_option
from petstore.cli.operation_commands import OperationCommand
from petstore.cli.output import print_json, printable
from petstore.cli.resources import View, csv_option, print_csv, utc
from petstore.domain.plans import UNLIMITED

if TYPE_CHECKING:  # imported where it is used, so that `petstore --help` is instant
    from petstore_client import Listed, Response
    from petstore_client.models import (
        DeprecatedUse,
        KeyDeprecatedUse,
        RefusedRequests,
        Usage,
        UsageDay,
        UsageWindow,
    )


_WINDOWS: "View[tuple[str, UsageWindow]]" = View(
    {
        "window": lambda each: each[0],
        "limit": lambda each: "unlimited" if each[1].limit == UNLIMITED else each[1].limit,
        "left": lambda each: None if each[1].limit == UNLIMITED else each[1].remaining,
        "resets (UTC)": lambda each: _moment(each[1].reset),
    }
)
_DAYS: "View[UsageDay]" = View({"day (UTC)": "date", "requests": "requests"})
_REFUSED: "View[RefusedRequests]" = View(
    {"hour (UTC)": "hour", "refused (429)": "operation", "requests": "requests"}
)
_DEPRECATED: "View[DeprecatedUse]" = View(
    {
        "deprecated": "operation",
        "calls": "calls",
        "last call (UTC)": "last_called_at",
        "ends": lambda use: use.sunset.date(),
        "use instead": "use",
    },
    ("last call (UTC)",),
)


def _moment(seconds: int) -> str:
    try:
        return utc(datetime.fromtimestamp(seconds, UTC))
    except (ValueError, OverflowError, OSError):  # beyond the calendar
        return str(seconds)


def _show(response: "Response[Usage]", *, as_json: bool) -> None:
    if as_json:
        print_json(response.json())
        return
    used = response.value
    ban = f", banned until {utc(used.banned_until)} UTC" if used.banned_until else ""
    click.echo(printable(f"Plan {used.plan}{ban}"))
    _WINDOWS.print_table([("minute", used.minute), ("day", used.day)])
    days = [day for day in used.days if day.requests]
    tables: list[tuple[View[Any], Sequence[Any]]] = [
        (_DAYS, days),
        (_REFUSED, used.refused),
        (_DEPRECATED, used.deprecated),
    ]
    for view, found in tables:
        if found:
            click.echo()
            view.print_table(found)


usage = OperationCommand(
    "usage",
    "getUsage",
    "usage.get",
    show=_show,
    help="Show what your key has used, and what is left. It costs nothing.",
)

_COLUMNS = (
    *("keyId", "keyName", "operation", "method", "path", "since", "sunset", "use"),
    *("documentation", "calls", "lastCalledAt", "lastUserAgent", "lastRequestId"),
)

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


def _show_deprecations(
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
    show=_show_deprecations,
    options=[csv_option],
    client=store_client_option,
    help="""List the keys that called deprecated operations in the last 30 days.

    With a key in PETSTORE_KEY that has the scope keys:admin, requests go to the service at --url.
    Without one, the command works on the database itself.
    """,
)
