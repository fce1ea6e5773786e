"""A key may give another key only rights that it has itself."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from petstore.errors import BeyondOwnRights
from petstore.keys.model import SCOPES, Caller, check_rights
from support.exploration import explored

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
