"""``petstore usage``: what a key has used, and what is left."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from petstore.cli.operation_commands import OperationCommand
from petstore.cli.output import print_json, printable
from petstore.cli.resources import View, utc
from petstore.domain.plans import UNLIMITED

if TYPE_CHECKING:  # imported where it is used, so that `petstore --help` is instant
    from petstore_client import Response
    from petstore_client.models import DeprecatedUse, RefusedRequests, Usage, UsageDay, UsageWindow


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
