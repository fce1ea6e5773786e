"""``petstore keys``: issue, list, change and revoke API keys."""

import re
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from petstore.cli.client import store_client_option
from petstore.cli.options import (
    ID,
    NETWORK,
    NONE,
    TEXT,
    Command,
    Integer,
    OrWord,
    duration,
    given,
    key_name,
)
from petstore.cli.output import SectionedGroup, print_json, print_secret, printable
from petstore.cli.resources import View, resource_options, store_list_options, store_options
from petstore.clock import SECOND, Milliseconds, system_clock, utc_second
from petstore.domain.plans import PLANS, UNLIMITED
from petstore.keys.model import SCOPES

if TYPE_CHECKING:  # imported where it is used, so that `petstore --help` is instant
    from petstore_client import Client, Response
    from petstore_client.models import Key, KeyWithToken

_LIMIT = Integer(1, UNLIMITED - 1)
_VALIDITY = duration(min_seconds=1)
_SCOPES = f"{', '.join(SCOPES[:-1])} or {SCOPES[-1]}; may be repeated."


def _date(moment: datetime | None) -> str:
    return "-" if moment is None else f"{moment:%Y-%m-%d}"


def _limits(key: "Key") -> str:
    if key.per_minute is None and key.per_day is None:
        return "unlimited"
    return f"{key.per_minute or '-'}/{key.per_day or '-'}"


_KEYS: "View[Key]" = View(
    {
        "id": lambda key: key.id,
        "name": lambda key: key.name,
        "plan": lambda key: key.plan,
        "per min/day": _limits,
        "scopes": lambda key: " ".join(key.scopes),
        "environment": lambda key: key.environment,
        "token ends": lambda key: key.token_ends,
        "state": lambda key: _state(key.state, key.banned_until),
        "created": lambda key: _date(key.created_at),
        "expires": lambda key: _date(key.expires_at),
        "last used (UTC)": lambda key: key.last_used_at,
    },
    ("scopes", "created", "environment", "expires", "token ends", "last used (UTC)", "plan"),
)


def _state(state: str, banned_until: object) -> str:
    return "banned" if banned_until and state == "active" else state


_id_argument = click.argument("key_id", metavar="ID", type=ID)


def _field_options(command: Command, *, is_new: bool) -> Command:
    """Give a command an option for each field of a key."""
    limit = _LIMIT if is_new else OrWord(_LIMIT, "unlimited")
    for option in (
        click.option(
            "--network",
            "allowed_networks",
            multiple=True,
            type=NETWORK if is_new else OrWord(NETWORK, "anywhere"),
            help="A network that it may be used from, instead of any others; may be repeated.",
        ),
        click.option(
            "--expires-in",
            "expires_at",
            type=_VALIDITY if is_new else OrWord(_VALIDITY, "never"),
            help="How long from now it is valid, such as 30d.",
        ),
        click.option(
            "--scope",
            "scopes",
            multiple=True,
            type=click.Choice(SCOPES),
            metavar="SCOPE",
            help=f"What it may do, all of it: {_SCOPES}",
        ),
        click.option("--per-day", type=limit, help="Enterprise only: requests a day."),
        click.option("--per-minute", type=limit, help="Enterprise only: requests a minute."),
        click.option(
            "--plan",
            required=is_new,
            type=click.Choice(list(PLANS)),
            help="How many requests it may make.",
        ),
        click.option(
            "--name", required=is_new, type=key_name, metavar="NAME", help="What the key is for."
        ),
    ):
        command = option(command)
    return command


@click.group(cls=SectionedGroup)
def keys() -> None:
    """Issue, list, change and revoke API keys. A running service applies it within a second.

    With a key in PETSTORE_KEY that has the scope keys:admin, requests go to the service at --url.
    Without one, the commands work on the database itself.
    """


@keys.command()
@partial(_field_options, is_new=True)
@partial(resource_options, client=partial(store_client_option, creates=True))
def create(*, client: "Client", as_json: bool, **options: Any) -> None:
    """Issue a key, and print its token once, alone on standard output. It is stored nowhere.

    By default it may do everything with pets and orders, from anywhere, and does not expire.
    """
    _print_issued(client.keys.create.raw(**_fields(options)), "created", as_json=as_json)


