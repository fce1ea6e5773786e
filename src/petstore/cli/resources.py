"""The resources of a running service: how commands print them."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import click

from petstore.cli.client import client_option, store_client_option
from petstore.cli.options import TEXT, Command, Integer, json_option, page_option
from petstore.cli.output import print_json, print_table, printable

if TYPE_CHECKING:  # imported where it is used, so that `petstore --help` is instant
    from petstore_client import Listed, Page, Response

T = TypeVar("T")

_MAX_PAGE = 100
_DEFAULT_LIMIT = 20


@dataclass(frozen=True)
class View(Generic[T]):
    """How resources of one kind are printed: what each column shows, and one as a line.

    A narrow terminal leaves out ``dispensable`` columns, the first of them first.
    """

    columns: Mapping[str, Callable[[T], object]]
    line: Callable[[T], str]
    dispensable: tuple[str, ...] = ()

    def show(self, response: "Response[T]", *, as_json: bool) -> None:
        """Print a resource as a line, or the JSON of the service."""
        show_response(response, printable(self.line(response.value)), as_json=as_json)

    def show_list(
        self,
        listed: Callable[..., "Listed[T]"],
        *,
        as_json: bool,
        as_page: bool,
        limit: int | None,
        is_all: bool,
        cursor: str | None,
    ) -> None:
        """Print the first ``limit`` resources of a list, or all of them, from a ``cursor`` on."""
        if is_all and limit is not None:
            msg = "--limit and --all cannot be used together"
            raise click.UsageError(msg)
        found: list[T] = []
        members: list[Any] = []
        for page in _read(listed, None if is_all else limit or _DEFAULT_LIMIT, cursor):
            found += page.items
            members += page.response.json()
            cursor = page.cursor
        if as_page:
            print_json({"items": members, "next": cursor})
            return
        if as_json:
            print_json(members)
        elif found:
            print_table([self._row(item) for item in found], self.dispensable, "--json")
        else:
            click.echo("None found.", err=True)
        if cursor is not None:
            click.echo(f"(there are more: see --all, --limit, or --cursor {cursor})", err=True)

    def _row(self, item: T) -> dict[str, str]:
        return {title: cell(value(item)) for title, value in self.columns.items()}


def _read(
    listed: Callable[..., "Listed[T]"], wanted: int | None, cursor: str | None
) -> Iterator["Page[T]"]:
    """Yield pages from ``cursor`` on until ``wanted`` resources have come, or all of them."""
    if wanted is None:
        yield from listed(limit=_MAX_PAGE, cursor=cursor).pages()
        return
    # A page may be short, even empty, and not the last. The next one is as large as what is left,
    # so that its cursor is where this list ends.
    while wanted > 0:
        page = next(listed(limit=wanted, cursor=cursor).pages())
        yield page
        if page.cursor is None:
            return
        wanted, cursor = wanted - len(page), page.cursor


def show_response(response: "Response[Any]", line: str, *, as_json: bool) -> None:
    """Print a line that is safe for a terminal, or the JSON of the service."""
    if not as_json:
        click.echo(line)
        return
    members = response.json()
    if isinstance(members, list):  # an animal comes in a list of one
        members = members[0]
    print_json(members)


def show_deleted(kind: str, resource_id: int, *, as_json: bool) -> None:
    """Say that a resource is deleted, of which the service returns nothing."""
    if as_json:
        print_json({"id": resource_id, "deleted": True})
    else:
        click.echo(f"{kind} {resource_id} deleted.", err=True)


def resource_options(
    command: Command, client: Callable[[Command], Command] = client_option
) -> Command:
    """Give a command the options to send a request and to print the resource."""
    return json_option(client(command))


def list_options(command: Command, client: Callable[[Command], Command] = client_option) -> Command:
    """Give a command the options that ``show_list`` takes."""
    limit = click.option(
        "--limit", type=Integer(1, _MAX_PAGE), help=f"How many at most. [default: {_DEFAULT_LIMIT}]"
    )
    is_all = click.option("--all", "is_all", is_flag=True, help="All of them, page after page.")
    cursor = click.option("--cursor", type=TEXT, help="Start where an earlier list has ended.")
    return limit(is_all(cursor(page_option(resource_options(command, client)))))


store_options = partial(resource_options, client=store_client_option)
"""The options of a command that administers a store, by its service or on the database itself."""

store_list_options = partial(list_options, client=store_client_option)
"""The options of such a command that lists."""


def utc(moment: datetime) -> str:
    """Return a moment as people read it: in UTC, to the minute."""
    try:
        return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M}"
    except OverflowError:  # the first or the last day of the calendar
        return moment.isoformat()


def cell(value: object) -> str:
    """Return a value as a cell of a table."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return utc(value)
    return "-" if value in (None, "") else str(value)
