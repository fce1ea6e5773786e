"""People: who works in the console, by which login and with which role."""

import re
import secrets
from collections.abc import Mapping
from hashlib import blake2b, sha256
from hmac import compare_digest
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

from msgspec import Meta, Struct
from msgspec.structs import replace

from petstore.clock import DAY, HOUR, MINUTE, Milliseconds, utc_second
from petstore.domain.fields import VISIBLE, Id, Time, patch_of, printable_text
from petstore.domain.names import name_key
from petstore.domain.plans import UNLIMITED, Limits
from petstore.errors import BeyondOwnRights
from petstore.keys.model import ROLES, Caller, Role, check_rights

INVITATION_LIFE: Milliseconds = 72 * HOUR
MAX_LOGIN = 64
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
_Role = Annotated[Role, Meta(description="The role, from which the scopes of the person follow.")]
_NewState = Annotated[
    Literal["active", "disabled"],
    Meta(description="Whether the person may sign in. One without a password is then `invited`."),
]
_LastSeenAt = Annotated[
    Time, Meta(description="When the person last used the console, to about a minute.")
]


class PersonCreate(Struct, frozen=True):
    """A person to add."""

    name: PersonName
    login: Login
    role: _Role


class _ChangeablePerson(PersonCreate, frozen=True):
    state: _NewState


PersonPatch = patch_of(_ChangeablePerson, "PersonPatch", "Changes to a person (RFC 7396).")


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
    created_at: Annotated[Time, Meta(description="When the person was added.")]
    last_seen_at: _LastSeenAt | None


class Account(NamedTuple):
    """``password`` is a hash, ``None`` while there is none."""

    caller: Caller
    login: str
    password: str | None = None
    seen_at: Milliseconds | None = None

    @property
    def credential(self) -> bytes:
        """What sessions of the person end with: the digest of the hash."""
        return sha256((self.password or "").encode("utf-8")).digest()

    @property
    def state(self) -> PersonState:
        if self.caller.revoked_at is not None:
            return "disabled"
        return "active" if self.password else "invited"

    @property
    def administers(self) -> bool:
        return self.caller.role == "administrator" and self.state == "active"

    @property
    def shown(self) -> Person:
        caller, seen_at = self.caller, self.seen_at
        assert caller.role is not None  # noqa: S101 - or it would be a key
        return Person(
            *(caller.id, caller.name, self.login, caller.role, self.state),
            created_at=utc_second(caller.created_at),
            last_seen_at=None if seen_at is None else utc_second(seen_at),
        )

    def changed(self, changes: Mapping[str, Any], now: Milliseconds) -> "Account":
        """Return it with other fields, by their names in ``PersonPatch``."""
        before, after = self.shown, replace(self.shown, **changes)
        caller = replace(self.caller, name=after.name, role=after.role, scopes=ROLES[after.role])
        if after.state != before.state:
            caller = replace(caller, revoked_at=now if after.state == "disabled" else None)
        return self._replace(caller=caller, login=after.login)


class Invitation(Struct, frozen=True, rename="camel"):
    """A link that lets a person set a password, once."""

    url: Annotated[str, Meta(description="The link to give to the person. It works once.")]
    expires_at: Annotated[Time, Meta(description="When the link ends if it is not used.")]


class PersonWithInvitation(Person, frozen=True):
    """A person and a link for them, which is shown only once."""

    invitation: Annotated[
        Invitation, Meta(description="The link with which the person sets a password.")
    ]


def check_role(giver: Caller, person: Caller) -> None:
    """Reject a ``person`` who would have more than the ``giver`` has.

    No one knows when a person leaves, and people sign in anywhere. So a key that expires or has
    networks can give no role. Who administers keys can create one without limits, so a key with
    limits cannot give that.
    """
    if "keys:admin" in person.scopes and giver.limits != Limits(UNLIMITED, UNLIMITED):
        msg = "role: your key cannot give a role that creates keys without limits, as it has limits"
        raise BeyondOwnRights(msg)
    try:
        check_rights(giver, person)
    except BeyondOwnRights as error:
        raise BeyondOwnRights(f"role: {error.message.partition(': ')[2]}") from None


STAYS: Milliseconds = 30 * DAY
"""A session that stays ends this long after its last use."""

FRESH: Milliseconds = DAY
"""In an older session, a change to who may sign in needs one's own password."""

MAX_MARKS = 8
"""How many people a browser knows: they share the computer of a shop."""

_IDLE: Milliseconds = 30 * MINUTE
_LONGEST: Milliseconds = 12 * 60 * MINUTE
_STAYS_LONGEST: Milliseconds = 180 * DAY
_SEPARATOR = "."
_MARK_BYTES = 12
_COOKIE = re.compile(rf"[\w-]{{22}}(?:\.[0-9a-f]{{{2 * _MARK_BYTES}}}){{1,{MAX_MARKS}}}", re.ASCII)


def expiry(created_at: Milliseconds, used_at: Milliseconds, *, stays: bool) -> Milliseconds:
    idle, longest = (STAYS, _STAYS_LONGEST) if stays else (_IDLE, _LONGEST)
    return min(created_at + longest, used_at + idle)


class Browser(NamedTuple):
    """The session with the secret ``replaced`` ends. If it ``stays``, it lasts."""

    device: str = ""
    stays: bool = False
    replaced: str = ""


class Device(NamedTuple):
    """A session as its owner sees it; ``digest`` is the digest of its cookie."""

    digest: bytes
    device: str
    created_at: Milliseconds
    used_at: Milliseconds
    expires_at: Milliseconds
    stays: bool

    @property
    def id(self) -> int:
        """A number below 2^53, which JavaScript takes, too."""
        return int.from_bytes(self.digest[:7]) >> 3


class Session(NamedTuple):
    """It ends with its ``credential``: the digest of a token, or of the hash of a password."""

    caller: Caller
    credential: bytes
    device: Device


class DeviceCookie(NamedTuple):
    """Who has signed in with a browser, as its cookie says: a mark for each password."""

    id: str = ""
    marks: tuple[str, ...] = ()

    @property
    def cookie(self) -> str:
        return _SEPARATOR.join((self.id, *self.marks))

    def knows(self, credential: bytes) -> bool:
        """Return whether a password was used here, by the digest of its hash."""
        mark = _mark_of(self.id, credential)
        return any(compare_digest(mark, known) for known in self.marks)

    def with_mark(self, credential: bytes) -> "DeviceCookie":
        browser_id = self.id or secrets.token_urlsafe(16)
        mark = _mark_of(browser_id, credential)
        others = (known for known in self.marks if known != mark)
        return DeviceCookie(browser_id, (*others, mark)[-MAX_MARKS:])


def known_browser(cookie: str) -> DeviceCookie:
    if not _COOKIE.fullmatch(cookie):
        return DeviceCookie()
    browser_id, *marks = cookie.split(_SEPARATOR)
    return DeviceCookie(browser_id, tuple(marks))


def _mark_of(browser_id: str, credential: bytes) -> str:
    text = browser_id.encode("ascii")
    return blake2b(text, digest_size=_MARK_BYTES, key=credential).hexdigest()


def login_digest(login: str, size: int = 16) -> str:
    """Return the name of a login in the counts and in the log, however long it is."""
    return blake2b(name_key(login).encode("utf-8", "replace"), digest_size=size).hexdigest()
