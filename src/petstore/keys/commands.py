"""``petstore keys``: issue, list, change and revoke API keys."""

import re
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from petstore.cli.client import store_client_option
from petstore.cli.operation_commands import OperationCommand
from petstore.cli.options import NAME, NETWORK, Integer, OrWord, Parsed, duration
from petstore.cli.output import SectionedGroup, print_json, print_secret, printable
from petstore.cli.resources import View, resource_options
from petstore.clock import SECOND, Milliseconds, system_clock, utc_second
from petstore.domain.plans import UNLIMITED

if TYPE_CHECKING:  # imported where it is used, so that `petstore --help` is instant
    from petstore_client import Response
    from petstore_client.models import Key, KeyWithToken

_LIMIT = Integer(1, UNLIMITED - 1)
_LIFE = duration(min_seconds=1)


def _end(life: str) -> datetime:
    return datetime.now(UTC) + timedelta(milliseconds=_LIFE.convert(life, None, None))


def _date(moment: datetime | None) -> str:
    return "-" if moment is None else f"{moment:%Y-%m-%d}"


def _limits(key: "Key") -> str:
    if key.per_minute is None and key.per_day is None:
        return "unlimited"
    return f"{key.per_minute or '-'}/{key.per_day or '-'}"


_KEYS: "View[Key]" = View(
    {
        "id": "id",
        "name": "name",
        "plan": "plan",
        "per min/day": _limits,
        "scopes": lambda key: " ".join(key.scopes),
        "environment": "environment",
        "token ends": "token_ends",
        "state": lambda key: _state(key.state, key.banned_until),
        "created": lambda key: _date(key.created_at),
        "expires": lambda key: _date(key.expires_at),
        "last used (UTC)": "last_used_at",
    },
    ("scopes", "created", "environment", "expires", "token ends", "last used (UTC)", "plan"),
)


def _state(state: str, banned_until: object) -> str:
    return "banned" if banned_until and state == "active" else state


def _show(response: "Response[Key]", *, as_json: bool) -> None:
    key = response.json()
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


def _print_issued(
    response: "Response[KeyWithToken]", done: str = "rotated", *, as_json: bool
) -> None:
    key = response.value
    print_secret(
        "token",
        printable(key.token),
        f"Key {key.id} ({printable(key.name)}) {done}. The token is shown this once.",
        f"key {key.id} was {done}, but its token was not shown: petstore keys rotate {key.id}"
        " issues another",
        response.json() if as_json else None,
    )


@click.command("rotate-key")
@click.option(
    "--grace",
    type=duration(),
    default="1h",
    show_default=True,
    help="How long the old token stays valid.",
)
@resource_options
def rotate_own(*, client: Any, grace: Milliseconds, as_json: bool) -> None:
    """Issue a new token for your own key, and print it alone on standard output."""
    response = client.keys.rotate_current.raw(grace_seconds=grace // SECOND)
    key = response.value
    end = f"works until {utc_second(system_clock() + grace):%d %b %Y, %H:%M:%S} UTC at the latest"
    print_secret(
        "token",
        key.token,
        f"Key {key.id} ({printable(key.name)}) rotated. The old token"
        f" {end if grace else 'has ended'}. The new token is shown this once.",
        f"key {key.id} was rotated, but its token was not shown: ask an administrator of the keys",
        response.json() if as_json else None,
    )


keys = SectionedGroup(
    "keys",
    help="""Issue, list, change and revoke API keys. A running service applies it within a second.

    With a key in PETSTORE_KEY that has the scope keys:admin, requests go to the service at --url.
    Without one, the commands work on the database itself.
    """,
)
_command = partial(
    OperationCommand,
    view=_KEYS,
    client=store_client_option,
    words={"expires_at": "expires-in", "allowed_networks": "network"},
)
_end_type = Parsed("duration", _end, "a duration")
_TYPES = {
    "name": NAME,
    "per_minute": _LIMIT,
    "per_day": _LIMIT,
    "expires_at": _end_type,
    "allowed_networks": NETWORK,
}
_TYPES_OF_CHANGES = _TYPES | {
    "per_minute": OrWord(_LIMIT, "unlimited"),
    "per_day": OrWord(_LIMIT, "unlimited"),
    "expires_at": OrWord(_end_type, "never"),
    "allowed_networks": OrWord(NETWORK, "anywhere"),
}
keys.add_commands(
    _command(
        "create",
        "createKey",
        "keys.create",
        types=_TYPES,
        show=partial(_print_issued, done="created"),
        client=partial(store_client_option, creates=True),
        help="""Issue a key, and print its token once, alone on standard output. Nothing stores it.

        By default it may do everything with pets and orders, from anywhere, and does not expire.
        """,
    ),
    _command("list", "listKeys", "keys.list", help="List keys by ID, without their tokens."),
    _command("show", "getKey", "keys.get", show=_show, help="Show one key."),
    _command(
        "change",
        "updateKey",
        "keys.update",
        types=_TYPES_OF_CHANGES,
        done="changed",
        help="Change a key. Fields without an option do not change, and its usage carries over.",
    ),
    _command(
        "rotate",
        "rotateKey",
        "keys.rotate",
        show=_print_issued,
        help="Issue a new token for a key, and print it alone on standard output.",
    ),
    _command("revoke", "revokeKey", "keys.revoke", done="revoked", help="Revoke a key for good."),
    _command("unban", "unbanKey", "keys.unban", done="unbanned", help="Lift the ban of a key."),
)
