"""``petstore usage``: what a key has used, and what is left."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from petstore.cli.operation_commands import OperationCommand
from petstore.cli.output import print_json, print_table, printable
from petstore.cli.resources import utc
from petstore.domain.plans import UNLIMITED

if TYPE_CHECKING:  # imported where it is used, so that `petstore --help` is instant
    from petstore_client import Response
    from petstore_client.models import DeprecatedUse, RefusedRequests, Usage, UsageWindow


def _show(response: "Response[Usage]", *, as_json: bool) -> None:
    if as_json:
        print_json(response.json())
        return
    used = response.value
    ban = f", banned until {utc(used.banned_until)} UTC" if used.banned_until else ""
    click.echo(printable(f"Plan {used.plan}{ban}"))
    print_table([_window("minute", used.minute), _window("day", used.day)])
    days = [{"day (UTC)": str(day.date), "requests": str(day.requests)} for day in used.days]
    if busy := [day for day in days if day["requests"] != "0"]:
        click.echo()
        print_table(busy)
    if used.refused:
        click.echo()
        print_table([_refused(each) for each in used.refused])
    if used.deprecated:
        click.echo()
        print_table([_deprecated(use) for use in used.deprecated], ("last call (UTC)",))


def _window(name: str, window: "UsageWindow") -> dict[str, str]:
    is_unlimited = window.limit == UNLIMITED
    return {
        "window": name,
        "limit": "unlimited" if is_unlimited else str(window.limit),
        "left": "-" if is_unlimited else str(window.remaining),
        "resets (UTC)": _moment(window.reset),
    }


def _moment(seconds: int) -> str:
    try:
        return utc(datetime.fromtimestamp(seconds, UTC))
    except (ValueError, OverflowError, OSError):  # beyond the calendar
        return str(seconds)


def _refused(refused: "RefusedRequests") -> dict[str, str]:
    return {
        "hour (UTC)": utc(refused.hour),
        "refused (429)": refused.operation or "-",
        "requests": str(refused.requests),
    }


def _deprecated(use: "DeprecatedUse") -> dict[str, str]:
    return {
        "deprecated": use.operation,
        "calls": str(use.calls),
        "last call (UTC)": utc(use.last_called_at),
        "ends": f"{use.sunset:%Y-%m-%d}",
        "use instead": use.use,
    }


usage = OperationCommand(
    "usage",
    "getUsage",
    "usage.get",
    show=_show,
    help="Show what your key has used, and what is left. It costs nothing.",
)
