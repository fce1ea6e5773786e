"""``petstore keys``: issue, list, change and end API keys."""

import json
import re
import sys
from typing import Any

import click

from petstore.cli.in_store import in_store
from petstore.cli.option_types import Duration, Integer, KeyName, OrWord
from petstore.cli.settings_options import database_option
from petstore.clock import Milliseconds, rfc3339, system_clock
from petstore.domain.api_keys import DEFAULT_SCOPES, PREFIXES, SCOPES, ApiKey
from petstore.domain.plans import PLANS, UNLIMITED
from petstore.operations import api_keys
from petstore.operations.api_keys import ApiKeyChanges, IssuedKey
from petstore.operations.key_status import KeyStatus, key_status, key_statuses
from petstore.storage.api_keys import NewApiKey

_NAME_WIDTH = 24
_DISPENSABLE = ("scopes", "created", "environment", "expires", "last used (UTC)", "plan")
_WIDEST = 10_000
_DATE, _TO_THE_MINUTE = len("2026-12-01"), len("2026-12-01T12:00")


_LIMIT = Integer(1, UNLIMITED - 1)
_KEY_ID = Integer(1, 2**63 - 1)
_VALIDITY = Duration(least=1)
_NO_LIMIT, _NO_END = "unlimited", "never"
_ANY_LIMIT = OrWord(_LIMIT, _NO_LIMIT)
_ANY_VALIDITY = OrWord(_VALIDITY, _NO_END)
_PLAN = click.Choice(list(PLANS))
_SCOPE = click.Choice(SCOPES)


@click.group()
def keys() -> None:
    """Issue, list, change and end API keys. A running service follows within a second."""


@keys.command()
@click.option("--name", required=True, type=KeyName(), help="What the key is for.")
@click.option("--plan", required=True, type=_PLAN, help="How many requests it may make.")
@click.option("--per-minute", type=_LIMIT, help="Enterprise only: requests a minute.")
@click.option("--per-day", type=_LIMIT, help="Enterprise only: requests a day.")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=_SCOPE,
    help="What it may do; may be repeated. [default: all but keys:admin]",
)
@click.option("--expires-in", type=_VALIDITY, help="How long it is valid, such as 30d.")
@click.option(
    "--environment",
    type=click.Choice(list(PREFIXES)),
    envvar="PETSTORE_ENVIRONMENT",
    show_envvar=True,
    default="production",
    show_default=True,
    help="Where it is valid.",
)
@database_option
def create(**options: Any) -> None:
    """Issue a key. The token is printed once, alone on standard output, and stored nowhere."""
    new = NewApiKey(
        name=options["name"],
        plan=options["plan"],
        per_minute=options["per_minute"],
        per_day=options["per_day"],
        scopes=frozenset(options["scopes"] or DEFAULT_SCOPES),
        environment=options["environment"],
        expires_at=_expiry(options["expires_in"]),
    )
    _print_issued(
        in_store(
            options["database"],
            lambda store: api_keys.create_key(store, new, system_clock),
            create=True,
        ),
        "created",
    )


@keys.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array.")
@database_option
def list_keys(*, as_json: bool, database: str) -> None:
    """List all keys; their tokens are not known."""
    found = in_store(database, lambda store: key_statuses(store, system_clock))
    described = [_described(status) for status in found]
    if as_json:
        click.echo(json.dumps(described, indent=2))
    elif described:
        _print_table(described)
    else:
        click.echo("There are no keys yet.", err=True)


@keys.command()
@click.argument("key_id", metavar="ID", type=_KEY_ID)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
@database_option
def show(*, key_id: int, as_json: bool, database: str) -> None:
    """Show one key."""
    _print_key(in_store(database, lambda store: key_status(store, key_id, system_clock)), as_json)


@keys.command()
@click.argument("key_id", metavar="ID", type=_KEY_ID)
@click.option("--name", type=KeyName(), help="What the key is for.")
@click.option("--plan", type=_PLAN, help="How many requests it may make; its usage is kept.")
@click.option("--per-minute", type=_ANY_LIMIT, help="Enterprise only: requests a minute.")
@click.option("--per-day", type=_ANY_LIMIT, help="Enterprise only: requests a day.")
@click.option("--scope", "scopes", multiple=True, type=_SCOPE, help="What it may do, all of it.")
@click.option(
    "--expires-in", "expires_at", type=_ANY_VALIDITY, help="How long from now it is valid."
)
@database_option
def change(*, key_id: int, database: str, **options: Any) -> None:
    """Change a key; what is not named stays."""
    wanted = {name: value for name, value in options.items() if value not in (None, ())}
    if not wanted:
        msg = "nothing to change: name at least one option"
        raise click.UsageError(msg)
    if "scopes" in wanted:
        wanted["scopes"] = frozenset(wanted["scopes"])
    for name in ("per_minute", "per_day", "expires_at"):
        if wanted.get(name) in (_NO_LIMIT, _NO_END):
            wanted[name] = None
    if "expires_at" in wanted:
        wanted["expires_at"] = _expiry(wanted["expires_at"])
    changes = ApiKeyChanges(**wanted)
    in_store(database, lambda store: api_keys.change_key(store, key_id, changes))
    click.echo(f"Key {key_id} changed.", err=True)


