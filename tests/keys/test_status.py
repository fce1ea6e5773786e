"""The status of keys, as the people who manage them see it."""

import pytest
from msgspec.structs import replace

from petstore.clock import MINUTE, SECOND, utc_second
from petstore.databases.contract import Statement, Store
from petstore.keys.store import get_key, list_keys
from petstore.limits.database import StoredRateLimits
from petstore.limits.decide import NEVER, State
from support.keys import issue, unban
from support.manual_clock import ManualClock
from support.stores import do

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]


@pytest.mark.parametrize("ahead", [-20, 20])
async def test_a_ban_shows_until_it_is_lifted_despite_clock_skew(
    store: Store, clock: ManualClock, ahead: int
) -> None:
    issued = await issue(store, clock)
    states = StoredRateLimits(store)
    unbanned_at = NEVER
    for _ in range(3):
        now = clock() + ahead * SECOND
        state = State(banned_at=now, banned_until=now + MINUTE, unbanned_at=unbanned_at)
        await states.save([(issued.id, replace(state, used_at=now))])
        assert (await get_key(store, issued.id, None, clock)).banned_until is not None
        await unban(store, clock, issued.id)
        assert (await get_key(store, issued.id, None, clock)).banned_until is None
        # The limiter applies it to the next request.
        ((unbanned_at,),) = await store.read(Statement("SELECT unbanned_at FROM api_keys", ()))
        recalled = await states.load(issued.id)
        assert recalled is not None
        assert recalled.unbanned_at < unbanned_at
        clock.advance(1)


@pytest.mark.parametrize(
    ("used", "seen", "last"), [(None, 2, 2), (1, None, 1), (1, 2, 2), (2, 1, 2), (2, 2, 2)]
)
async def test_the_last_use_is_one_of_the_interface_or_of_the_console(
    store: Store, clock: ManualClock, used: int | None, seen: int | None, last: int
) -> None:
    key_id = (await issue(store, clock)).id
    start = clock()
    clock.advance(600)
    if used is not None:
        await StoredRateLimits(store).save([(key_id, State(used_at=start + used * MINUTE))])
    if seen is not None:
        at = start + seen * MINUTE + 999
        await store.write(do("UPDATE callers SET seen_at = ?2 WHERE id = ?1", key_id, at))
    expected = utc_second(start + last * MINUTE)
    assert (await get_key(store, key_id, None, clock)).last_used_at == expected
    (listed,) = (await list_keys(store, None, None, 100, clock)).items
    assert listed.last_used_at == expected
