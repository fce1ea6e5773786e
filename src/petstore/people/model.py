"""People: who works in the console, by which login and with which role."""

from datetime import datetime
from typing import Annotated, Literal, NamedTuple, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType

from petstore.clock import HOUR, Milliseconds
from petstore.domain.fields import VISIBLE, Id, printable_text
from petstore.domain.plans import UNLIMITED, Limits
from petstore.errors import BeyondOwnRights
from petstore.keys.model import ROLES, Caller, Environment, Role, check_rights

INVITATION_LIFE: Milliseconds = 72 * HOUR
"""How long a link works that lets a person set a password."""

MAX_LOGIN = 64
"""The maximum length of a login, in characters."""

FIRST = 0
"""The id of nobody yet: the first person of a store, who has been invited."""

PersonState: TypeAlias = Literal["invited", "active", "disabled"]
"""Only an active person can sign in. One who is invited has no password yet."""

PersonName = Annotated[str, printable_text(100, "The name of the person, as others see it.")]
Login = Annotated[
    str,
    Meta(
        min_length=3,
        max_length=MAX_LOGIN,
        pattern=VISIBLE,
        description=(
            "What the person signs in with, unique ignoring case. An e-mail address is a good one."
        ),
        extra={"expected": "3 to 64 visible characters, without white space"},
    ),
]
_Role = Annotated[
    Role,
    Meta(
        description="The role, from which the scopes of the person follow.",
        extra={"expected": f"one of {', '.join(map(repr, ROLES))}"},
    ),
]
_NewState = Annotated[
    Literal["active", "disabled"],
    Meta(
        description="Whether the person may sign in. One without a password is then `invited`.",
        extra={"expected": "one of 'active', 'disabled'"},
    ),
]
_Time = Annotated[datetime, Meta(tz=True)]


class Account(NamedTuple):
    """A person, and the hash of the password, ``None`` while there is none.

    Sessions of the person end with its digest, the ``credential``.
    """

    caller: Caller
    login: str
    password: str | None
    credential: bytes


def first_account(environment: Environment, now: Milliseconds) -> Account:
    """Return the account that the first person of a store is to have."""
    caller = Caller(
        *("", "enterprise"), id=FIRST, environment=environment, created_at=now, role="administrator"
    )
    return Account(caller, "", None, b"")


class PersonCreate(Struct, frozen=True):
    """A person to add."""

    name: PersonName
    login: Login
    role: _Role


class PersonPatch(Struct, frozen=True):
    """Changes to a person (RFC 7396)."""

    name: PersonName | UnsetType = UNSET
    login: Login | UnsetType = UNSET
    role: _Role | UnsetType = UNSET
    state: _NewState | UnsetType = UNSET


class Person(Struct, frozen=True, rename="camel"):
    """A person who works in the console."""

    id: Id
    name: PersonName
    login: Login
    role: _Role
    state: Annotated[
        PersonState,
        Meta(
            description=(
                "Only an active person can sign in. One who is `invited` has not set a password"
                " yet."
            )
        ),
    ]
    created_at: Annotated[_Time, Meta(description="When the person was added.")]
    last_seen_at: (
        Annotated[
            _Time, Meta(description="When the person last used the console, to about a minute.")
        ]
        | None
    )


class Invitation(Struct, frozen=True, rename="camel"):
    """A link that lets a person set a password, once."""

    url: Annotated[str, Meta(description="The link to give to the person. It works once.")]
    expires_at: Annotated[_Time, Meta(description="When the link ends if nobody uses it.")]


class PersonWithInvitation(Person, frozen=True):
    """A person and a link for them, which is shown only once."""

    invitation: Annotated[
        Invitation, Meta(description="The link with which the person sets a password.")
    ]


class PersonDevice(Struct, frozen=True, rename="camel"):
    """A browser in which a person is signed in."""

    id: Id
    name: Annotated[
        str, Meta(description="What the browser says it is, or empty: `Firefox on Windows`.")
    ]
    signed_in_at: Annotated[_Time, Meta(description="When the person signed in there.")]
    last_used_at: Annotated[_Time, Meta(description="When it was last used, to about a minute.")]
    stays: Annotated[
        bool,
        Meta(description="Whether the person stays signed in until 30 days after the last use."),
    ]


def check_role(giver: Caller, person: Caller) -> None:
    """Refuse a ``person`` who would have more than the ``giver`` has.

    Nobody knows when a person leaves, and people sign in anywhere. So a key that expires or has
    networks can give no role. Who administers keys can create one without limits, so a key with
    limits cannot give that.
    """
    if "keys:admin" in person.scopes and giver.limits != Limits(UNLIMITED, UNLIMITED):
        msg = "role: your key cannot give a role that creates keys without limits, as it has limits"
        raise BeyondOwnRights(msg)
    try:
        check_rights(giver, person)
    except BeyondOwnRights as error:
        msg = f"role: {error.message.partition(': ')[2]}"
        raise BeyondOwnRights(msg) from None
