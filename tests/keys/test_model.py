"""API keys as values: tokens, when a key can be used, its fields, and which rights it may give."""

import json
import re
import string
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import asdict, replace

from petstore.clock import DAY
from petstore.domain.decoding import decode_json
from petstore.errors import BeyondOwnRights, InvalidBody
from petstore.keys.model import (
    LONGEST_LIFE,
    PREFIXES,
    ROLES,
    SCOPES,
    Caller,
    Environment,
    KeyCreate,
    KeyPatch,
    KeyState,
    check_rights,
    digest,
    is_token,
    new_token,
    operator,
)
from support.cases import case
from support.exploration import explored

BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase
TOKEN = b"ps_live_0123456789ABCDEFGHIJKLMNOPQRSTUV27v6EQ"
NOW = 1_000_000


def test_each_role_adds_scopes_and_a_new_key_has_those_of_a_clerk() -> None:
    viewer, clerk = {"pets:read", "orders:read"}, {"pets:write", "orders:write"}
    scopes = {
        "viewer": viewer,
        "clerk": viewer | clerk,
        "manager": viewer | clerk | {"webhooks:write"},
        "administrator": viewer | clerk | {"webhooks:write", "keys:admin"},
    }
    assert scopes == ROLES
    new = KeyCreate("Till")
    assert (new.plan, new.scopes) == ("free", ROLES["clerk"])


def test_a_caller_is_named_by_its_kind_and_id() -> None:
    a_key = Caller("Till", id=3, environment="staging", created_at=0)
    for caller, kind, actor in (
        (a_key, "key", "key/3"),
        (replace(a_key, role="viewer"), "person", "person/3"),
        (operator("staging"), "operator", "operator"),
    ):
        assert (caller.kind, caller.actor) == (kind, actor)
    everything = frozenset(SCOPES)
    assert operator("staging") == replace(
        a_key, name="operator", plan="enterprise", id=0, scopes=everything
    )
    assert LONGEST_LIFE == 36_500 * DAY


@pytest.mark.parametrize(
    "token",
    [
        *(b"", b"ps_live_", TOKEN[:-1], TOKEN + b"0", TOKEN + b"\n", b" " + TOKEN),
        *(TOKEN.lower(), TOKEN.replace(b"_", b"-")),
        *(TOKEN[:20] + b"\xff" + TOKEN[21:], TOKEN[:20] + b"\xef\xbc\x91" + TOKEN[23:]),
    ],
)
def test_a_malformed_token_is_refused(token: bytes) -> None:
    assert not is_token(token, "production")


@explored(50)
@given(st.integers(0, len(TOKEN) - 1), st.integers(0, 255))
def test_a_typo_of_any_character_is_refused(position: int, character: int) -> None:
    typo = TOKEN[:position] + bytes([character]) + TOKEN[position + 1 :]
    assert is_token(typo, "production") is (typo == TOKEN)


@pytest.mark.parametrize(("environment", "prefix"), [("production", "live"), ("staging", "test")])
def test_a_token_is_a_prefix_32_random_characters_and_6_of_checksum(
    environment: Environment, prefix: str
) -> None:
    token = new_token(environment)
    assert re.fullmatch(rf"ps_{prefix}_[0-9A-Za-z]{{38}}", token)
    value = 0
    for digit in token[-6:]:
        value = value * 62 + BASE62.index(digit)
    assert value == crc32(token[:-6].encode())
    for each in PREFIXES:  # of one environment, it is invalid in the other
        assert is_token(token.encode(), each) == (each == environment)
    assert len({new_token(environment) for _ in range(200)}) == 200


def test_a_token_is_stored_as_its_sha256() -> None:
    assert digest(TOKEN) == sha256(TOKEN).digest()


