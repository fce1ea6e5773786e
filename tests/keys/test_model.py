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

from petstore.domain.decoding import decode_json
from petstore.errors import BeyondOwnRights, InvalidBody
from petstore.keys.model import (
    PREFIXES,
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
)
from support.exploration import explored

BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase
TOKEN = b"ps_live_0123456789ABCDEFGHIJKLMNOPQRSTUV27v6EQ"
NOW = 1_000_000


def key(expires_at: int | None = None, revoked_at: int | None = None) -> Caller:
    return Caller(
        "test",
        id=1,
        environment="production",
        created_at=0,
        expires_at=expires_at,
        revoked_at=revoked_at,
    )


@pytest.mark.parametrize(
    "token",
    [
        b"",
        b"ps_live_",
        TOKEN[:-1],
        TOKEN + b"0",
        TOKEN + b"\n",
        b" " + TOKEN,
        TOKEN.lower(),
        TOKEN.replace(b"_", b"-"),
        TOKEN[:20] + b"\xff" + TOKEN[21:],
        TOKEN[:20] + b"\xef\xbc\x91" + TOKEN[23:],
    ],
)
def test_a_malformed_token_is_refused(token: bytes) -> None:
    assert not is_token(token, "production")


@explored(50)
@given(st.integers(0, len(TOKEN) - 1), st.integers(0, 255))
def test_a_typo_of_any_character_is_refused(position: int, character: int) -> None:
    typo = TOKEN[:position] + bytes([character]) + TOKEN[position + 1 :]
    assert is_token(typo, "production") is (typo == TOKEN)


@explored(50)
@given(st.integers(8, len(TOKEN) - 2))
def test_a_token_with_two_swapped_characters_is_refused(position: int) -> None:
    swapped = bytearray(TOKEN)
    swapped[position : position + 2] = reversed(swapped[position : position + 2])
    assert is_token(bytes(swapped), "production") is (swapped == TOKEN)


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


def test_every_token_is_unique() -> None:
    assert len({new_token("production") for _ in range(200)}) == 200


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
    assert key(expires_at, revoked_at).state(NOW) == state


LIMIT = "an integer from 1 to 2147483646"
A_LIST_OF_SCOPES = (
    "a list of one or more of 'pets:read', 'pets:write', 'orders:read', 'orders:write',"
    " 'webhooks:write', 'keys:admin'"
)
A_LIST_OF_NETWORKS = "a list of up to 32 networks such as 203.0.113.0/24 or 2001:db8::/32"


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("name", "", "1 to 100 printable characters, not only white space"),
        ("name", "x" * 101, "1 to 100 printable characters, not only white space"),
        ("name", "\n", "1 to 100 printable characters, not only white space"),
        ("plan", "gold", "one of 'free', 'pro', 'business', 'enterprise'"),
        *(("perMinute", value, LIMIT) for value in (0, 2**31 - 1)),
        *(("perDay", value, LIMIT) for value in (0, 2**31 - 1)),
        *(("scopes", value, A_LIST_OF_SCOPES) for value in ([], ["pets"])),
        ("expiresAt", "2030-01-01T00:00:00", "a date and time as in 2026-12-24T10:00:00Z"),
        ("allowedNetworks", ["10.0.0.0/8"] * 33, A_LIST_OF_NETWORKS),
    ],
)
@pytest.mark.parametrize("struct", [KeyCreate, KeyPatch])
def test_an_invalid_value_is_refused(
    struct: type, field: str, value: object, expected: str
) -> None:
    with pytest.raises(InvalidBody) as refused:
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
    id=1,
    name="pro",
    plan="pro",
    per_minute=None,
    per_day=None,
    scopes=frozenset({"keys:admin", "pets:read"}),
    environment="production",
    created_at=0,
    expires_at=1_000,
    revoked_at=None,
    unbanned_at=None,
)

# Parts of 10.0.0.0/29, and addresses inside and outside of it: enough to compare them all.
NETWORKS = (
    *("10.0.0.0/29", "10.0.0.0/30", "10.0.0.4/30", "10.0.0.0/31", "10.0.0.2/31", "10.0.0.7/32"),
    "2001:db8::/127",
)
ADDRESSES = frozenset(
    [*(f"10.0.0.{number}" for number in range(9)), *(f"2001:db8::{number}" for number in range(3))]
)

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


def may_give(giver: Caller, key: Caller, before: Caller | None = None) -> bool:
    try:
        check_rights(giver, key, before)
    except BeyondOwnRights:
        return False
    return True


def end(key: Caller) -> float:
    return float("inf") if key.expires_at is None else key.expires_at


def addresses(key: Caller) -> frozenset[str]:
    """Return the addresses that a key works from."""
    return frozenset(address for address in ADDRESSES if key.works_from(address))


def has_no_more(key: Caller, other: Caller) -> bool:
    """Return whether ``key`` can do nothing that ``other`` cannot."""
    return (
        key.scopes <= other.scopes
        and key.limits.per_minute <= other.limits.per_minute
        and key.limits.per_day <= other.limits.per_day
        and end(key) <= end(other)
        and addresses(key) <= addresses(other)
    )


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
    ],
)
def test_a_right_that_the_key_lacks_is_refused_and_named(
    wanted: dict[str, Any], refusal: str
) -> None:
    with pytest.raises(BeyondOwnRights) as refused:
        check_rights(PRO, replace(PRO, **wanted))
    assert refused.value.message == refusal


@pytest.mark.parametrize(
    ("wanted", "beyond"),
    [
        ((), "anywhere"),
        (("10.0.0.0/7",), "10.0.0.0/7"),
        (("10.1.0.0/16", "192.0.2.7/32"), "192.0.2.7/32"),
        (("::/0",), "::/0"),
    ],
)
def test_a_network_outside_those_of_the_key_is_refused_and_named(
    wanted: tuple[str, ...], beyond: str
) -> None:
    giver = replace(PRO, allowed_networks=("10.0.0.0/8",))
    with pytest.raises(BeyondOwnRights) as refused:
        check_rights(giver, replace(PRO, allowed_networks=wanted))
    assert refused.value.message == (
        f"allowedNetworks: your key cannot give {beyond}, which is outside its own networks"
    )


def test_a_key_without_networks_works_from_any_address() -> None:
    assert PRO.works_from("192.0.2.1")
    assert PRO.works_from("")
    assert "networks" not in vars(PRO)


@given(giver=keys(), key=keys())
def test_a_new_key_has_no_more_rights_than_its_creator(giver: Caller, key: Caller) -> None:
    assert may_give(giver, key) == has_no_more(key, giver)


@given(first=keys(), second=keys(), third=keys())
@explored(200)  # few are chains
def test_a_chain_of_keys_never_grants_more_than_the_first_key_has(
    first: Caller, second: Caller, third: Caller
) -> None:
    is_chain = may_give(first, second) and may_give(second, third)
    assert may_give(first, third) or not is_chain


@given(giver=keys(), key=keys(), before=keys())
def test_a_changed_key_gets_only_rights_that_it_or_the_caller_had(
    giver: Caller, key: Caller, before: Caller
) -> None:
    allowed = (
        key.scopes <= giver.scopes | before.scopes
        and key.limits.per_minute <= max(giver.limits.per_minute, before.limits.per_minute)
        and key.limits.per_day <= max(giver.limits.per_day, before.limits.per_day)
        and end(key) <= max(end(giver), end(before))
        and addresses(key) <= addresses(giver) | addresses(before)
    )
    assert may_give(giver, key, before) == allowed
