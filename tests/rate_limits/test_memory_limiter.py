"""The limiter of one process, over a real database."""

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace

from petstore.domain.api_keys import ApiKey
from petstore.errors import Unavailable
from petstore.rate_limits.addresses import AddressLimiter
from petstore.rate_limits.contract import BanRules, State
from petstore.rate_limits.memory import MemoryLimiter
from petstore.storage.rate_limits import StoredRateLimits, select_usage
from petstore.storage.sqlite import SqliteStore
from support.keys import issue_stored
from support.manual_clock import ManualClock
from support.stores import do, impatient, locked

pytestmark = pytest.mark.anyio

TODAY = 20_788
NINE_TODAY = "UPDATE rate_limits SET day_used = 9"


class SlowStates(StoredRateLimits):
    """States that take a while to come, as from a database across a network."""

    async def load(self, key_id: int) -> State | None:
        state = await super().load(key_id)
        await asyncio.sleep(0)
        return state


def limiter_on(store: SqliteStore, clock: ManualClock) -> MemoryLimiter:
    """Return a limiter as it is after a start: it remembers what the store does."""
    return MemoryLimiter(StoredRateLimits(store), clock, BanRules(), AddressLimiter(clock, 2, 100))


@pytest.fixture
def limiter(store: SqliteStore, clock: ManualClock) -> MemoryLimiter:
    return limiter_on(store, clock)


@pytest.fixture
async def key(store: SqliteStore, clock: ManualClock) -> ApiKey:
    return await issue_stored(store, clock)


async def used_today(limiter: MemoryLimiter, key: ApiKey) -> int:
    return (await limiter.look(key)).day_used


async def test_of_200_requests_at_once_the_limit_is_admitted_exactly(
    limiter: MemoryLimiter, key: ApiKey
) -> None:
    decisions = await asyncio.gather(*(limiter.take(key) for _ in range(200)))
    assert [decision.verdict for decision in decisions].count("admitted") == 60
    assert {decision.minute.remaining for decision in decisions} == set(range(60))


async def test_requests_that_recall_a_key_at_once_are_counted_exactly(
    store: SqliteStore, clock: ManualClock, key: ApiKey
) -> None:
    states = SlowStates(store)
    limiter = MemoryLimiter(states, clock, BanRules(), AddressLimiter(clock, 2, 100))
    await asyncio.gather(*(limiter.take(key) for _ in range(5)))
    assert await used_today(limiter, key) == 5


async def test_requests_beside_a_save_are_counted_exactly(
    limiter: MemoryLimiter, key: ApiKey, store: SqliteStore, clock: ManualClock
) -> None:
    for _ in range(5):
        await asyncio.gather(*(limiter.take(key) for _ in range(4)), limiter.save())
        await asyncio.gather(limiter.save(), *(limiter.take(key) for _ in range(4)))
    await limiter.save()
    assert await used_today(limiter, key) == 40
    assert await used_today(limiter_on(store, clock), key) == 40


async def test_keys_do_not_share_their_windows(
    limiter: MemoryLimiter, key: ApiKey, store: SqliteStore, clock: ManualClock
) -> None:
    other = await issue_stored(store, clock)
    for _ in range(61):
        await limiter.take(key)
    assert (await limiter.take(other)).minute.remaining == 59


async def test_looking_costs_nothing(limiter: MemoryLimiter, key: ApiKey) -> None:
    for _ in range(3):
        assert (await limiter.look(key)).minute.remaining == 60


async def test_addresses_have_a_limit_beside_that_of_keys(limiter: MemoryLimiter) -> None:
    limiter.take_address("192.0.2.1")
    limiter.take_address("192.0.2.1")
    assert limiter.take_address("192.0.2.1").verdict == "limited"
    assert limiter.look_address("192.0.2.1").described.remaining == 0


async def test_what_was_saved_survives_a_restart(
    limiter: MemoryLimiter, key: ApiKey, store: SqliteStore, clock: ManualClock
) -> None:
    before = [await limiter.take(key) for _ in range(5)][-1]
    await limiter.save()
    assert await limiter_on(store, clock).look(key) == before


async def test_a_ban_survives_a_restart(
    limiter: MemoryLimiter, key: ApiKey, store: SqliteStore, clock: ManualClock
) -> None:
    for _ in range(60 + 400):
        clock.advance(0.1)
        await limiter.take(key)
    await limiter.save()
    assert (await limiter_on(store, clock).take(key)).verdict == "banned"


async def test_a_pardon_lifts_the_ban_in_the_running_service(
    limiter: MemoryLimiter, key: ApiKey, clock: ManualClock
) -> None:
    for _ in range(60 + 400):
        clock.advance(0.1)
        banned = await limiter.take(key)
    assert banned.verdict == "banned"
    pardoned = replace(key, pardoned_at=clock())
    clock.advance(60)
    assert (await limiter.take(pardoned)).verdict == "admitted"


@impatient
async def test_counts_that_could_not_be_saved_are_saved_later(
    limiter: MemoryLimiter, key: ApiKey, store: SqliteStore, clock: ManualClock, database: Path
) -> None:
    other = await issue_stored(store, clock)
    await limiter.take(key)
    with locked(database):
        with pytest.raises(Unavailable):
            await limiter.save()
        await limiter.take(other)
        with pytest.raises(Unavailable):
            await limiter.save()
        await limiter.take(key)
    await limiter.save()
    restarted = limiter_on(store, clock)
    assert await used_today(restarted, key) == 2
    assert await used_today(restarted, other) == 1