@keys.command()
@click.argument("key_id", metavar="ID", type=_KEY_ID)
@click.option(
    "--grace",
    type=Duration(),
    default="0s",
    show_default=True,
    help="How long the old token lives on, such as 1h.",
)
@database_option
def rotate(*, key_id: int, grace: Milliseconds, database: str) -> None:
    """Issue a new token for a key, alone on standard output; usage and limits carry over."""
    issued = in_store(
        database, lambda store: api_keys.rotate_key(store, key_id, grace, system_clock)
    )
    _print_issued(issued, "rotated")


@keys.command()
@click.argument("key_id", metavar="ID", type=_KEY_ID)
@database_option
def revoke(*, key_id: int, database: str) -> None:
    """End a key for good."""
    in_store(database, lambda store: api_keys.revoke_key(store, key_id, system_clock))
    click.echo(f"Key {key_id} revoked.", err=True)


@keys.command()
@click.argument("key_id", metavar="ID", type=_KEY_ID)
@database_option
def unban(*, key_id: int, database: str) -> None:
    """Lift the ban of a key."""
    in_store(database, lambda store: api_keys.unban_key(store, key_id, system_clock))
    click.echo(f"Key {key_id} unbanned.", err=True)


def _print_issued(issued: IssuedKey, done: str) -> None:
    click.echo(issued.token)
    click.echo(
        f"Key {issued.key.id} ({issued.key.name}) {done}. The token is shown this once.", err=True
    )


def _expiry(duration: Milliseconds | None) -> Milliseconds | None:
    return None if duration is None else system_clock() + duration


def _described(status: KeyStatus) -> dict[str, Any]:
    key: ApiKey = status.key
    return {
        "id": key.id,
        "name": key.name,
        "plan": key.plan,
        "perMinute": None if key.limits.per_minute == UNLIMITED else key.limits.per_minute,
        "perDay": None if key.limits.per_day == UNLIMITED else key.limits.per_day,
        "scopes": sorted(key.scopes),
        "environment": key.environment,
        "state": status.state,
        "bannedUntil": _moment(status.banned_until),
        "created": _moment(key.created_at),
        "expires": _moment(key.expires_at),
        "lastUsed": _moment(status.used_at),
    }


def _moment(moment: Milliseconds | None) -> str | None:
    return None if moment is None else rfc3339(moment)


def _print_key(status: KeyStatus, as_json: bool) -> None:  # noqa: FBT001 - one flag, named at the call
    described = _described(status)
    if as_json:
        click.echo(json.dumps(described, indent=2))
        return
    for name, value in described.items():
        label = re.sub("([A-Z])", r" \1", name).lower()
        unlimited = value is None and name in ("perMinute", "perDay")
        click.echo(f"{label:12}  {'unlimited' if unlimited else _text(value)}")


def _print_table(keys: list[dict[str, Any]]) -> None:
    """Print a line for each key: on a narrow terminal fewer columns, elsewhere all of them."""
    from rich.console import Console

    console = Console(width=None if sys.stdout.isatty() else _WIDEST)
    rows = [_row(key) for key in keys]
    for left_out in range(len(_DISPENSABLE) + 1):
        table = _table(rows, [name for name in rows[0] if name not in _DISPENSABLE[:left_out]])
        options = console.options.update(max_width=_WIDEST)
        if console.measure(table, options=options).maximum <= console.width:
            break
    console.print(table)
    if left_out:
        missing = ", ".join(_DISPENSABLE[:left_out])
        click.echo(f"(no room for {missing}: see keys show ID, or --json)", err=True)


def _table(rows: list[dict[str, str]], columns: list[str]) -> Any:
    from rich.table import Table
    from rich.text import Text

    name_width = _NAME_WIDTH if sys.stdout.isatty() else None
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    for name in columns:
        if name == "name":
            table.add_column(name, overflow="fold", max_width=name_width)
        else:
            table.add_column(name, no_wrap=True)
    for row in rows:
        table.add_row(*(Text(row[name]) for name in columns))
    return table


def _row(key: dict[str, Any]) -> dict[str, str]:
    return {
        "id": str(key["id"]),
        "name": key["name"],
        "plan": key["plan"],
        "per min/day": _limits(key["perMinute"], key["perDay"]),
        "scopes": " ".join(key["scopes"]),
        "environment": key["environment"],
        "state": "banned" if key["bannedUntil"] and key["state"] == "active" else key["state"],
        "created": _text(key["created"])[:_DATE],
        "expires": _text(key["expires"])[:_DATE],
        "last used (UTC)": _text(key["lastUsed"])[:_TO_THE_MINUTE].replace("T", " "),
    }


def _limits(per_minute: int | None, per_day: int | None) -> str:
    if per_minute is None and per_day is None:
        return "unlimited"
    return f"{_text(per_minute)}/{_text(per_day)}"


def _text(value: Any) -> str:
    if value is None:
        return "-"
    return " ".join(value) if isinstance(value, list) else str(value)
