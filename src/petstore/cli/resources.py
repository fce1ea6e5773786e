"""What a client asks the service for, and how it is shown: to people, or as JSON to scripts."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

import click

from petstore.cli.client import LARGEST_PAGE, Client
from petstore.cli.client_options import client_option, json_option
from petstore.cli.option_types import Integer
from petstore.cli.tables import print_table, printable

T = TypeVar("T")
Command = TypeVar("Command", bound=Callable[..., Any])

NOTHING = "-"
"""Stands in a table for what is absent."""

_DEFAULT_LIMIT = 20


@dataclass(frozen=True)
class Resources(Generic[T]):
    """Resources of one kind: where they are, and how one is shown as a row and as a line."""

    path: str
    kind: type[T]
    row: Callable[[T], dict[str, str]]
    line: Callable[[T], str]
    dispensable: tuple[str, ...] = ()

    def show(self, resource: T, *, as_json: bool) -> None:
        """Print one."""
        click.echo(json.dumps(resource, indent=2) if as_json else printable(self.line(resource)))

    def show_list(
        self,
        query: Iterable[tuple[str, object]],
        *,
        client: Client,
        as_json: bool,
        limit: int | None,
        is_all: bool,
    ) -> None:
        """Print those that ``query`` finds; a value of ``None`` in it filters nothing."""
        if is_all and limit is not None:
            msg = "--limit and --all cannot be used together"
            raise click.UsageError(msg)
        wanted = [(name, value) for name, value in query if value is not None]
        limit = None if is_all else limit or _DEFAULT_LIMIT
        found, is_more = client.find(self.path, self.kind, wanted, limit)
        if as_json:
            click.echo(json.dumps(found, indent=2))
        elif found:
            print_table([self.row(resource) for resource in found], self.dispensable, "--json")
        else:
            click.echo("None found.", err=True)
        if is_more:
            click.echo("(there are more: see --all, or --limit)", err=True)


def list_options(command: Command) -> Command:
    """Give a command the options that ``show_list`` takes."""
    limit = click.option(
        "--limit",
        type=Integer(1, LARGEST_PAGE),
        help=f"How many at most. [default: {_DEFAULT_LIMIT}]",
    )
    is_all = click.option("--all", "is_all", is_flag=True, help="All of them, page after page.")
    return limit(is_all(json_option(client_option(command))))


def utc(moment: str) -> str:
    """Return a moment of an answer as people read it: in UTC, to the minute."""
    try:
        return f"{datetime.fromisoformat(moment).astimezone(UTC):%Y-%m-%d %H:%M}"
    except (ValueError, OverflowError):
        return moment