@pytest.mark.parametrize(
    ("expires_at", "revoked_at", "state"),
    [
        (None, None, "active"),
        (NOW + 1, None, "active"),
        (NOW, None, "expired"),
        (NOW - 1, None, "expired"),
        (None, NOW - 1, "revoked"),
        (None, NOW + 1, "revoked"),
        (NOW - 1, NOW - 2, "revoked"),
    ],
)
def test_a_key_is_active_until_it_expires_or_is_revoked(
    expires_at: int | None, revoked_at: int | None, state: KeyState
) -> None:
    key = Caller(
        *("test", "free"),
        id=1,
        environment="production",
        created_at=0,
        expires_at=expires_at,
        revoked_at=revoked_at,
    )
    assert key.state(NOW) == state


REFUSED: dict[str, tuple[str, tuple[Any, ...]]] = {
    "name": (
        "1 to 100 printable characters, not only white space",
        ("", "   ", "x" * 101, "two\nlines", "\x1b[31m", "\u202e", 7, None),
    ),
    "plan": ("one of 'free', 'pro', 'business', 'enterprise'", ("gold", "", "Free", 1, None)),
    "perMinute": ("an integer from 1 to 2147483646", (0, -1, 2**31 - 1, 1.5, "5", True, [])),
    "perDay": ("an integer from 1 to 2147483646", (0, -1, 2**31 - 1, 1.5, "5", True, [])),
    "scopes": (
        f"a list of one or more of {', '.join(map(repr, SCOPES))}",
        ([], ["pets"], ["pets:read", "all"], "pets:read", [1], {}, None),
    ),
    "expiresAt": (
        "a date and time as in 2026-12-24T10:00:00Z",
        ("soon", "2026-12-24", "2030-01-01T00:00:00", "2026-13-24T10:00:00Z", 5, True),
    ),
    "allowedNetworks": (
        "a list of up to 32 networks such as 203.0.113.0/24 or 2001:db8::/32",
        (["10.0.0.0/8"] * 33, "10.0.0.0/8", [7], {}, None),
    ),
}


@pytest.mark.parametrize("field", REFUSED)
@pytest.mark.parametrize("struct", [KeyCreate, KeyPatch])
def test_an_invalid_value_is_refused_naming_the_field(struct: type, field: str) -> None:
    expected, values = REFUSED[field]
    for value in values:
        with case(value), pytest.raises(InvalidBody) as refused:
            decode_json(json.dumps({"name": "Till", field: value}).encode(), struct)
        assert refused.value.message == f"{field}: expected {expected}"


@pytest.mark.parametrize(
    ("field", "value", "name", "meant"),
    [
        ("name", "x" * 100, "name", "x" * 100),
        ("perMinute", 1, "per_minute", 1),
        ("perDay", 2**31 - 2, "per_day", 2**31 - 2),
        ("perMinute", None, "per_minute", None),
        ("scopes", ["keys:admin"], "scopes", frozenset({"keys:admin"})),
        ("expiresAt", "2030-01-01T00:00:00Z", "expires_at", datetime(2030, 1, 1, tzinfo=UTC)),
        ("expiresAt", None, "expires_at", None),
        ("allowedNetworks", ["::1"] * 32, "allowed_networks", ("::1",) * 32),
    ],
)
def test_a_patch_names_what_it_changes(field: str, value: Any, name: str, meant: Any) -> None:
    patch = asdict(decode_json(json.dumps({field: value}).encode(), KeyPatch))
    assert patch == dict.fromkeys(KeyCreate.__struct_fields__, UNSET) | {name: meant}


PRO = Caller(
    *("pro", "pro"),
    id=1,
    scopes=frozenset({"keys:admin", "pets:read"}),
    environment="production",
    created_at=0,
    expires_at=1_000,
)

# Parts of 10.0.0.0/29, and addresses inside and outside of it: enough to compare them all.
NETWORKS = (
    *("10.0.0.0/29", "10.0.0.0/30", "10.0.0.4/30", "10.0.0.0/31", "10.0.0.2/31", "10.0.0.7/32"),
    "2001:db8::/127",
)
ADDRESSES = frozenset(
    [*(f"10.0.0.{number}" for number in range(9)), *(f"2001:db8::{number}" for number in range(3))]
)

