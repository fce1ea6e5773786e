"""``petstore people``: add, list, change, invite and disable the people of the console."""

from typing import Any, get_args

import click
import msgspec
from msgspec import to_builtins

from petstore.cli.options import (
    ID,
    assumed_address,
    database_option,
    database_page_options,
    given,
    json_option,
    key_name,
    link_options,
    service_url,
)
from petstore.cli.output import (
    SectionedGroup,
    note_more,
    print_json,
    print_secret,
    print_table,
    printable,
)
from petstore.cli.stores import in_store, note_new_store
from petstore.clock import HOUR, system_clock
from petstore.databases.contract import Store, T, Unit
from petstore.domain.cursors import BY_ID
from petstore.keys.model import PREFIXES, ROLES, Environment
from petstore.keys.store import Principal
from petstore.people.model import Login, Person, PersonCreate, PersonState, PersonWithInvitation
from petstore.people.store import add_person, change_person, invite_person, list_people
from petstore.sessions.store import INVITATION_LIFE

_AT_ONCE = 500
_DISPENSABLE = ("created", "last seen (UTC)")
_DATE, _TO_THE_MINUTE = len("2026-12-01"), len("2026-12-01T12:00")
_ROLE = click.Choice(list(ROLES))
_ENVIRONMENT = click.Choice(list(PREFIXES))


def _login(value: str) -> str:
    """Return ``value`` if it can be a login."""
    try:
        login = msgspec.convert(value, Login)
    except msgspec.ValidationError:
        login = ""
    if not login.isprintable() or not login:  # bytes that are not UTF-8 are not printable
        msg = "expected 3 to 64 visible characters, without white space."
        raise click.BadParameter(msg)
    return login


@click.group(cls=SectionedGroup)
def people() -> None:
    """Add, invite and change the people of the console. A running service applies it at once."""


@people.command()
@click.option(
    "--name", required=True, type=key_name, metavar="NAME", help="The name that others see."
)
@click.option(
    "--login", required=True, type=_login, metavar="LOGIN", help="What the person signs in with."
)
@click.option("--role", required=True, type=_ROLE, help="What the person may do.")
@click.option(
    "--environment",
    type=_ENVIRONMENT,
    envvar="PETSTORE_ENVIRONMENT",
    show_envvar=True,
    default="production",
    show_default=True,
    help="Where the person works.",
)
@link_options
@json_option
@database_option
def add(
    *,
    environment: Environment,
    as_json: bool,
    database: str,
    public_url: str,
    host: str,
    port: int,
    **options: Any,
) -> None:
    """Add a person, and print the link that sets a password once, alone on standard output."""
    root, now = service_url(public_url, host, port), system_clock()
    note_new_store(database)
    unit = add_person(PersonCreate(**options), Principal(), environment, now)
    added = _write(database, unit, create=True)
    shown = added.shown(root, now)
    _print_invitation(shown, assumed_address(public_url, root), as_json=as_json)


@people.command("list")
@click.option("--role", type=_ROLE, help="Filters by role.")
@click.option("--state", type=click.Choice(get_args(PersonState)), help="Filters by state.")
@click.option("--environment", type=_ENVIRONMENT, help="Filters by environment.")
@database_page_options
@json_option
@database_option
def list_all(
    *,
    environment: Environment | None,
    as_json: bool,
    as_page: bool,
    database: str,
    limit: int,
    after: int,
    **filters: str | None,
) -> None:
    """List people by ID: all of them unless an option filters."""

    async def read(store: Store) -> list[Person]:
        people: list[Person] = []
        start: int | None = after
        while start is not None and len(people) <= limit:
            page = await list_people(store, environment, start, _AT_ONCE)
            people += [person for person in page.items if _is_wanted(person, filters)]
            start = page.next_after
        return people

    listed = in_store(database, read)
    cursor = BY_ID.encode(listed[limit - 1].id) if len(listed) > limit else None
    found = to_builtins(listed[:limit])
    if as_page:
        print_json({"items": found, "next": cursor})
        return
    if as_json:
        print_json(found)
    elif found:
        print_table([*map(_row, found)], _DISPENSABLE, "--json")
    else:
        is_filtered = environment is not None or any(filters.values())
        click.echo("No person matches." if is_filtered else "There are no people yet.", err=True)
    note_more(cursor)


@people.command()
@click.argument("person_id", metavar="ID", type=ID)
@click.option("--name", type=key_name, metavar="NAME", help="The name that others see.")
@click.option("--login", type=_login, metavar="LOGIN", help="What the person signs in with.")
@click.option("--role", type=_ROLE, help="What the person may do.")
@json_option
@database_option
def change(*, person_id: int, as_json: bool, database: str, **options: Any) -> None:
    """Change a person. Fields without an option do not change."""
    _change(database, person_id, given(options), "changed", as_json=as_json)


@people.command()
@click.argument("person_id", metavar="ID", type=ID)
@link_options
@json_option
@database_option
def invite(
    *, person_id: int, as_json: bool, database: str, public_url: str, host: str, port: int
) -> None:
    """Print a link with which a person sets a new password, once. Earlier links end.

    The password until now works until the link is used.
    """
    root, now = service_url(public_url, host, port), system_clock()
    added = _write(database, invite_person(person_id, Principal(), now))
    shown = added.shown(root, now)
    _print_invitation(shown, assumed_address(public_url, root), as_json=as_json)


@people.command()
@click.argument("person_id", metavar="ID", type=ID)
@json_option
@database_option
def disable(*, person_id: int, as_json: bool, database: str) -> None:
    """Disable a person: they are signed out, and cannot sign in until they are enabled again."""
    _change(database, person_id, {"state": "disabled"}, "disabled", as_json=as_json)


@people.command()
@click.argument("person_id", metavar="ID", type=ID)
@json_option
@database_option
def enable(*, person_id: int, as_json: bool, database: str) -> None:
    """Enable a person again, who then signs in with the same password."""
    _change(database, person_id, {"state": "active"}, "enabled", as_json=as_json)


def _change(
    database: str, person_id: int, changes: dict[str, Any], done: str, *, as_json: bool
) -> None:
    unit = change_person(person_id, changes, Principal(), system_clock())
    person = _write(database, unit)
    if as_json:
        print_json(to_builtins(person))
    else:
        click.echo(f"Person {person_id} {done}.", err=True)


def _print_invitation(shown: PersonWithInvitation, where: str, *, as_json: bool) -> None:
    print_secret(
        "link",
        shown.invitation.url,
        f"Give this link to person {shown.id} ({printable(shown.name)}). It sets a password, once,"
        f" within {INVITATION_LIFE // HOUR} hours{where}:",
        f"nobody saw it: petstore people invite {shown.id} makes another",
        to_builtins(shown) if as_json else None,
    )


def _is_wanted(person: Person, filters: dict[str, str | None]) -> bool:
    return filters["role"] in (person.role, None) and filters["state"] in (person.state, None)


def _write(database: str, unit: Unit[T], *, create: bool = False) -> T:
    return in_store(database, lambda store: store.write(unit), create=create)


def _row(person: dict[str, Any]) -> dict[str, str]:
    seen = person["lastSeenAt"]
    return {
        "id": str(person["id"]),
        "name": person["name"],
        "login": person["login"],
        "role": person["role"],
        "state": person["state"],
        "created": person["createdAt"][:_DATE],
        "last seen (UTC)": "-" if seen is None else seen[:_TO_THE_MINUTE].replace("T", " "),
    }
