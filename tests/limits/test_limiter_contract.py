"""What every limiter does, on a real database, and on a real Redis for many processes."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from petstore.databases.sqlite import SqliteStore
from petstore.errors import Unavailable
from petstore.keys.model import Caller
from petstore.limits.database import StoredRateLimits
from petstore.limits.decide import NEVER, RateLimiter, State
from support.keys import issue_stored, usage_of
from support.manual_clock import ManualClock
from support.redis_limiters import OF_ADDRESS
from support.stores import locked

StartLimiter = Callable[[StoredRateLimits], Awaitable[RateLimiter]]

pytestmark = pytest.mark.anyio

TODAY = 20_788


class SlowStates(StoredRateLimits):
    """States that load slowly, as from a database across a network."""

    async def load(self, key_id: int) -> State | None:
        state = await super().load(key_id)
        await asyncio.sleep(0)
        return state


async def used_today(limiter: RateLimiter, key: Caller) -> int:
    return (await limiter.look(key)).day_used


async def test_200_concurrent_requests_are_admitted_exactly_up_to_the_limit(
    limiter: RateLimiter, key: Caller
) -> None:
    decisions = await asyncio.gather(*(limiter.take(key) for _ in range(200)))
    assert [decision.verdict for decision in decisions].count("admitted") == 60
    assert {decision.minute.remaining for decision in decisions} == set(range(60))


async def test_concurrent_requests_that_load_a_key_are_counted_exactly(
    start_limiter: StartLimiter, store: SqliteStore, key: Caller
) -> None:
    limiter = await start_limiter(SlowStates(store))
    await asyncio.gather(*(limiter.take(key) for _ in range(5)))
    assert await used_today(limiter, key) == 5


async def test_requests_during_a_save_are_counted_exactly(
    start_limiter: StartLimiter, states: StoredRateLimits, key: Caller
) -> None:
    limiter = await start_limiter(states)
    for _ in range(5):
        await asyncio.gather(*(limiter.take(key) for _ in range(4)), limiter.save())
        await asyncio.gather(limiter.save(), *(limiter.take(key) for _ in range(4)))
    await limiter.save()
    assert await used_today(limiter, key) == 40
    assert await used_today(await start_limiter(states), key) == 40


async def test_keys_do_not_share_their_windows(
    limiter: RateLimiter, key: Caller, store: SqliteStore, clock: ManualClock
) -> None:
    other = await issue_stored(store, clock)
    for _ in range(61):
        await limiter.take(key)
    assert (await limiter.take(other)).minute.remaining == 59


async def test_concurrent_charges_are_admitted_completely_up_to_the_day_limit(
    limiter: RateLimiter, key: Caller
) -> None:
    decisions = await asyncio.gather(*(limiter.charge(key, 300) for _ in range(20)))
    assert [decision.verdict for decision in decisions].count("admitted") == 3
    assert await used_today(limiter, key) == 900
    assert (await limiter.charge(key, 101)).verdict == "limited"
    assert (await limiter.charge(key, 100)).day.remaining == 0


async def test_a_charge_survives_a_restart_and_counts_in_the_usage(
    start_limiter: StartLimiter,
    states: StoredRateLimits,
    key: Caller,
    store: SqliteStore,
    clock: ManualClock,
) -> None:
    limiter = await start_limiter(states)
    await limiter.charge(key, 300)
    await limiter.save()
    assert await used_today(await start_limiter(states), key) == 300
    assert await usage_of(store, key.id) == [(TODAY, 300)]
    clock.advance(86_400)
    assert (await limiter.charge(key, 1)).day.remaining == 999


async def test_each_budget_counts_its_own_holders(limiter: RateLimiter) -> None:
    guess, other = OF_ADDRESS._replace(name="guess", per_minute=5), "192.0.2.2"
    assert (await limiter.look_at(OF_ADDRESS, "192.0.2.1")).described.remaining == 2
    verdicts = [(await limiter.take_of(OF_ADDRESS, "192.0.2.1")).verdict for _ in range(3)]
    assert verdicts == ["admitted", "admitted", "limited"]
    assert (await limiter.look_at(OF_ADDRESS, "192.0.2.1")).described.remaining == 0
    assert (await limiter.take_of(OF_ADDRESS, other)).verdict == "admitted"
    for _ in range(3):
        assert (await limiter.take_of(guess, "192.0.2.1")).verdict == "admitted"
    assert (await limiter.look_at(guess, "192.0.2.1")).minute.remaining == 2
    assert (await limiter.take_of(guess._replace(per_minute=3), "192.0.2.1")).verdict == "limited"


async def test_saved_states_survive_a_restart(
    start_limiter: StartLimiter, states: StoredRateLimits, key: Caller
) -> None:
    limiter = await start_limiter(states)
    before = [await limiter.take(key) for _ in range(5)][-1]
    await limiter.save()
    assert await (await start_limiter(states)).look(key) == before


async def test_a_ban_survives_a_restart(
    start_limiter: StartLimiter, states: StoredRateLimits, key: Caller, clock: ManualClock
) -> None:
    limiter = await start_limiter(states)
    for _ in range(60 + 400):
        clock.advance(0.1)
        await limiter.take(key)
    await limiter.save()
    restarted = await start_limiter(states)
    assert (await restarted.look(key)).verdict == "banned"
    assert (await restarted.take(key)).verdict == "banned"


async def test_an_unban_lifts_the_ban_in_the_running_service(
    limiter: RateLimiter, key: Caller, clock: ManualClock
) -> None:
    for _ in range(60 + 400):
        clock.advance(0.1)
        banned = await limiter.take(key)
    assert banned.verdict == "banned"
    unbanned = replace(key, unbanned_at=clock())
    clock.advance(60)
    assert (await limiter.look(unbanned)).verdict == "admitted"
    assert (await limiter.take(unbanned)).verdict == "admitted"


async def test_after_a_restart_an_unban_does_not_lift_a_later_ban(
    start_limiter: StartLimiter, states: StoredRateLimits, key: Caller, clock: ManualClock
) -> None:
    key = replace(key, unbanned_at=clock())
    clock.advance(1)
    limiter = await start_limiter(states)
    await get_banned(limiter, key, clock)
    await limiter.save()
    assert (await (await start_limiter(states)).take(key)).verdict == "banned"
    unbanned = replace(key, unbanned_at=clock())
    assert (await (await start_limiter(states)).take(unbanned)).verdict == "limited"


async def get_banned(limiter: RateLimiter, key: Caller, clock: ManualClock) -> None:
    while (await limiter.take(key)).verdict != "banned":
        clock.advance(0.1)


async def test_a_save_stores_what_a_key_used_and_its_ban(
    limiter: RateLimiter, key: Caller, states: StoredRateLimits, clock: ManualClock
) -> None:
    for _ in range(48):
        await limiter.take(key)
    await limiter.save()
    used = await states.load(key.id)
    assert used is not None
    assert (used.minute_used, used.day_used, used.banned_until) == (48, 48, NEVER)
    await get_banned(limiter, key, clock)
    await limiter.save()
    banned = await states.load(key.id)
    assert banned is not None
    assert banned.banned_until > clock()


async def test_counts_that_could_not_be_saved_are_saved_later(
    start_limiter: StartLimiter,
    states: StoredRateLimits,
    key: Caller,
    store: SqliteStore,
    clock: ManualClock,
    database: Path,
) -> None:
    limiter = await start_limiter(states)
    other = await issue_stored(store, clock)
    await limiter.take(key)
    with locked(database, store):
        with pytest.raises(Unavailable):
            await limiter.save()
        await limiter.take(other)
        with pytest.raises(Unavailable):
            await limiter.save()
        await limiter.take(key)
    await limiter.save()
    restarted = await start_limiter(states)
    assert await used_today(restarted, key) == 2
    assert await used_today(restarted, other) == 1


async def test_a_request_during_a_failed_save_is_saved_later(
    start_limiter: StartLimiter,
    states: StoredRateLimits,
    key: Caller,
    store: SqliteStore,
    database: Path,
) -> None:
    limiter = await start_limiter(states)
    await limiter.take(key)
    with locked(database, store):
        saving = asyncio.create_task(limiter.save())
        await asyncio.sleep(0)
        await limiter.take(key)
        with pytest.raises(Unavailable):
            await saving
    await limiter.save()
    assert await used_today(await start_limiter(states), key) == 2


async def test_a_day_that_ends_during_a_failed_save_is_added_to_the_usage(
    limiter: RateLimiter, key: Caller, store: SqliteStore, clock: ManualClock, database: Path
) -> None:
    await limiter.take(key)
    with locked(database, store):
        saving = asyncio.create_task(limiter.save())
        await asyncio.sleep(0)
        clock.advance(86_400)
        await limiter.take(key)
        with pytest.raises(Unavailable):
            await saving
    await limiter.save()
    assert await usage_of(store, key.id) == [(TODAY, 1), (TODAY + 1, 1)]


async def test_counts_of_a_cancelled_save_are_saved_later(
    start_limiter: StartLimiter,
    states: StoredRateLimits,
    key: Caller,
    store: SqliteStore,
    database: Path,
) -> None:
    limiter = await start_limiter(states)
    await limiter.take(key)
    with locked(database, store):
        saving = asyncio.create_task(limiter.save())
        await asyncio.sleep(0)
        saving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await saving
    await limiter.save()
    assert await used_today(await start_limiter(states), key) == 1


async def test_without_a_request_nothing_is_written(
    limiter: RateLimiter, key: Caller, database: Path
) -> None:
    await limiter.take(key)
    await limiter.save()
    with locked(database):
        await limiter.save()


async def test_days_that_ended_during_failed_saves_are_added_to_the_usage(
    limiter: RateLimiter, key: Caller, store: SqliteStore, clock: ManualClock, database: Path
) -> None:
    with locked(database, store):
        for day in range(3):
            for _ in range(day + 1):
                await limiter.take(key)
            with pytest.raises(Unavailable):
                await limiter.save()
            clock.advance(86_400)
    await limiter.save()
    usage = await usage_of(store, key.id)
    assert usage == [(TODAY, 1), (TODAY + 1, 2), (TODAY + 2, 3)]


async def test_a_key_that_is_loaded_on_a_later_day_keeps_its_earlier_usage(
    start_limiter: StartLimiter,
    states: StoredRateLimits,
    key: Caller,
    store: SqliteStore,
    clock: ManualClock,
) -> None:
    limiter = await start_limiter(states)
    await limiter.take(key)
    await limiter.save()
    clock.advance(86_400)
    restarted = await start_limiter(states)
    await restarted.take(key)
    await restarted.save()
    assert await usage_of(store, key.id) == [(TODAY, 1), (TODAY + 1, 1)]


async def test_a_key_that_was_only_refused_has_no_usage(
    limiter: RateLimiter, store: SqliteStore, key: Caller
) -> None:
    refused = replace(key, plan="enterprise", per_minute=1, per_day=0)
    await limiter.take(refused)
    await limiter.save()
    assert await usage_of(store, key.id) == []


async def test_a_banned_key_is_not_charged(
    limiter: RateLimiter, key: Caller, clock: ManualClock
) -> None:
    await get_banned(limiter, key, clock)
    before = await used_today(limiter, key)
    assert (await limiter.charge(key, 1)).verdict == "banned"
    assert await used_today(limiter, key) == before
    unbanned = replace(key, unbanned_at=clock())
    assert (await limiter.charge(unbanned, 1)).verdict == "admitted"
