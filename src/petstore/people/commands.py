"""``petstore people``: add, list, change, invite and disable the people of the console."""

from functools import partial
from typing import TYPE_CHECKING, Any

import click
import msgspec

from petstore.cli.client import store_client_option
from petstore.cli.options import ID, Command, given, key_name
from petstore.cli.output import SectionedGroup, print_json, print_secret, printable
from petstore.cli.resources import View, resource_options, store_list_options, store_options
from petstore.keys.model import ROLES
from petstore.people.model import Login

if TYPE_CHECKING:  # imported where it is used, so that `petstore --help` is instant
    from petstore_client import Client, Response
    from petstore_client.models import Person, PersonWithInvitation

_PEOPLE: "View[Person]" = View(
    {
        "id": lambda person: person.id,
        "name": lambda person: person.name,
        "login": lambda person: person.login,
        "role": lambda person: person.role,
        "state": lambda person: person.state,
        "created": lambda person: f"{person.created_at:%Y-%m-%d}",
        "last seen (UTC)": lambda person: person.last_seen_at,
    },
    ("created", "last seen (UTC)"),
)


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


_id_argument = click.argument("person_id", metavar="ID", type=ID)


def _field_options(command: Command, *, is_new: bool) -> Command:
    """Give a command an option for each field of a person."""
    for name, kind, metavar, text in (
        ("--role", click.Choice(list(ROLES)), None, "What the person may do."),
        ("--login", _login, "LOGIN", "What the person signs in with."),
        ("--name", key_name, "NAME", "The name that others see."),
    ):
        command = click.option(name, required=is_new, type=kind, metavar=metavar, help=text)(
            command
        )
    return command


@click.group(cls=SectionedGroup)
def people() -> None:
    """Add, invite and change the people of the console. A running service applies it at once.

    With a key in PETSTORE_KEY that has the scope keys:admin, requests go to the service at --url.
    Without one, the commands work on the database itself.
    """


@people.command()
@partial(_field_options, is_new=True)
@partial(resource_options, client=partial(store_client_option, creates=True))
def add(*, client: "Client", as_json: bool, **options: Any) -> None:
    """Add a person, and print the link that sets a password once, alone on standard output.

    Without a key, the link begins with --url.
    """
    _print_invitation(client.people.create.raw(**options), as_json=as_json)


@people.command("list")
@store_list_options
def list_people(*, client: "Client", **options: Any) -> None:
    """List people by ID."""
    _PEOPLE.show_list(client.people.list, **options)


@people.command()
@_id_argument
@partial(_field_options, is_new=False)
@store_options
def change(*, person_id: int, client: "Client", as_json: bool, **options: Any) -> None:
    """Change a person. Fields without an option do not change."""
    _change(client, person_id, given(options), "changed", as_json=as_json)


@people.command()
@_id_argument
@store_options
def invite(*, person_id: int, client: "Client", as_json: bool) -> None:
    """Print a link with which a person sets a new password, once. Earlier links end.

    The current password works until the link is used. Without a key, the link begins with --url.
    """
    _print_invitation(client.people.invite.raw(person_id), as_json=as_json)


@people.command()
@_id_argument
@store_options
def disable(*, person_id: int, client: "Client", as_json: bool) -> None:
    """Disable a person: they are signed out, and cannot sign in until they are enabled again."""
    _change(client, person_id, {"state": "disabled"}, "disabled", as_json=as_json)


@people.command()
@_id_argument
@store_options
def enable(*, person_id: int, client: "Client", as_json: bool) -> None:
    """Enable a person again, who then signs in with the same password."""
    _change(client, person_id, {"state": "active"}, "enabled", as_json=as_json)


def _change(
    client: "Client", person_id: int, changes: dict[str, Any], done: str, *, as_json: bool
) -> None:
    changed = client.people.update.raw(person_id, **changes)
    if as_json:
        print_json(changed.json())
    else:
        click.echo(f"Person {person_id} {done}.", err=True)


def _print_invitation(response: "Response[PersonWithInvitation]", *, as_json: bool) -> None:
    person = response.value
    print_secret(
        "link",
        printable(person.invitation.url),
        f"Give this link to person {person.id} ({printable(person.name)}). It sets a password,"
        " once, within 72 hours:",
        f"nobody saw it: petstore people invite {person.id} makes another",
        response.json() if as_json else None,
    )
