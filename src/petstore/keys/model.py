"""Callers, which are keys and people: scopes, states, tokens, and what one may give another."""

import re
import secrets
import string
from functools import cached_property
from hashlib import sha256
from itertools import chain
from typing import Annotated, Generic, Literal, TypeAlias, TypeVar, get_args
from zlib import crc32

from msgspec import UNSET, Meta, Struct, UnsetType

from petstore.clock import DAY, Milliseconds
from petstore.domain.fields import Id, Moment, Time, TimeText, open_list, patch_of, printable_text
from petstore.domain.networks import MAX_NETWORKS, Network, compiled_networks, contain, outside
from petstore.domain.plans import PLANS, UNLIMITED, Limits, PlanName
from petstore.errors import BeyondOwnRights

Environment: TypeAlias = Literal["production", "staging"]
Scope: TypeAlias = Literal[
    "pets:read", "pets:write", "orders:read", "orders:write", "webhooks:write", "keys:admin"
]
KeyState: TypeAlias = Literal["active", "expired", "revoked"]
Role: TypeAlias = Literal["viewer", "clerk", "manager", "administrator"]
CallerKind: TypeAlias = Literal["key", "person", "operator"]

SCOPES: tuple[Scope, ...] = get_args(Scope)
DEFAULT_SCOPES: tuple[Scope, ...] = SCOPES[:4]
ROLES: dict[Role, frozenset[Scope]] = {
    "viewer": frozenset({"pets:read", "orders:read"}),
    "clerk": frozenset(SCOPES[:4]),
    "manager": frozenset(SCOPES[:5]),
    "administrator": frozenset(SCOPES),
}
PREFIXES: dict[Environment, str] = {"production": "ps_live_", "staging": "ps_test_"}

LONGEST_LIFE: Milliseconds = 100 * 365 * DAY
"""The maximum life of a key, or of its old token."""

_NEVER: Milliseconds = 2**63
_BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase
_CHECKSUM_LENGTH = 6
_TOKEN = re.compile(rb"ps_(?:live|test)_[0-9A-Za-z]{38}\Z")

KeyName = Annotated[str, printable_text(100, "The name of the key.")]
_Plan = Annotated[PlanName, Meta(description="The plan, which sets the limits of the key.")]
_Limit = Annotated[
    int,
    Meta(
        ge=1,
        le=UNLIMITED - 1,
        description="The key's own limit, only for the plan enterprise; null means no limit.",
    ),
]
_Scopes = Annotated[
    frozenset[Scope],
    Meta(
        min_length=1,
        description="The scopes of the key.",
        extra={"expected": f"a list of one or more of {', '.join(map(repr, SCOPES))}"},
    ),
]
# The longest address has 45 characters, the longest prefix four.
_Network = Annotated[str, Meta(extra_json_schema={"minLength": 2, "maxLength": 49})]
_Networks = Annotated[
    tuple[_Network, ...],
    Meta(
        max_length=MAX_NETWORKS,
        description=(
            "The networks that the key may be used from, in CIDR notation or as single addresses."
            " An empty list means anywhere."
        ),
        extra={
            "expected": (
                f"a list of up to {MAX_NETWORKS} networks such as 203.0.113.0/24 or 2001:db8::/32"
            )
        },
    ),
]
_ExpiresAt = Annotated[
    Moment, Meta(description="When the key expires, within the next 100 years; null means never.")
]
_BanLevel = Annotated[int, Meta(description="The step of the ban, from 1: each one doubles it.")]

_MomentT = TypeVar("_MomentT")


class KeyFields(Struct, Generic[_MomentT], frozen=True, rename="camel"):
    """Stored ``allowed_networks`` are in canonical form; without any, it works from anywhere."""

    name: KeyName
    plan: _Plan = "free"
    per_minute: _Limit | None = None
    per_day: _Limit | None = None
    scopes: _Scopes = frozenset(DEFAULT_SCOPES)
    expires_at: _MomentT | None = None
    allowed_networks: _Networks = ()


class KeyCreate(KeyFields[_ExpiresAt], frozen=True):
    """A key to create."""


KeyPatch = patch_of(KeyCreate, "KeyPatch", "The fields of a key to change (RFC 7396).")


class Caller(KeyFields[Milliseconds], frozen=True, kw_only=True, dict=True):
    """Who calls an operation: a key as stored, without its tokens, or a person, who has a ``role``.

    A person has the scopes of the role and no limits, and is disabled where a key is revoked. The
    operator at the command line has the ``id`` 0.
    """

    id: int
    environment: Environment
    created_at: Milliseconds
    revoked_at: Milliseconds | None = None
    unbanned_at: Milliseconds | None = None
    role: Role | None = None

    @property
    def kind(self) -> CallerKind:
        if self.id == 0:
            return "operator"
        return "key" if self.role is None else "person"

    @property
    def actor(self) -> str:
        """Its name in events, such as ``person/2``."""
        return f"{self.kind}/{self.id}" if self.id else self.kind

    @cached_property
    def limits(self) -> Limits:
        """Its plan's, or its own on Enterprise."""
        minute, day = PLANS[self.plan]
        return Limits(
            minute if self.per_minute is None else self.per_minute,
            day if self.per_day is None else self.per_day,
        )

    @cached_property
    def networks(self) -> tuple[Network, ...]:
        return compiled_networks(self.allowed_networks)

    def works_from(self, address: str) -> bool:
        return not self.allowed_networks or contain(self.networks, address)

    @property
    def end(self) -> Milliseconds:
        """When it expires; after every other moment if never."""
        return _NEVER if self.expires_at is None else self.expires_at

    def state(self, now: Milliseconds) -> KeyState:
        if self.revoked_at is not None:
            return "revoked"
        if self.expires_at is not None and now >= self.expires_at:
            return "expired"
        return "active"


