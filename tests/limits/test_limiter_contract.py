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


async def get_banned(limiter: RateLimiter, key: Caller, clock: ManualClock) -> None:
    while (await limiter.take(key)).verdict != "banned":
        clock.advance(0.1)


async def test_200_concurrent_requests_are_admitted_exactly_up_to_the_limit_of_their_key(
    limiter: RateLimiter, key: Caller, store: SqliteStore, clock: ManualClock
) -> None:
    decisions = await asyncio.gather(*(limiter.take(key) for _ in range(200)))
    assert [decision.verdict for decision in decisions].count("admitted") == 60
    assert {decision.minute.remaining for decision in decisions} == set(range(60))
    other = await issue_stored(store, clock)
    assert (await limiter.take(other)).minute.remaining == 59


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


async def test_charges_are_admitted_up_to_the_day_limit_and_survive_a_restart(
    start_limiter: StartLimiter,
    states: StoredRateLimits,
    key: Caller,
    store: SqliteStore,
    clock: ManualClock,
) -> None:
    limiter = await start_limiter(states)
    decisions = await asyncio.gather(*(limiter.charge(key, 300) for _ in range(20)))
    assert [decision.verdict for decision in decisions].count("admitted") == 3
    assert (await limiter.charge(key, 101)).verdict == "limited"
    await limiter.save()
    limiter = await start_limiter(states)
    assert await used_today(limiter, key) == 900
    clock.advance(86_400)
    assert (await limiter.charge(key, 1)).day.remaining == 999
    await limiter.save()
    assert await usage_of(store, key.id) == [(TODAY, 900), (TODAY + 1, 1)]


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


async def test_what_was_saved_survives_a_restart_until_an_unban(
    start_limiter: StartLimiter, states: StoredRateLimits, key: Caller, clock: ManualClock
) -> None:
    key = replace(key, unbanned_at=clock())
    clock.advance(1)
    limiter = await start_limiter(states)
    before = [await limiter.take(key) for _ in range(5)][-1]
    await limiter.save()
    saved = await states.load(key.id)
    assert saved is not None
    assert (saved.minute_used, saved.day_used, saved.banned_until) == (5, 5, NEVER)
    limiter = await start_limiter(states)
    assert await limiter.look(key) == before
    await get_banned(limiter, key, clock)
    await limiter.save()
    used = await used_today(limiter, key)
    for each in (limiter, await start_limiter(states)):
        assert (await each.look(key)).verdict == "banned"
        assert (await each.take(key)).verdict == "banned"
        assert (await each.charge(key, 1)).verdict == "banned"
        assert await used_today(each, key) == used
    unbanned = replace(key, unbanned_at=clock())
    clock.advance(60)
    for each in (limiter, await start_limiter(states)):
        assert (await each.look(unbanned)).verdict == "admitted"
        assert (await each.take(unbanned)).verdict == "admitted"
        assert (await each.charge(unbanned, 1)).verdict == "admitted"


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
    await limiter.take(replace(other, plan="enterprise", per_day=0))  # a refusal is no usage
    await limiter.save()
    assert await usage_of(store, other.id) == []
    await limiter.take(key)
    with locked(database, store):
        saving = asyncio.create_task(limiter.save())
        await asyncio.sleep(0)
        await limiter.take(key)
        await limiter.take(other)
        with pytest.raises(Unavailable):
            await saving
        saving = asyncio.create_task(limiter.save())
        await asyncio.sleep(0)
        saving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await saving
    await limiter.save()
    assert [await used_today(await start_limiter(states), each) for each in (key, other)] == [2, 1]
    with locked(database):
        await limiter.save()  # without a request nothing is written


async def test_days_that_end_during_failed_saves_are_added_to_the_usage(
    limiter: RateLimiter, key: Caller, store: SqliteStore, clock: ManualClock, database: Path
) -> None:
    await limiter.take(key)
    with locked(database, store):
        for day in range(3):
            saving = asyncio.create_task(limiter.save())
            await asyncio.sleep(0)
            clock.advance(86_400)
            for _ in range(day + 2):
                await limiter.take(key)
            with pytest.raises(Unavailable):
                await saving
    await limiter.save()
    assert await usage_of(store, key.id) == [(TODAY + day, day + 1) for day in range(4)]
