"""API keys: what a token looks like and what a key may do."""

import re
import secrets
import string
from functools import cached_property
from hashlib import sha256
from typing import Annotated, Literal, TypeAlias, get_args
from zlib import crc32

from msgspec import Meta, Struct

from petstore.clock import DAY, Milliseconds
from petstore.domain.fields import PRINTABLE
from petstore.domain.plans import Limits, PlanName, limits_of

Environment: TypeAlias = Literal["production", "staging"]
Scope: TypeAlias = Literal["pets:read", "pets:write", "orders:read", "orders:write", "keys:admin"]
KeyState: TypeAlias = Literal["active", "expired", "revoked"]

KeyName = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=100,
        pattern=PRINTABLE,
        description="What the key is for.",
        extra={"expected": "1 to 100 printable characters, not only white space"},
    ),
]

SCOPES: tuple[Scope, ...] = get_args(Scope)
DEFAULT_SCOPES: tuple[Scope, ...] = SCOPES[:4]
PREFIXES: dict[Environment, str] = {"production": "ps_live_", "staging": "ps_test_"}

LONGEST_LIFE: Milliseconds = 100 * 365 * DAY
"""How long a key or its old token is given at most."""

_NEVER: Milliseconds = 2**63
_BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase
_RANDOM_LENGTH = 32
_CHECKSUM_LENGTH = 6
_TOKEN = re.compile(rb"ps_(?:live|test)_[0-9A-Za-z]{38}\Z")


class ApiKey(Struct, frozen=True, dict=True):
    """A key as stored: everything but its tokens. Times are milliseconds since the epoch."""

    id: int
    name: str
    plan: PlanName
    per_minute: int | None
    per_day: int | None
    scopes: frozenset[Scope]
    environment: Environment
    created_at: Milliseconds
    expires_at: Milliseconds | None
    revoked_at: Milliseconds | None
    unbanned_at: Milliseconds | None

    @cached_property
    def limits(self) -> Limits:
        """The limits in force for this key."""
        return limits_of(self.plan, self.per_minute, self.per_day)

    @property
    def end(self) -> Milliseconds:
        """When it expires; later than any moment if it never does."""
        return _NEVER if self.expires_at is None else self.expires_at

    def state(self, now: Milliseconds) -> KeyState:
        """Return whether the key can be used at ``now``."""
        if self.revoked_at is not None:
            return "revoked"
        if self.expires_at is not None and now >= self.expires_at:
            return "expired"
        return "active"


class NewApiKey(Struct, frozen=True):
    """A key to create. Times are milliseconds since the epoch."""

    name: str
    plan: PlanName
    per_minute: int | None
    per_day: int | None
    scopes: frozenset[Scope]
    environment: Environment
    expires_at: Milliseconds | None


def new_token(environment: Environment) -> str:
    """Return a fresh token: prefix, 32 random base62 characters, 6 of CRC-32 over both."""
    body = PREFIXES[environment] + "".join(secrets.choice(_BASE62) for _ in range(_RANDOM_LENGTH))
    return body + _checksum(body.encode("ascii"))


def is_token(token: bytes, environment: Environment) -> bool:
    """Tell whether ``token`` has the form and checksum of a token of ``environment``."""
    return (
        token.startswith(PREFIXES[environment].encode("ascii"))
        and _TOKEN.match(token) is not None
        and token[-_CHECKSUM_LENGTH:].decode("ascii") == _checksum(token[:-_CHECKSUM_LENGTH])
    )


def digest(token: bytes) -> bytes:
    """Return the SHA-256 digest of a token: the only thing of it that is stored."""
    return sha256(token).digest()


def _checksum(body: bytes) -> str:
    value = crc32(body)
    digits = []
    for _ in range(_CHECKSUM_LENGTH):
        value, digit = divmod(value, len(_BASE62))
        digits.append(_BASE62[digit])
    return "".join(reversed(digits))
