"""The resources of a running service: how a command asks for them and prints them."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

import click

from petstore.cli.client import MAX_PAGE, Client
from petstore.cli.client_failures import ExitStatus, Failure
from petstore.cli.environment import KEY, read_secret
from petstore.cli.options import Command, Integer, json_option
from petstore.cli.output import print_json, print_table, printable

T = TypeVar("T", bound=Mapping[str, Any])

_DEFAULT_LIMIT = 20
_URL = re.compile(r"https?://[^\s/?#@]+(/[^\s?#]*)?", re.IGNORECASE)
_KEY = re.compile(r"[!-~]+")


@dataclass(frozen=True)
class Resources(Generic[T]):
    """Resources of one kind: their path, the member in each column, and one as a line."""

    path: str
    kind: type[T]
    columns: Mapping[str, str]
    line: Callable[[T], str]
    dispensable: tuple[str, ...] = ()

    def create(self, members: Mapping[str, Any], *, client: Client, as_json: bool) -> None:
        """Create one and print it; a member that is ``None`` is left out."""
        new = {name: value for name, value in members.items() if value is not None}
        self.show(client.post(self.path, new, self.kind), as_json=as_json)

    def get(self, resource_id: int, *, client: Client, as_json: bool) -> None:
        """Print one."""
        self.show(client.get(f"{self.path}/{resource_id}", self.kind), as_json=as_json)

    def change(
        self, resource_id: int, patch: Mapping[str, Any], *, client: Client, as_json: bool
    ) -> None:
        """Change the members in ``patch`` of one, and print it."""
        changed = client.patch(f"{self.path}/{resource_id}", patch, self.kind)
        self.show(changed, as_json=as_json)

    def show(self, resource: T, *, as_json: bool) -> None:
        """Print a resource as JSON or as a line."""
        if as_json:
            print_json(resource)
        else:
            click.echo(printable(self.line(resource)))

    def show_list(
        self,
        query: Iterable[tuple[str, object]],
        *,
        client: Client,
        as_json: bool,
        limit: int | None,
        is_all: bool,
    ) -> None:
        """Print those that ``query`` finds; a parameter that is ``None`` filters nothing."""
        if is_all and limit is not None:
            msg = "--limit and --all cannot be used together"
            raise click.UsageError(msg)
        wanted = [(name, value) for name, value in query if value is not None]
        limit = None if is_all else limit or _DEFAULT_LIMIT
        found, is_more = client.find(self.path, self.kind, wanted, limit)
        if as_json:
            print_json(found)
        elif found:
            print_table([self._row(resource) for resource in found], self.dispensable, "--json")
        else:
            click.echo("None found.", err=True)
        if is_more:
            click.echo("(there are more: see --all, or --limit)", err=True)

    def _row(self, resource: T) -> dict[str, str]:
        row = {title: _cell(resource.get(name)) for title, name in self.columns.items()}
        return row | {title: utc(row[title]) for title in row if title.endswith("(UTC)")}


def resource_options(command: Command) -> Command:
    """Give a command the options to send a request and to print the resource."""
    return json_option(client_option(command))


def list_options(command: Command) -> Command:
    """Give a command the options that ``show_list`` takes."""
    limit = click.option(
        "--limit",
        type=Integer(1, MAX_PAGE),
        help=f"How many at most. [default: {_DEFAULT_LIMIT}]",
    )
    is_all = click.option("--all", "is_all", is_flag=True, help="All of them, page after page.")
    return limit(is_all(resource_options(command)))


def utc(moment: str) -> str:
    """Return a moment of a response as people read it: in UTC, to the minute."""
    try:
        return f"{datetime.fromisoformat(moment).astimezone(UTC):%Y-%m-%d %H:%M}"
    except (ValueError, OverflowError):
        return moment


def _cell(value: object) -> str:
    """Return a member of a resource as a cell of a table."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = " ".join(value) if isinstance(value, list) else value
    return "-" if text in (None, "") else str(text)


def is_address(url: str, form: re.Pattern[str]) -> bool:
    """Return whether ``url`` is one that can be connected to, and has this ``form``."""
    from urllib3.exceptions import LocationParseError
    from urllib3.util import parse_url

    try:
        parse_url(url)
    except LocationParseError:
        return False
    return form.fullmatch(url) is not None


def _client(_ctx: click.Context, _param: click.Parameter, url: str) -> Client:
    """Return a client for the service at ``url``, with or without ``/v1`` at its end."""
    if not is_address(url, _URL):
        msg = f"{url!r}: expected an address such as https://shop.example."
        raise click.BadParameter(msg)
    # From the environment alone: others on the machine can read a command line.
    key = (read_secret(KEY) or "").strip()
    if not key:
        msg = f"no key: put your API key into the environment variable {KEY}"
        raise Failure(msg, ExitStatus.KEY)
    if not _KEY.fullmatch(key):
        msg = f"{KEY}: expected an API key, which has no spaces and no special characters"
        raise Failure(msg, ExitStatus.KEY)
    return Client(f"{url.rstrip('/').removesuffix('/v1')}/v1", key)


client_option = click.option(
    "--url",
    "client",
    metavar="URL",
    callback=_client,
    envvar="PETSTORE_URL",
    show_envvar=True,
    default="http://127.0.0.1:8000",
    show_default=True,
    help=f"Where the service is. The key comes from the environment alone: {KEY} or {KEY}_FILE.",
)
