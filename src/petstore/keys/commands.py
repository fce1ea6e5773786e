"""``petstore keys``: issue, list, change and revoke API keys."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, get_args

import click
from msgspec import to_builtins

from petstore.cli.options import (
    ID,
    NONE,
    Cidr,
    Duration,
    Integer,
    OrWord,
    database_option,
    database_page_options,
    given,
    json_option,
    key_name,
)
from petstore.cli.output import (
    JsonList,
    SectionedGroup,
    TextTable,
    note_more,
    plain_failures,
    print_json,
    print_secret,
    printable,
)
from petstore.cli.resources import resource_options
from petstore.cli.stores import in_store, note_new_store
from petstore.clock import SECOND, Milliseconds, system_clock, utc_second
from petstore.databases.contract import Store, T, Unit
from petstore.domain.cursors import BY_ID
from petstore.domain.names import name_key
from petstore.domain.networks import canonical_networks
from petstore.domain.plans import PLANS, UNLIMITED
from petstore.keys import store as api_keys
from petstore.keys.model import (
    DEFAULT_SCOPES,
    PREFIXES,
    SCOPES,
    Environment,
    KeyFields,
    KeyState,
    Scope,
)
from petstore.keys.status import Key, KeyWithToken, every_key, get_key
from petstore.keys.store import Principal, unconditional

if TYPE_CHECKING:  # imported where it is used, so that `petstore --help` is instant
    from petstore_client import Client

_ALL = 2**62
_DISPENSABLE = ("scopes", "created", "environment", "expires", "last used (UTC)", "plan")
_DATE, _TO_THE_MINUTE = len("2026-12-01"), len("2026-12-01T12:00")
_LIMIT = Integer(1, UNLIMITED - 1)
_ANY_LIMIT = OrWord(_LIMIT, "unlimited")
_VALIDITY = Duration(min_seconds=1)
_NETWORK = Cidr()
_PLAN = click.Choice(list(PLANS))
_SCOPE = click.Choice(SCOPES)
_ONE_SCOPE = f"{', '.join(SCOPES[:-1])} or {SCOPES[-1]}"


@click.group(cls=SectionedGroup)
def keys() -> None:
    """Issue, list, change and revoke API keys. A running service applies it within a second."""


@keys.command()
@click.option("--name", required=True, type=key_name, metavar="NAME", help="What the key is for.")
@click.option("--plan", required=True, type=_PLAN, help="How many requests it may make.")
@click.option("--per-minute", type=_LIMIT, help="Enterprise only: requests a minute.")
@click.option("--per-day", type=_LIMIT, help="Enterprise only: requests a day.")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=_SCOPE,
    metavar="SCOPE",
    help=f"What it may do: {_ONE_SCOPE}; may be repeated. [default: those of pets and orders]",
)
@click.option("--expires-in", type=_VALIDITY, help="How long it is valid, such as 30d.")
@click.option(
    "--network",
    "networks",
    multiple=True,
    type=_NETWORK,
    help="A network it may be used from; may be repeated. [default: anywhere]",
)
@click.option(
    "--environment",
    type=click.Choice(list(PREFIXES)),
    envvar="PETSTORE_ENVIRONMENT",
    show_envvar=True,
    default="production",
    show_default=True,
    help="Where it is valid.",
)
@json_option
@database_option
def create(
    *,
    scopes: tuple[Scope, ...],
    expires_in: Milliseconds | None,
    networks: tuple[str, ...],
    environment: Environment,
    as_json: bool,
    database: str,
    **options: Any,
) -> None:
    """Issue a key, and print its token once, alone on standard output. It is stored nowhere."""
    new = KeyFields(
        scopes=frozenset(scopes or DEFAULT_SCOPES),
        expires_at=_expiry(expires_in),
        allowed_networks=_networks(networks),
        **options,
    )
    note_new_store(database)
    unit = api_keys.create_key(new, environment, Principal(), system_clock())
    _print_issued(_write(database, unit, create=True), "created", as_json=as_json)


@keys.command("list")
@click.option("--name", default="", metavar="PREFIX", help="Filters by how the name begins.")
@click.option("--plan", type=_PLAN, help="Filters by plan.")
@click.option("--state", type=click.Choice(get_args(KeyState)), help="Filters by state.")
@click.option("--environment", type=click.Choice(list(PREFIXES)), help="Filters by environment.")
@database_page_options
@json_option
@database_option
def list_all(
    *, as_json: bool, as_page: bool, database: str, limit: int, after: int, **filters: Any
) -> None:
    """List keys by ID, without their tokens: all of them unless an option filters."""

    def read(show: Callable[[list[dict[str, Any]]], None]) -> tuple[int, str | None]:
        return in_store(database, lambda store: _list(store, filters, after, limit, show))

    if as_page:
        page: list[dict[str, Any]] = []
        _, cursor = read(page.extend)
        print_json({"items": page, "next": cursor})
        return
    if as_json:
        output = JsonList()
        _, cursor = read(output.print)
        output.end()
    else:
        table = TextTable(_DISPENSABLE, "keys show ID, or --json")
        shown, cursor = read(lambda some: table.print([*map(_row, some)]))
        table.end()
        if not shown:
            found = "No key matches." if any(filters.values()) else "There are no keys yet."
            click.echo(found, err=True)
    note_more(cursor)


async def _list(
    store: Store,
    filters: dict[str, Any],
    after: int,
    limit: int,
    show: Callable[[list[dict[str, Any]]], None],
) -> tuple[int, str | None]:
    """Show the first ``limit`` keys behind the id ``after`` that pass ``filters``, page by page.

    Return how many these are, and their cursor if others come behind them.
    """
    shown, last = 0, after
    async for keys in every_key(store, filters["environment"], system_clock, after):
        wanted = [key for key in keys if _is_wanted(key, filters)]
        if some := wanted[: limit - shown]:
            show(to_builtins(some))
            shown, last = shown + len(some), some[-1].id
        if len(wanted) > len(some):
            return shown, BY_ID.encode(last)
    return shown, None


def _is_wanted(key: Key, filters: dict[str, Any]) -> bool:
    return (
        name_key(key.name).startswith(name_key(filters["name"]))
        and filters["plan"] in (key.plan, None)
        and filters["state"] in (key.state, None)
    )


@keys.command()
@click.argument("key_id", metavar="ID", type=ID)
@json_option
@database_option
def show(*, key_id: int, as_json: bool, database: str) -> None:
    """Show one key."""
    key = to_builtins(in_store(database, lambda store: get_key(store, key_id, None, system_clock)))
    if as_json:
        print_json(key)
        return
    for name, value in (key | {"state": _state(key)}).items():
        label = re.sub("([A-Z])", r" \1", name).lower()
        unlimited = value is None and name in ("perMinute", "perDay")
        click.echo(f"{label:16}  {'unlimited' if unlimited else printable(_text(value))}")


@keys.command()
@click.argument("key_id", metavar="ID", type=ID)
@click.option("--name", type=key_name, metavar="NAME", help="What the key is for.")
@click.option("--plan", type=_PLAN, help="How many requests it may make; its usage carries over.")
@click.option("--per-minute", type=_ANY_LIMIT, help="Enterprise only: requests a minute.")
@click.option("--per-day", type=_ANY_LIMIT, help="Enterprise only: requests a day.")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=_SCOPE,
    metavar="SCOPE",
    help=f"What it may do, all of it: {_ONE_SCOPE}; may be repeated.",
)
@click.option(
    "--expires-in",
    "expires_at",
    type=OrWord(_VALIDITY, "never"),
    help="How long from now it is valid.",
)
@click.option(
    "--network",
    "allowed_networks",
    multiple=True,
    type=OrWord(_NETWORK, "anywhere"),
    help="A network it may be used from; the named ones replace all others.",
)
@json_option
@database_option
def change(*, key_id: int, as_json: bool, database: str, **options: Any) -> None:
    """Change a key. Fields without an option do not change."""
    wanted = given(options)
    if "scopes" in wanted:
        wanted["scopes"] = frozenset(wanted["scopes"])
    if "expires_at" in wanted:
        wanted["expires_at"] = _expiry(wanted["expires_at"])
    if "allowed_networks" in wanted:
        wanted["allowed_networks"] = _networks(wanted["allowed_networks"])
    unit = api_keys.change_key(key_id, wanted, Principal(), system_clock(), unconditional)
    _print_changed(_write(database, unit), "changed", as_json=as_json)


@keys.command()
@click.argument("key_id", metavar="ID", type=ID)
@click.option(
    "--grace",
    type=Duration(),
    default="0s",
    show_default=True,
    help="How long the old token stays valid, such as 1h.",
)
@json_option
@database_option
def rotate(*, key_id: int, grace: Milliseconds, as_json: bool, database: str) -> None:
    """Issue a new token for a key, and print it alone on standard output. Usage carries over."""
    unit = api_keys.rotate_key(key_id, grace, Principal(), system_clock(), unconditional)
    _print_issued(_write(database, unit), "rotated", as_json=as_json)


@click.command("rotate-key")
@click.option(
    "--grace",
    type=Duration(),
    default="1h",
    show_default=True,
    help="How long the old token stays valid.",
)
@resource_options
def rotate_own(*, client: "Client", grace: Milliseconds, as_json: bool) -> None:
    """Issue a new token for your own key, and print it alone on standard output."""
    response = client.keys.rotate_current.raw(grace_seconds=grace // SECOND)
    key = response.value
    end = f"works until {utc_second(system_clock() + grace):%d %b %Y, %H:%M:%S} UTC at the latest"
    print_secret(
        "token",
        key.token,
        f"Key {key.id} ({printable(key.name)}) rotated. The old token"
        f" {end if grace else 'has ended'}. The new token is shown this once.",
        f"key {key.id} was rotated, but nobody saw its token: ask an administrator of the keys",
        response.json() if as_json else None,
    )


@keys.command()
@click.argument("key_id", metavar="ID", type=ID)
@json_option
@database_option
def revoke(*, key_id: int, as_json: bool, database: str) -> None:
    """Revoke a key for good."""
    unit = api_keys.revoke_key(key_id, Principal(), system_clock(), unconditional)
    _print_changed(_write(database, unit), "revoked", as_json=as_json)


@keys.command()
@click.argument("key_id", metavar="ID", type=ID)
@json_option
@database_option
def unban(*, key_id: int, as_json: bool, database: str) -> None:
    """Lift the ban of a key."""
    unit = api_keys.unban_key(key_id, Principal(), system_clock(), unconditional)
    _print_changed(_write(database, unit), "unbanned", as_json=as_json)


def _print_changed(key: Key, done: str, *, as_json: bool) -> None:
    if as_json:
        print_json(to_builtins(key))
    else:
        click.echo(f"Key {key.id} {done}.", err=True)


def _print_issued(key: KeyWithToken, done: str, *, as_json: bool) -> None:
    print_secret(
        "token",
        key.token,
        f"Key {key.id} ({printable(key.name)}) {done}. The token is shown this once.",
        f"key {key.id} was {done}, but nobody saw its token: petstore keys rotate {key.id} issues"
        " another",
        to_builtins(key) if as_json else None,
    )


def _expiry(duration: Milliseconds | None) -> Milliseconds | None:
    return None if duration is None else system_clock() + duration


def _networks(given: tuple[Any, ...]) -> tuple[str, ...]:
    """Return the networks of a key, none for the word ``anywhere``."""
    networks = [network for network in given if network is not NONE]
    if networks and len(networks) < len(given):
        msg = "--network: expected networks or the word anywhere, not both"
        raise click.UsageError(msg)
    with plain_failures():
        return canonical_networks(networks)


def _write(database: str, unit: Unit[T], *, create: bool = False) -> T:
    return in_store(database, lambda store: store.write(unit), create=create)


def _row(key: dict[str, Any]) -> dict[str, str]:
    return {
        "id": str(key["id"]),
        "name": key["name"],
        "plan": key["plan"],
        "per min/day": _limits(key["perMinute"], key["perDay"]),
        "scopes": " ".join(key["scopes"]),
        "environment": key["environment"],
        "state": _state(key),
        "created": _text(key["createdAt"])[:_DATE],
        "expires": _text(key["expiresAt"])[:_DATE],
        "last used (UTC)": _text(key["lastUsedAt"])[:_TO_THE_MINUTE].replace("T", " "),
    }


def _state(key: dict[str, Any]) -> str:
    is_banned = key["bannedUntil"] and key["state"] == "active"
    return "banned" if is_banned else key["state"]


def _limits(per_minute: int | None, per_day: int | None) -> str:
    if per_minute is None and per_day is None:
        return "unlimited"
    return f"{_text(per_minute)}/{_text(per_day)}"


def _text(value: Any) -> str:
    if value is None or value == []:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return " ".join(value) if isinstance(value, list) else str(value)
