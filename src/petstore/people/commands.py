"""``petstore people``: add, list, change, invite and disable the people of the console."""

from functools import partial
from typing import TYPE_CHECKING

import msgspec

from petstore.cli.client import store_client_option
from petstore.cli.operation_commands import OperationCommand
from petstore.cli.options import NAME, Parsed
from petstore.cli.output import SectionedGroup, print_secret, printable
from petstore.cli.resources import View
from petstore.people.model import Login

if TYPE_CHECKING:  # imported where it is used, so that `petstore --help` is instant
    from petstore_client import Response
    from petstore_client.models import Person, PersonWithInvitation

_PEOPLE: "View[Person]" = View(
    {
        "id": "id",
        "name": "name",
        "login": "login",
        "role": "role",
        "state": "state",
        "created": lambda person: f"{person.created_at:%Y-%m-%d}",
        "last seen (UTC)": "last_seen_at",
    },
    ("created", "last seen (UTC)"),
)


def _login(value: str) -> str | None:
    login = msgspec.convert(value, Login)
    return login if login.isprintable() else None  # bytes that are not UTF-8 are not


def _print_invitation(response: "Response[PersonWithInvitation]", *, as_json: bool) -> None:
    person = response.value
    print_secret(
        "link",
        printable(person.invitation.url),
        f"Give this link to person {person.id} ({printable(person.name)}). It sets a password,"
        " once, within 72 hours:",
        f"it was not shown: petstore people invite {person.id} makes another",
        response.json() if as_json else None,
    )


people = SectionedGroup(
    "people",
    help="""Add, invite and change the people of the console. A running service applies it at once.

    With a key in PETSTORE_KEY that has the scope keys:admin, requests go to the service at --url.
    Without one, the commands work on the database itself.
    """,
)
_TYPES = {"name": NAME, "login": Parsed("login", _login, "3 to 64 visible characters")}
_command = partial(OperationCommand, view=_PEOPLE, client=store_client_option, types=_TYPES)
_change = partial(_command, operation_id="updatePerson", method="people.update")
people.add_commands(
    _command(
        "add",
        "createPerson",
        "people.create",
        show=_print_invitation,
        client=partial(store_client_option, creates=True),
        help="""Add a person, and print the link that sets a password, alone on standard output.

        Without a key, the link begins with --url.
        """,
    ),
    _command("list", "listPeople", "people.list", help="List people by ID."),
    _change(
        "change",
        left_out=["state"],
        done="changed",
        help="Change a person. Fields without an option do not change.",
    ),
    _command(
        "invite",
        "invitePerson",
        "people.invite",
        show=_print_invitation,
        help="""Print a link with which a person sets a new password, once. Earlier links end.

        The current password works until the link is used. Without a key, the link begins with
        --url.
        """,
    ),
    _change(
        "disable",
        fixed={"state": "disabled"},
        only=[],
        done="disabled",
        help="Disable a person: they are signed out, and cannot sign in until enabled again.",
    ),
    _change(
        "enable",
        fixed={"state": "active"},
        only=[],
        done="enabled",
        help="Enable a person again, who then signs in with the same password.",
    ),
)
