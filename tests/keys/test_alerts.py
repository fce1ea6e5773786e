"""The keys that need attention: near the limit of their day, banned, or about to expire."""

from typing import Any

import pytest

from petstore.clock import DAY, MINUTE, SECOND
from petstore.databases.contract import Store
from petstore.keys.alerts import MAX_ALERTS, KeyAlerts, find_alerts
from petstore.keys.notices import EXPIRY_NOTICE, KeyNotices
from petstore.keys.status import get_key
from petstore.keys.uses import find_use
from petstore.limits.contract import State
from petstore.limits.database import StoredRateLimits
from support.keys import issue, revoke, unban
from support.manual_clock import ManualClock

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]


@pytest.fixture(autouse=True)
def noon(clock: ManualClock) -> None:
    """Begin at noon: the day does not end during a test."""
    clock.advance((DAY / 2 - clock() % DAY) / SECOND)


async def used(store: Store, clock: ManualClock, **state: Any) -> int:
    """Return the id of a new key of the plan free with a state, saved as the limiter does."""
    key_id = (await issue(store, clock)).id
    at_once = {"day": clock() // DAY, "used_at": clock()}
    await StoredRateLimits(store).save([(key_id, State(**at_once | state))])
    return key_id


async def alerts(store: Store, clock: ManualClock) -> tuple[list[int], list[int], list[int]]:
    """Return the ids of keys that are banned, near their limit and about to expire."""
    await KeyNotices(store, clock, []).look()
    found: KeyAlerts = await find_alerts(store, "production", clock())
    banned, near, expiring = (sorted(use.key.id for use in uses) for uses in found)
    return banned, near, expiring


async def test_a_key_is_near_the_limit_of_its_day_until_the_day_ends(
    store: Store, clock: ManualClock
) -> None:
    await used(store, clock, day_used=799)
    near, full = [await used(store, clock, day_used=used_today) for used_today in (800, 1000)]
    unlimited = (await issue(store, clock, plan="enterprise")).id
    state = State(day=clock() // DAY, day_used=10**9, used_at=clock())
    await StoredRateLimits(store).save([(unlimited, state)])
    assert await alerts(store, clock) == ([], [near, full], [])
    clock.advance(DAY / SECOND / 2)
    assert await alerts(store, clock) == ([], [], [])


async def test_a_key_is_banned_until_its_ban_ends_or_is_lifted(
    store: Store, clock: ManualClock
) -> None:
    longer, shorter, lifted = [
        await used(
            store, clock, banned_at=clock(), banned_until=clock() + minutes * MINUTE, day_used=1000
        )
        for minutes in (10, 5, 7)
    ]
    await unban(store, clock, lifted)
    assert await alerts(store, clock) == ([longer, shorter], [lifted], [])
    clock.advance(5 * 60)
    assert await alerts(store, clock) == ([longer], [shorter, lifted], [])


async def test_a_key_is_about_to_expire_for_7_days(store: Store, clock: ManualClock) -> None:
    key_id = (await issue(store, clock, expires_at=clock() + EXPIRY_NOTICE + MINUTE)).id
    await issue(store, clock, environment="staging", expires_at=clock() + DAY)
    for passed, expected in ((0, []), (MINUTE, [key_id]), (6 * DAY, [key_id]), (DAY, [])):
        clock.advance(passed / SECOND)
        assert await alerts(store, clock) == ([], [], expected)


async def test_a_revoked_key_needs_no_attention(store: Store, clock: ManualClock) -> None:
    ban = {"banned_at": clock(), "banned_until": clock() + MINUTE}
    keys = [await used(store, clock, **state) for state in (ban, {"day_used": 1000})]
    assert await alerts(store, clock) == ([keys[0]], [keys[1]], [])
    for key_id in keys:
        await revoke(store, clock, key_id)
    assert await alerts(store, clock) == ([], [], [])


async def test_every_list_of_alerts_has_a_maximum_length(store: Store, clock: ManualClock) -> None:
    for _ in range(MAX_ALERTS + 1):
        await used(store, clock, day_used=1000)
    assert len((await alerts(store, clock))[1]) == MAX_ALERTS


async def test_the_usage_of_a_key_is_current_and_reading_it_does_not_count(
    store: Store, clock: ManualClock
) -> None:
    unused = await issue(store, clock)
    assert await find_use(store, unused, clock()) == (unused, 0, 0)
    key_id = await used(store, clock, minute_started=clock(), minute_used=3, day_used=9)
    key = await get_key(store, key_id, None, clock)
    states = StoredRateLimits(store)
    before = await states.load(key_id)
    for seconds, use in ((0, (3, 9)), (60, (0, 9)), (DAY / SECOND, (0, 0))):
        clock.advance(seconds)
        found = await find_use(store, key, clock())
        assert (found.minute, found.day) == use
    assert await states.load(key_id) == before
