"""Creating, changing, rotating, revoking and unbanning keys: the rules."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from petstore.clock import SECOND, utc_second
from petstore.databases.contract import Statement, Store
from petstore.domain.api_keys import is_token
from petstore.domain.plans import PlanName
from petstore.errors import InvalidBody, KeyEnded, NotFound
from petstore.store.key_status import Key, get_key, list_keys
from support.keys import change, issue, revoke, rotate, stored_key, unban
from support.manual_clock import ManualClock

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]

NAMES_OF_LIMITS = {"per_minute": "perMinute", "per_day": "perDay"}


async def found(store: Store, clock: ManualClock) -> Key:
    """Return the first key of the store."""
    return await get_key(store, 1, None, clock)


@pytest.mark.parametrize("plan", ["free", "pro", "business"])
@pytest.mark.parametrize("limit", NAMES_OF_LIMITS)
async def test_only_a_key_of_the_plan_enterprise_gets_limits_of_its_own(
    store: Store, clock: ManualClock, plan: PlanName, limit: str
) -> None:
    reason = f"^{NAMES_OF_LIMITS[limit]}: only a key of the plan enterprise .* not {plan}$"
    wanted: dict[str, Any] = {limit: 5}
    with pytest.raises(InvalidBody, match=reason):
        await issue(store, clock, plan=plan, **wanted)
    assert (await list_keys(store, None, None, 100, clock)).items == []
    issued = await issue(store, clock, plan=plan)
    with pytest.raises(InvalidBody, match=reason):
        await change(store, clock, issued.key.id, **wanted)
    assert await found(store, clock) == issued.key


async def test_leaving_enterprise_with_new_limits_is_refused(
    store: Store, clock: ManualClock
) -> None:
    issued = await issue(store, clock, plan="enterprise", per_minute=5)
    with pytest.raises(InvalidBody):
        await change(store, clock, issued.key.id, plan="pro", per_minute=7)
    assert await found(store, clock) == issued.key


CALLS: dict[str, Callable[[Store, ManualClock], Awaitable[Any]]] = {
    "get": lambda store, clock: get_key(store, 7, None, clock),
    "change": lambda store, clock: change(store, clock, 7, name="new"),
    "rotate": lambda store, clock: rotate(store, clock, 7),
    "revoke": lambda store, clock: revoke(store, clock, 7),
    "unban": lambda store, clock: unban(store, clock, 7),
}


@pytest.mark.parametrize("call", CALLS)
async def test_a_key_that_is_not_there_is_not_found(
    store: Store, clock: ManualClock, call: str
) -> None:
    with pytest.raises(NotFound, match=r"^there is no key 7$"):
        await CALLS[call](store, clock)


async def test_an_expired_key_cannot_be_rotated(store: Store, clock: ManualClock) -> None:
    issued = await issue(store, clock, expires_at=clock() + SECOND)
    clock.advance(1)
    with pytest.raises(KeyEnded, match=r"^key 1 is expired; only an active key can be rotated$"):
        await rotate(store, clock, issued.key.id)


async def test_a_revoked_key_cannot_be_rotated(store: Store, clock: ManualClock) -> None:
    issued = await issue(store, clock)
    await revoke(store, clock, issued.key.id)
    with pytest.raises(KeyEnded, match=r"^key 1 is revoked;"):
        await rotate(store, clock, issued.key.id)


async def test_a_new_key_is_what_was_asked_for(store: Store, clock: ManualClock) -> None:
    issued = await issue(
        store,
        clock,
        name="The shop \N{DOG FACE}",
        plan="enterprise",
        per_minute=5,
        per_day=70,
        scopes=frozenset({"pets:read", "keys:admin"}),
        environment="staging",
        expires_at=clock() + SECOND,
        allowed_networks=("192.0.2.7/32",),
        rehearse_sunset=True,
    )
    assert issued.key == Key(
        id=1,
        name="The shop \N{DOG FACE}",
        plan="enterprise",
        perMinute=5,
        perDay=70,
        scopes=["keys:admin", "pets:read"],
        allowedNetworks=["192.0.2.7/32"],
        rehearseSunset=True,
        environment="staging",
        state="active",
        bannedUntil=None,
        createdAt=utc_second(clock()),
        expiresAt=utc_second(clock() + SECOND),
        lastUsedAt=None,
    )
    assert await found(store, clock) == issued.key
    stored = await stored_key(store, issued.key.id)
    assert (stored.created_at, stored.expires_at) == (clock(), clock() + SECOND)
    assert is_token(issued.token.encode(), "staging")


async def test_a_key_may_be_without_any_scope(store: Store, clock: ManualClock) -> None:
    await issue(store, clock, scopes=frozenset())
    assert (await found(store, clock)).scopes == []


async def test_no_token_is_in_the_database(
    store: Store, clock: ManualClock, database: Path
) -> None:
    old = await issue(store, clock)
    new = await rotate(store, clock, old.key.id, SECOND)
    content = b"".join(path.read_bytes() for path in database.parent.glob("petstore.db*"))
    assert b"test" in content
    for token in (old.token, new.token):
        assert token.encode() not in content
        assert token[8:40].encode() not in content


async def test_fields_that_are_not_named_stay(store: Store, clock: ManualClock) -> None:
    issued = await issue(store, clock, plan="enterprise", per_minute=5, expires_at=clock() + SECOND)
    before = await stored_key(store, issued.key.id)
    changed = await change(store, clock, issued.key.id, name="new")
    assert changed == replace(issued.key, name="new")
    assert await found(store, clock) == changed
    assert await stored_key(store, issued.key.id) == replace(before, name="new")


async def test_everything_can_be_changed_at_once(store: Store, clock: ManualClock) -> None:
    issued = await issue(store, clock)
    changed = await change(
        store,
        clock,
        issued.key.id,
        name="new",
        plan="enterprise",
        per_minute=7,
        per_day=8,
        scopes=frozenset({"orders:read"}),
        expires_at=clock() + SECOND,
    )
    assert await found(store, clock) == changed
    assert changed == replace(
        issued.key,
        name="new",
        plan="enterprise",
        perMinute=7,
        perDay=8,
        scopes=["orders:read"],
        expiresAt=utc_second(clock() + SECOND),
    )


async def test_a_key_that_leaves_enterprise_loses_the_limits_of_its_own(
    store: Store, clock: ManualClock
) -> None:
    issued = await issue(store, clock, plan="enterprise", per_minute=5, per_day=70)
    changed = await change(store, clock, issued.key.id, plan="pro")
    assert (changed.perMinute, changed.perDay) == (300, 10_000)
    back = await change(store, clock, issued.key.id, plan="enterprise")
    assert (back.perMinute, back.perDay) == (None, None)


async def test_changes_made_at_once_are_all_kept(store: Store, clock: ManualClock) -> None:
    key_id = (await issue(store, clock)).key.id
    await asyncio.gather(
        change(store, clock, key_id, name="new"),
        change(store, clock, key_id, plan="pro"),
        revoke(store, clock, key_id),
        unban(store, clock, key_id),
    )
    key = await stored_key(store, key_id)
    assert (key.name, key.plan, key.revoked_at, key.unbanned_at) == (
        "new",
        "pro",
        clock(),
        clock(),
    )


async def test_rotating_keeps_the_key_and_gives_another_token(
    store: Store, clock: ManualClock
) -> None:
    old = await issue(store, clock, environment="staging")
    before = await stored_key(store, old.key.id)
    new = await rotate(store, clock, old.key.id)
    assert new.key == old.key
    assert await stored_key(store, old.key.id) == before
    assert new.token != old.token
    assert is_token(new.token.encode(), "staging")


async def test_revoking_again_changes_nothing(store: Store, clock: ManualClock) -> None:
    issued = await issue(store, clock)
    revoked = await revoke(store, clock, issued.key.id)
    assert revoked.state == "revoked"
    stored = await stored_key(store, issued.key.id)
    assert stored.revoked_at == clock()
    clock.advance(60)
    assert await revoke(store, clock, issued.key.id) == revoked
    assert await stored_key(store, issued.key.id) == stored


async def test_unbanning_pardons_what_was_until_now(store: Store, clock: ManualClock) -> None:
    issued = await issue(store, clock)
    clock.advance(60)
    await unban(store, clock, issued.key.id)
    assert (await stored_key(store, issued.key.id)).unbanned_at == clock()


async def test_each_pardon_is_later_than_the_one_before(store: Store, clock: ManualClock) -> None:
    issued = await issue(store, clock)
    await unban(store, clock, issued.key.id)
    clock.advance(-60)
    await unban(store, clock, issued.key.id)
    assert (await stored_key(store, issued.key.id)).unbanned_at == clock() + 60_001


SELECT_REVISION = Statement("SELECT revision FROM api_key_revision", name="select_key_revision")


async def test_every_change_is_noticed(store: Store, clock: ManualClock) -> None:
    issued = await issue(store, clock)
    key_id = issued.key.id
    revisions = [await store.read(SELECT_REVISION)]
    await change(store, clock, key_id, name="new")
    revisions.append(await store.read(SELECT_REVISION))
    await rotate(store, clock, key_id)
    revisions.append(await store.read(SELECT_REVISION))
    await unban(store, clock, key_id)
    revisions.append(await store.read(SELECT_REVISION))
    await revoke(store, clock, key_id)
    revisions.append(await store.read(SELECT_REVISION))
    assert revisions == [[(number,)] for number in range(1, 6)]