@impatient
async def test_a_request_during_a_save_that_fails_is_saved_later(
    limiter: MemoryLimiter, key: ApiKey, store: SqliteStore, clock: ManualClock, database: Path
) -> None:
    await limiter.take(key)
    with locked(database):
        saving = asyncio.create_task(limiter.save())
        await asyncio.sleep(0)
        await limiter.take(key)
        with pytest.raises(Unavailable):
            await saving
    await limiter.save()
    assert await used_today(limiter_on(store, clock), key) == 2


@impatient
async def test_counts_of_a_save_that_was_cancelled_are_saved_later(
    limiter: MemoryLimiter, key: ApiKey, store: SqliteStore, clock: ManualClock, database: Path
) -> None:
    await limiter.take(key)
    with locked(database):
        saving = asyncio.create_task(limiter.save())
        await asyncio.sleep(0)
        saving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await saving
    await limiter.save()
    assert await used_today(limiter_on(store, clock), key) == 1


async def test_without_a_change_nothing_is_written(
    limiter: MemoryLimiter, key: ApiKey, database: Path
) -> None:
    await limiter.take(key)
    await limiter.save()
    await limiter.look(key)
    with locked(database):
        await limiter.save()


async def test_an_active_key_is_kept_in_memory(
    limiter: MemoryLimiter, key: ApiKey, store: SqliteStore, clock: ManualClock
) -> None:
    await limiter.take(key)
    await limiter.save()
    await store.write(do(NINE_TODAY))
    for count in range(2, 8):
        clock.advance(100)
        await limiter.take(key)
        await limiter.save()
        assert await used_today(limiter, key) == count
        await store.write(do(NINE_TODAY))


async def test_an_idle_key_is_forgotten_and_recalled_from_the_database(
    limiter: MemoryLimiter, key: ApiKey, store: SqliteStore, clock: ManualClock
) -> None:
    await limiter.take(key)
    for _ in range(3):
        await limiter.save()
        clock.advance(120)
    await store.write(do(NINE_TODAY))
    assert await used_today(limiter, key) == 9


async def test_an_idle_key_is_remembered_for_two_minutes_at_least(
    limiter: MemoryLimiter, key: ApiKey, store: SqliteStore, clock: ManualClock
) -> None:
    clock.advance(119)
    await limiter.take(key)
    await limiter.save()
    await store.write(do(NINE_TODAY))
    clock.advance(119)
    await limiter.save()
    assert await used_today(limiter, key) == 1


async def test_keys_are_forgotten_though_others_are_never_idle(
    limiter: MemoryLimiter, key: ApiKey, store: SqliteStore, clock: ManualClock
) -> None:
    busy = await issue_stored(store, clock)
    await limiter.take(key)
    for count in range(1, 4):
        await limiter.take(busy)
        # The second request comes while the save is under way.
        await asyncio.gather(limiter.save(), limiter.take(busy))
        clock.advance(120)
        assert await used_today(limiter, busy) == 2 * count
    await store.write(do(NINE_TODAY + " WHERE key_id = ?1", key.id))
    assert await used_today(limiter, key) == 9


@impatient
async def test_nothing_is_forgotten_while_it_cannot_be_saved(
    limiter: MemoryLimiter, key: ApiKey, clock: ManualClock, database: Path
) -> None:
    await limiter.take(key)
    with locked(database):
        for _ in range(3):
            clock.advance(600)
            with pytest.raises(Unavailable):
                await limiter.save()
    assert await used_today(limiter, key) == 1


async def test_a_day_that_ended_goes_into_the_usage(
    limiter: MemoryLimiter, key: ApiKey, store: SqliteStore, clock: ManualClock
) -> None:
    for _ in range(3):
        await limiter.take(key)
    clock.advance(86_400)
    await limiter.take(key)
    await limiter.save()
    assert await store.read(select_usage(key.id, 0)) == [(TODAY, 3), (TODAY + 1, 1)]


@impatient
async def test_days_that_ended_while_nothing_could_be_saved_go_into_the_usage(
    limiter: MemoryLimiter, key: ApiKey, store: SqliteStore, clock: ManualClock, database: Path
) -> None:
    with locked(database):
        for day in range(3):
            for _ in range(day + 1):
                await limiter.take(key)
            with pytest.raises(Unavailable):
                await limiter.save()
            clock.advance(86_400)
    await limiter.save()
    usage = await store.read(select_usage(key.id, 0))
    assert usage == [(TODAY, 1), (TODAY + 1, 2), (TODAY + 2, 3)]


async def test_a_key_recalled_on_a_later_day_keeps_the_usage_of_the_earlier(
    limiter: MemoryLimiter, key: ApiKey, store: SqliteStore, clock: ManualClock
) -> None:
    await limiter.take(key)
    await limiter.save()
    clock.advance(86_400)
    restarted = limiter_on(store, clock)
    await restarted.take(key)
    await restarted.save()
    assert await store.read(select_usage(key.id, 0)) == [(TODAY, 1), (TODAY + 1, 1)]


async def test_a_key_that_was_only_refused_has_no_usage(
    store: SqliteStore, clock: ManualClock, key: ApiKey
) -> None:
    limiter = limiter_on(store, clock)
    refused = replace(key, plan="enterprise", per_minute=1, per_day=0)
    await limiter.take(refused)
    await limiter.save()
    assert await store.read(select_usage(key.id, 0)) == []
