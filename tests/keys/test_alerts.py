"""The keys that need a look: near a limit, banned, or about to expire."""

from collections.abc import Sequence
from typing import Any

import pytest

from petstore.clock import DAY, MINUTE, SECOND
from petstore.databases.contract import Store
from petstore.keys.alerts import MAX_ALERTS, find_alerts
from petstore.keys.notices import KeyNotices
from petstore.keys.status import get_key
from petstore.keys.uses import KeyUse, find_use
from petstore.limits.contract import State
from petstore.limits.database import StoredRateLimits
from support.keys import issue, revoke, unban
from support.manual_clock import ManualClock

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]

SEVERAL = 2


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


def named(uses: Sequence[KeyUse]) -> list[tuple[int, int, int]]:
    return [(use.key.id, use.minute, use.day) for use in uses]


async def test_a_key_is_near_the_limit_of_its_minute_from_80_percent_until_the_minute_ends(
    store: Store, clock: ManualClock
) -> None:
    await used(store, clock, minute_started=clock(), minute_used=47, day_used=47)
    near = await used(store, clock, minute_started=clock(), minute_used=48, day_used=48)
    clock.advance(59.999)
    assert named((await find_alerts(store, "production", clock())).near_limit) == [(near, 48, 48)]
    clock.advance(0.001)
    assert await find_alerts(store, "production", clock()) == ([], [], [])


async def test_a_key_is_near_the_limit_of_its_day_long_after_its_last_request(
    store: Store, clock: ManualClock
) -> None:
    await used(store, clock, minute_started=clock(), minute_used=1, day_used=799)
    near = await used(store, clock, minute_started=clock(), minute_used=1, day_used=800)
    assert named((await find_alerts(store, "production", clock())).near_limit) == [(near, 1, 800)]
    await KeyNotices(store, clock, []).look()
    clock.advance(3600)
    assert named((await find_alerts(store, "production", clock())).near_limit) == [(near, 0, 800)]
    clock.advance(DAY / SECOND)
    assert (await find_alerts(store, "production", clock())).near_limit == []


async def test_a_key_without_limits_is_never_near_a_limit(store: Store, clock: ManualClock) -> None:
    key_id = (await issue(store, clock, plan="enterprise")).id
    state = State(minute_started=clock(), minute_used=10**6, day=clock() // DAY, day_used=10**9)
    await StoredRateLimits(store).save([(key_id, state)])
    assert (await find_alerts(store, "production", clock())).near_limit == []


async def test_a_key_is_banned_until_its_ban_ends_or_is_lifted(
    store: Store, clock: ManualClock
) -> None:
    longer, shorter, lifted = [
        await used(store, clock, banned_at=clock(), banned_until=clock() + minutes * MINUTE)
        for minutes in (10, 5, 7)
    ]
    await unban(store, clock, lifted)
    banned = (await find_alerts(store, "production", clock())).banned
    assert [use.key.id for use in banned] == [shorter, longer]
    clock.advance(5 * 60)
    banned = (await find_alerts(store, "production", clock())).banned
    assert [use.key.id for use in banned] == [longer]


async def test_a_key_is_about_to_expire_for_14_days(store: Store, clock: ManualClock) -> None:
    day = DAY / SECOND
    later, sooner = [
        (await issue(store, clock, expires_at=clock() + days * DAY)).id for days in (15, 14)
    ]
    alerts = await find_alerts(store, "production", clock())
    assert named(alerts.expiring) == [(sooner, 0, 0)]
    clock.advance(2 * day)
    alerts = await find_alerts(store, "production", clock())
    assert [use.key.id for use in alerts.expiring] == [sooner, later]
    clock.advance(12 * day)
    alerts = await find_alerts(store, "production", clock())
    assert [use.key.id for use in alerts.expiring] == [later]


async def test_ended_keys_and_keys_of_another_environment_need_no_attention(
    store: Store, clock: ManualClock
) -> None:
    ban = {"banned_at": clock(), "banned_until": clock() + MINUTE}
    full = {"minute_started": clock(), "minute_used": 60, "day_used": 1000}
    for _ in range(SEVERAL):
        revoked = await used(store, clock, **ban, **full)  # banned, so not near a limit
        full_and_revoked = await used(store, clock, **full)
    alerts = await find_alerts(store, "production", clock())
    assert (len(alerts.near_limit), len(alerts.banned)) == (SEVERAL, SEVERAL)
    await revoke(store, clock, revoked)
    await revoke(store, clock, full_and_revoked)
    alerts = await find_alerts(store, "production", clock())
    assert (len(alerts.near_limit), len(alerts.banned)) == (1, 1)
    assert await find_alerts(store, "staging", clock()) == ([], [], [])


async def test_every_list_of_alerts_has_a_maximum_length(store: Store, clock: ManualClock) -> None:
    for _ in range(MAX_ALERTS + 1):
        await used(store, clock, minute_started=clock(), minute_used=60, day_used=1000)
    await KeyNotices(store, clock, []).look()
    assert len((await find_alerts(store, "production", clock())).near_limit) == MAX_ALERTS


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