def operator(environment: Environment) -> Caller:
    return Caller(
        *("operator", "enterprise"),
        scopes=frozenset(SCOPES),
        id=0,
        environment=environment,
        created_at=0,
    )


def check_rights(giver: Caller, key: Caller, before: Caller | None = None) -> None:
    """Reject a ``key`` with more than its ``giver`` has and it had ``before``."""
    scopes = key.scopes - giver.scopes - (before.scopes if before else frozenset())
    if scopes:
        named = ", ".join(sorted(scopes))
        raise BeyondOwnRights(f"scopes: your key cannot give {named}, because it does not have it")
    had = before.limits if before else Limits(0, 0)
    fields = (("perMinute", key.per_minute), ("perDay", key.per_day))
    for (field, set_here), limit, own, old in zip(
        fields, key.limits, giver.limits, had, strict=True
    ):
        if limit > max(own, old) and key.role is None:  # a person has none, whoever gave the role
            name = "plan" if set_here is None else field
            msg = f"{name}: your key cannot give a higher {field} than its own, {own}"
            raise BeyondOwnRights(msg)
    if key.end > max(giver.end, before.end if before else 0):
        raise BeyondOwnRights("expiresAt: your key cannot give a longer life than its own")
    allowed = [each.allowed_networks for each in (giver, before) if each is not None]
    networks = compiled_networks(chain.from_iterable(allowed))
    beyond = outside(key.networks, networks) if key.networks else "anywhere"
    if all(allowed) and beyond is not None:  # else one of them works from anywhere
        msg = f"allowedNetworks: your key cannot give {beyond}, which is outside its own networks"
        raise BeyondOwnRights(msg)


class KeyNoticeData(Struct, frozen=True, rename="camel", kw_only=True):
    """The data of ``key.limit_near``, ``key.banned`` and ``key.expiring``."""

    key_id: Annotated[int, Meta(description="The `id` of the key.")]
    percent: Annotated[int, Meta(description="The used percentage of its day.")] | UnsetType = UNSET
    limit: Annotated[int, Meta(description="Its requests a day.")] | UnsetType = UNSET
    used: Annotated[int, Meta(description="Its requests of this day.")] | UnsetType = UNSET
    reset_at: Annotated[TimeText, Meta(description="When the next day begins.")] | UnsetType = UNSET
    banned_at: Annotated[TimeText, Meta(description="When the ban began.")] | UnsetType = UNSET
    banned_until: Annotated[TimeText, Meta(description="When the ban ends.")] | UnsetType = UNSET
    level: _BanLevel | UnsetType = UNSET
    expires_at: Annotated[TimeText, Meta(description="When the key expires.")] | UnsetType = UNSET


def new_token(environment: Environment) -> str:
    """Return a prefix, 32 random base62 characters, and 6 of the CRC-32 of both."""
    body = PREFIXES[environment] + "".join(secrets.choice(_BASE62) for _ in range(32))
    return body + _checksum(body.encode("ascii"))


def is_token(token: bytes, environment: Environment) -> bool:
    return (
        token.startswith(PREFIXES[environment].encode("ascii"))
        and _TOKEN.match(token) is not None
        and token[-_CHECKSUM_LENGTH:].decode("ascii") == _checksum(token[:-_CHECKSUM_LENGTH])
    )


def digest(token: bytes) -> bytes:
    return sha256(token).digest()


def _checksum(body: bytes) -> str:
    value, base = crc32(body), len(_BASE62)
    powers = range(_CHECKSUM_LENGTH - 1, -1, -1)
    return "".join(_BASE62[value // base**power % base] for power in powers)


class Key(Struct, frozen=True, rename="camel"):
    """An API key, without its tokens. A null limit is unlimited; a null time is never."""

    id: Id
    name: Annotated[str, Meta(description="What the key is for.")]
    plan: Annotated[str, Meta(description=open_list(PLANS, "plans"))]
    per_minute: Annotated[int, Meta(description="Requests a minute; null is unlimited.")] | None
    per_day: Annotated[int, Meta(description="Requests a day; null is unlimited.")] | None
    scopes: Annotated[
        list[Annotated[str, Meta(description=open_list(SCOPES, "scopes"))]],
        Meta(description="What it may do."),
    ]
    allowed_networks: Annotated[
        list[str], Meta(description="Its IP allowlist, in CIDR notation; empty means anywhere.")
    ]
    environment: Annotated[
        Environment, Meta(description="The environment of the services that take it.")
    ]
    token_ends: Annotated[str, Meta(description="The last four characters of its newest token.")]
    state: Annotated[KeyState, Meta(description="Only an active key can be used.")]
    banned_until: (
        Annotated[Time, Meta(description="When its ban ends; null if it is not banned.")] | None
    )
    created_at: Annotated[Time, Meta(description="When it was created.")]
    expires_at: Annotated[Time, Meta(description="When it ends; null is never.")] | None
    last_used_at: (
        Annotated[Time, Meta(description="When it was last used, to about a minute.")] | None
    )


class KeyWithToken(Key, frozen=True):
    """A key and its token, which is shown only once."""

    token: Annotated[str, Meta(description="The token, which is shown only this once.")]
