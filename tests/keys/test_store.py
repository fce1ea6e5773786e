"""Creating, changing, rotating, revoking and unbanning keys: the rules."""

import asyncio
from typing import Any

import pytest

from petstore.clock import SECOND
from petstore.databases.contract import Statement, Store
from petstore.domain.plans import PlanName
from petstore.errors import InvalidBody, KeyEnded
from petstore.keys.model import Key
from petstore.keys.store import get_key, list_keys
from support.keys import change, issue, revoke, rotate, stored_key, unban
from support.manual_clock import ManualClock

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]

NAMES_OF_LIMITS = {"per_minute": "perMinute", "per_day": "perDay"}


async def found(store: Store, clock: ManualClock) -> Key:
    """Return the first key of the store."""
    return await get_key(store, 1, None, clock)


@pytest.mark.parametrize("plan", ["free", "pro", "business"])
@pytest.mark.parametrize("limit", NAMES_OF_LIMITS)
@pytest.mark.usefixtures("database")
async def test_only_an_enterprise_key_can_have_custom_limits(
    store: Store, clock: ManualClock, plan: PlanName, limit: str
) -> None:
    reason = f"^{NAMES_OF_LIMITS[limit]}: only a key of the plan enterprise .* not {plan}$"
    wanted: dict[str, Any] = {limit: 5}
    with pytest.raises(InvalidBody, match=reason):
        await issue(store, clock, plan=plan, **wanted)
    assert (await list_keys(store, None, None, 100, clock)).items == []
    key_id = (await issue(store, clock, plan=plan)).id
    before = await found(store, clock)
    with pytest.raises(InvalidBody, match=reason):
        await change(store, clock, key_id, **wanted)
    assert await found(store, clock) == before


async def test_a_key_that_has_ended_cannot_be_rotated(store: Store, clock: ManualClock) -> None:
    await issue(store, clock, expires_at=clock() + SECOND)
    await revoke(store, clock, (await issue(store, clock)).id)
    clock.advance(1)
    for key_id, state in ((1, "expired"), (2, "revoked")):
        reason = f"^key {key_id} is {state}; only an active key can be rotated$"
        with pytest.raises(KeyEnded, match=reason):
            await rotate(store, clock, key_id)


async def test_a_key_leaving_enterprise_loses_its_limits(store: Store, clock: ManualClock) -> None:
    key_id = (await issue(store, clock, plan="enterprise", per_minute=5, per_day=70)).id
    with pytest.raises(InvalidBody):
        await change(store, clock, key_id, plan="pro", per_minute=7)
    for plan, limits in (("pro", (300, 10_000)), ("enterprise", (None, None))):
        changed = await change(store, clock, key_id, plan=plan)
        assert (changed.per_minute, changed.per_day) == limits


async def test_concurrent_changes_are_all_kept(store: Store, clock: ManualClock) -> None:
    key_id = (await issue(store, clock)).id
    await asyncio.gather(
        change(store, clock, key_id, name="new"),
        change(store, clock, key_id, plan="pro"),
        revoke(store, clock, key_id),
        unban(store, clock, key_id),
    )
    key = await stored_key(store, key_id)
    assert (key.name, key.plan, key.revoked_at, key.unbanned_at) == ("new", "pro", clock(), clock())


async def test_each_unban_is_later_than_the_previous_one(store: Store, clock: ManualClock) -> None:
    issued = await issue(store, clock)
    await unban(store, clock, issued.id)
    clock.advance(-60)
    await unban(store, clock, issued.id)
    assert (await stored_key(store, issued.id)).unbanned_at == clock() + 60_001


async def test_every_change_increments_the_revision(store: Store, clock: ManualClock) -> None:
    key_id = (await issue(store, clock)).id
    select = Statement("SELECT revision FROM api_key_revision", name="select_key_revision")
    for number, attempt in enumerate(
        (
            change(store, clock, key_id, name="new"),
            rotate(store, clock, key_id),
            unban(store, clock, key_id),
            revoke(store, clock, key_id),
        ),
        2,
    ):
        await attempt
        assert await store.read(select) == [(number,)]
