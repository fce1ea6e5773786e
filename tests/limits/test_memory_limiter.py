"""What the limiter of one process keeps in memory, and what it forgets."""

import asyncio
from pathlib import Path

import pytest

from petstore.databases.sqlite import SqliteStore
from petstore.errors import Unavailable
from petstore.keys.model import Caller
from petstore.limits.database import StoredRateLimits
from petstore.limits.decide import BanRules
from petstore.limits.memory import MemoryLimiter
from support.keys import issue_stored
from support.manual_clock import ManualClock
from support.stores import do, locked

pytestmark = pytest.mark.anyio


@pytest.fixture
def limiter(states: StoredRateLimits, clock: ManualClock) -> MemoryLimiter:
    return MemoryLimiter(states, clock, BanRules())


async def used_today(limiter: MemoryLimiter, key: Caller) -> int:
    return (await limiter.look(key)).day_used


async def write_900(store: SqliteStore) -> None:
    """Let the database say that each key was used so often: more than any limiter has counted."""
    await store.write(do("UPDATE rate_limits SET day_used = 900"))


async def test_an_idle_key_is_evicted_while_others_are_active(
    limiter: MemoryLimiter, key: Caller, store: SqliteStore, clock: ManualClock
) -> None:
    busy = await issue_stored(store, clock)
    await limiter.take(key)
    for count in range(1, 6):
        await limiter.take(busy)
        # The second request comes while the save is under way.
        await asyncio.gather(limiter.save(), limiter.take(busy))
        await limiter.heartbeat()
        clock.advance(100)
        assert await used_today(limiter, busy) == 2 * count
        await write_900(store)
    assert await used_today(limiter, key) == 900
    await limiter.close()


async def test_an_idle_key_is_kept_in_memory_for_at_least_two_minutes(
    limiter: MemoryLimiter, key: Caller, store: SqliteStore, clock: ManualClock
) -> None:
    clock.advance(119)
    await limiter.take(key)
    await limiter.save()
    await write_900(store)
    clock.advance(119)
    await limiter.save()
    assert await used_today(limiter, key) == 1


async def test_keys_are_not_evicted_before_they_are_saved(
    limiter: MemoryLimiter, key: Caller, clock: ManualClock, store: SqliteStore, database: Path
) -> None:
    await limiter.take(key)
    with locked(database, store):
        for _ in range(3):
            clock.advance(600)
            with pytest.raises(Unavailable):
                await limiter.save()
    assert await used_today(limiter, key) == 1
