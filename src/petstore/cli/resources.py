"""The resources of a running service: how commands print them."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import click

from petstore.cli.client import client_of, client_option, wait_in_bar
from petstore.cli.options import TEXT, Command, Integer, json_option, page_option
from petstore.cli.output import (
    counted,
    plain_failures,
    print_json,
    print_table,
    printable,
    progress,
    replacing_text,
    text_output,
)
from petstore.domain.csv_files import csv_writer

if TYPE_CHECKING:  # imported where it is used, so that `petstore --help` is instant
    from petstore_client import Client, Listed, Page, Response

T = TypeVar("T")

MAX_PAGE = 100
_DEFAULT_LIMIT = 20

BOM = "\ufeff"
"""What a file begins with, so that spreadsheets see that it is in UTF-8."""

file_argument = click.argument(
    "file", type=click.Path(dir_okay=False, writable=True, path_type=Path), default="-"
)


@dataclass(frozen=True)
class View(Generic[T]):
    """How resources of one kind are printed: in a table, or one as a line.

    Each column shows an attribute or what a function returns. Without columns, every field has one.
    A narrow terminal leaves out ``dispensable`` columns, the first of them first, and a line those
    that are ``table_only``.
    """

    columns: Mapping[str, str | Callable[[T], object]] = field(default_factory=dict)
    dispensable: tuple[str, ...] = ()
    table_only: tuple[str, ...] = ("id",)

    def values(self, item: T) -> dict[str, object]:
        columns = self.columns or {_title(name): name for name in item.__struct_fields__}  # type: ignore[attr-defined] # models are structs
        return {
            title: getattr(item, shown) if isinstance(shown, str) else shown(item)
            for title, shown in columns.items()
        }

    def line(self, item: T) -> str:
        """Return a resource in a line. Texts speak for themselves; other values follow a title."""
        values, words = self.values(item), []
        for title, value in values.items():
            if value in (None, "") or title in self.table_only:
                continue
            if isinstance(value, datetime):
                words.append(f"{title.removesuffix(' (UTC)')} {utc(value)} UTC")
            else:
                words.append(value if isinstance(value, str) else f"{title} {cell(value)}")
        name = " ".join([type(item).__name__, *map(str, filter(None, [values.get("id")]))])
        return f"{name}: {', '.join(words)}"

    def print_table(self, items: Iterable[T]) -> None:
        rows = [{title: cell(x) for title, x in self.values(item).items()} for item in items]
        print_table(rows, self.dispensable)

    def show(self, response: "Response[T]", *, as_json: bool) -> None:
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
        else:
            self.print_table(found)
        if cursor is not None:
            click.echo(f"(there are more: see --all, --limit, or --cursor {cursor})", err=True)


def _title(name: str) -> str:
    return re.sub("_at$", " (UTC)", name.removesuffix("_id")).replace("_", " ")


def _read(
    listed: Callable[..., "Listed[T]"], wanted: int | None, cursor: str | None
) -> Iterator["Page[T]"]:
    if wanted is None:
        yield from listed(limit=MAX_PAGE, cursor=cursor).pages()
        return
    # A page may be short, even empty, and not the last. The next one is as large as what is left,
    # so that its cursor is where this list ends.
    while wanted > 0:
        page = next(listed(limit=wanted, cursor=cursor).pages())
        yield page
        if page.cursor is None:
            return
        wanted, cursor = wanted - len(page), page.cursor


def export_csv(
    file: Path,
    service: str,
    noun: str,
    columns: Sequence[str],
    pages: Callable[["Client"], Iterator[list[dict[str, Any]]]],
    *,
    spreadsheet_safe: bool,
) -> None:
    to_stdout = str(file) == "-"
    outcome = "the output is incomplete" if to_stdout else f"{file} is unchanged"
    with (
        plain_failures(lambda: outcome),
        nullcontext(text_output()) if to_stdout else replacing_text(file) as out,
        progress("Exporting") as on_progress,
        client_of(service, wait_in_bar(on_progress), lambda: outcome) as client,
    ):
        if not to_stdout:
            out.write(BOM)
        write, count = csv_writer(out, columns, spreadsheet_safe=spreadsheet_safe), 0
        for rows in pages(client):
            for row in rows:
                write(row)
            count += len(rows)
            on_progress(count)
    click.echo(f"{counted(count, noun)} exported.", err=True)


csv_option = click.Option(
    ["--csv", "as_csv"], is_flag=True, help="Print CSV that is safe in a spreadsheet."
)


def print_csv(columns: Sequence[str], rows: Iterable[dict[str, Any]]) -> None:
    write = csv_writer(text_output(), columns, spreadsheet_safe=True)
    for row in rows:
        write(row)


def show_response(response: "Response[Any]", line: str, *, as_json: bool) -> None:
    """Print a line that is safe for a terminal, or the JSON of the service."""
    if not as_json:
        click.echo(line)
        return
    members = response.json()
    if isinstance(members, list):  # a pet comes in a list of one
        members = members[0]
    print_json(members)


def print_done(line: str, document: object, *, as_json: bool) -> None:
    if as_json:
        print_json(document)
    else:
        click.echo(line, err=True)


def resource_options(
    command: Command, client: Callable[[Command], Command] = client_option
) -> Command:
    return json_option(client(command))


def list_options(command: Command, client: Callable[[Command], Command] = client_option) -> Command:
    """Give a command the options that ``show_list`` takes."""
    limit = click.option(
        "--limit",
        type=Integer(1, MAX_PAGE),
        help=f"Maximum number of results. [default: {_DEFAULT_LIMIT}]",
    )
    is_all = click.option("--all", "is_all", is_flag=True, help="Fetch all pages.")
    cursor = click.option("--cursor", type=TEXT, help="Start where an earlier list has ended.")
    return limit(is_all(cursor(page_option(resource_options(command, client)))))


def utc(moment: datetime) -> str:
    try:
        return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M}"
    except OverflowError:  # the first or the last day of the calendar
        return moment.isoformat()


def cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return utc(value)
    return "-" if value in (None, "") else str(value)