@keys.command("list")
@click.option(
    "--name",
    type=TEXT,
    help="Words of the name, the ID, or the last four characters of the token.",
)
@store_list_options
def list_keys(*, client: "Client", name: str | None, **options: Any) -> None:
    """List keys by ID, without their tokens."""
    _KEYS.show_list(partial(client.keys.list, name=name), **options)


@keys.command()
@_id_argument
@store_options
def show(*, key_id: int, client: "Client", as_json: bool) -> None:
    """Show one key."""
    key = client.keys.get.raw(key_id).json()
    if as_json:
        print_json(key)
        return
    key["state"] = _state(key["state"], key["bannedUntil"])
    for name, value in key.items():
        label = re.sub("([A-Z])", r" \1", name).lower()
        unlimited = value is None and name in ("perMinute", "perDay")
        click.echo(f"{label:16}  {'unlimited' if unlimited else printable(_text(value))}")


def _text(value: Any) -> str:
    if isinstance(value, list):
        value = " ".join(value)
    return "-" if value in (None, "") else str(value)


@keys.command()
@_id_argument
@partial(_field_options, is_new=False)
@store_options
def change(*, key_id: int, client: "Client", as_json: bool, **options: Any) -> None:
    """Change a key. Fields without an option do not change, and its usage carries over."""
    changed = client.keys.update.raw(key_id, **_fields(options))
    if as_json:
        print_json(changed.json())
    else:
        click.echo(f"Key {key_id} changed.", err=True)


@keys.command()
@_id_argument
@click.option(
    "--grace",
    type=duration(),
    default="0s",
    show_default=True,
    help="How long the old token stays valid, such as 1h.",
)
@store_options
def rotate(*, key_id: int, grace: Milliseconds, client: "Client", as_json: bool) -> None:
    """Issue a new token for a key, and print it alone on standard output. Usage carries over."""
    issued = client.keys.rotate.raw(key_id, grace_seconds=grace // SECOND)
    _print_issued(issued, "rotated", as_json=as_json)


@click.command("rotate-key")
@click.option(
    "--grace",
    type=duration(),
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
@_id_argument
@store_options
def revoke(*, key_id: int, client: "Client", as_json: bool) -> None:
    """Revoke a key for good."""
    client.keys.revoke(key_id)
    _print_changed(client, key_id, "revoked", as_json=as_json)


@keys.command()
@_id_argument
@store_options
def unban(*, key_id: int, client: "Client", as_json: bool) -> None:
    """Lift the ban of a key."""
    client.keys.unban(key_id)
    _print_changed(client, key_id, "unbanned", as_json=as_json)


def _print_changed(client: "Client", key_id: int, done: str, *, as_json: bool) -> None:
    if as_json:
        print_json(client.keys.get.raw(key_id).json())
    else:
        click.echo(f"Key {key_id} {done}.", err=True)


def _print_issued(response: "Response[KeyWithToken]", done: str, *, as_json: bool) -> None:
    key = response.value
    print_secret(
        "token",
        printable(key.token),
        f"Key {key.id} ({printable(key.name)}) {done}. The token is shown this once.",
        f"key {key.id} was {done}, but nobody saw its token: petstore keys rotate {key.id} issues"
        " another",
        response.json() if as_json else None,
    )


def _fields(options: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a key that options name."""
    fields = given(options)
    if fields.get("expires_at") is not None:
        fields["expires_at"] = datetime.now(UTC) + timedelta(milliseconds=fields["expires_at"])
    if "allowed_networks" in fields:
        fields["allowed_networks"] = _networks(fields["allowed_networks"])
    return fields


def _networks(given: tuple[Any, ...]) -> list[str]:
    """Return the networks of a key, none for the word ``anywhere``."""
    networks = [network for network in given if network is not NONE]
    if networks and len(networks) < len(given):
        msg = "--network: expected networks or the word anywhere, not both"
        raise click.UsageError(msg)
    return networks