OUTSIDE = "allowedNetworks: your key cannot give {}, which is outside its own networks"

own_limits = st.none() | st.sampled_from([1, 59, 60, 61, 300, 999, 1_000, 1_001, 100_000, 100_001])
plans_and_limits = st.sampled_from(["free", "pro", "business"]).map(
    lambda plan: (plan, None, None)
) | st.tuples(st.just("enterprise"), own_limits, own_limits)
ends = st.none() | st.integers(1, 3)


@st.composite
def keys(draw: st.DrawFn) -> Caller:
    plan, per_minute, per_day = draw(plans_and_limits)
    scopes = draw(st.frozensets(st.sampled_from(SCOPES)))
    return replace(
        PRO,
        plan=plan,
        per_minute=per_minute,
        per_day=per_day,
        scopes=scopes,
        expires_at=draw(ends),
        allowed_networks=tuple(draw(st.sets(st.sampled_from(NETWORKS), max_size=3))),
    )


def end(key: Caller) -> float:
    return float("inf") if key.expires_at is None else key.expires_at


def addresses(key: Caller) -> frozenset[str]:
    """Return the addresses that a key works from."""
    return frozenset(address for address in ADDRESSES if key.works_from(address))


@pytest.mark.parametrize(
    ("wanted", "refusal"),
    [
        (
            {"scopes": frozenset({"pets:write", "orders:read", "pets:read"})},
            "scopes: your key cannot give orders:read, pets:write, because it does not have it",
        ),
        ({"plan": "business"}, "plan: your key cannot give a higher perMinute than its own, 300"),
        (
            {"plan": "enterprise", "per_minute": 300},
            "plan: your key cannot give a higher perDay than its own, 10000",
        ),
        (
            {"plan": "enterprise", "per_minute": 301, "per_day": 1},
            "perMinute: your key cannot give a higher perMinute than its own, 300",
        ),
        ({"expires_at": None}, "expiresAt: your key cannot give a longer life than its own"),
        ({"expires_at": 1_001}, "expiresAt: your key cannot give a longer life than its own"),
        *(
            ({"allowed_networks": networks}, OUTSIDE.format(beyond))
            for networks, beyond in {
                (): "anywhere",
                ("10.0.0.0/7",): "10.0.0.0/7",
                ("10.1.0.0/16", "192.0.2.7/32"): "192.0.2.7/32",
                ("::/0",): "::/0",
            }.items()
        ),
    ],
)
def test_a_right_that_the_key_lacks_is_refused_and_named(
    wanted: dict[str, Any], refusal: str
) -> None:
    giver = replace(PRO, allowed_networks=("10.0.0.0/8",))
    with pytest.raises(BeyondOwnRights) as refused:
        check_rights(giver, replace(giver, **wanted))
    assert refused.value.message == refusal


def test_a_key_without_networks_works_from_any_address() -> None:
    assert PRO.works_from("192.0.2.1")
    assert PRO.works_from("")
    assert "networks" not in vars(PRO)


@given(giver=keys(), key=keys(), before=st.none() | keys())
@explored(200)
def test_a_key_gets_only_rights_that_the_caller_has_or_it_had_before(
    giver: Caller, key: Caller, before: Caller | None
) -> None:
    sources = [giver] if before is None else [giver, before]
    allowed = (
        key.scopes <= frozenset().union(*(each.scopes for each in sources))
        and key.limits.per_minute <= max(each.limits.per_minute for each in sources)
        and key.limits.per_day <= max(each.limits.per_day for each in sources)
        and end(key) <= max(map(end, sources))
        and addresses(key) <= frozenset().union(*map(addresses, sources))
    )
    try:
        check_rights(giver, key, before)
    except BeyondOwnRights:
        assert not allowed
    else:
        assert allowed
