"""Bans that are lifted in the store end at once, in every process that shares a Redis."""

import asyncio
from collections.abc import AsyncIterator, Iterable

import pytest

from petstore.clock import Milliseconds
from petstore.databases.sqlite import SqliteStore
from petstore.errors import Unavailable
from petstore.keys.model import Caller
from petstore.limits.contract import NEVER, BanRules, RateLimiter
from petstore.limits.database import StoredRateLimits
from petstore.limits.redis import RedisLimiter, Unbans
from support.keys import unban
from support.manual_clock import ManualClock
from support.process import free_port
from support.redis_limiters import PATIENT, redis_limiter
from support.redis_server import RedisServer
from support.waiting import eventually

pytestmark = pytest.mark.anyio

BAN_AT_ONCE = BanRules(min_strikes=1, strikes_divisor=10**6, grace=0)
HOUR = 3600


class WatchedUnbans(StoredRateLimits):
    """Holds back the unbans until ``may_respond`` is set, and counts the queries."""

    def __init__(self, store: SqliteStore) -> None:
        super().__init__(store)
        self.queries = 0
        self.may_respond = asyncio.Event()
        self.may_respond.set()

    async def unbans(self, key_ids: Iterable[int]) -> dict[int, Milliseconds]:
        self.queries += 1
        told = await super().unbans(key_ids)
        await self.may_respond.wait()
        return told


class NoUnbans(StoredRateLimits):
    """A store that fails when it is asked for unbans."""

    async def unbans(self, key_ids: Iterable[int]) -> dict[int, Milliseconds]:
        msg = f"no unbans of {key_ids}"
        raise Unavailable(msg)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for the store as long as for Redis, where it responds."""
    monkeypatch.setattr("petstore.limits.redis._UNBANS_TIMEOUT", PATIENT)


@pytest.fixture
def watched(store: SqliteStore) -> WatchedUnbans:
    return WatchedUnbans(store)


@pytest.fixture
async def limiter(
    redis: RedisServer, watched: WatchedUnbans, clock: ManualClock
) -> AsyncIterator[RedisLimiter]:
    async with redis_limiter(redis.url, watched, clock, rules=BAN_AT_ONCE) as limiter:
        yield limiter


@pytest.fixture
async def banned(limiter: RateLimiter, key: Caller, clock: ManualClock) -> Caller:
    """A key that is banned, as it was known before whatever happens to it next."""
    while (await limiter.take(key)).verdict != "banned":
        clock.advance(0.01)
    return key


@pytest.mark.usefixtures("patient")
async def test_a_lifted_ban_applies_in_no_process(
    redis: RedisServer,
    states: StoredRateLimits,
    store: SqliteStore,
    clock: ManualClock,
    limiter: RateLimiter,
    banned: Caller,
) -> None:
    async with redis_limiter(redis.url, states, clock, rules=BAN_AT_ONCE) as other:
        assert (await other.take(banned)).verdict == "banned"
        await unban(store, clock, banned.id)
        clock.advance(60)
        assert (await other.look(banned)).verdict == "admitted"
        assert (await limiter.take(banned)).verdict == "admitted"


@pytest.mark.usefixtures("patient")
async def test_an_unban_by_a_clock_behind_that_of_the_ban_lifts_it(
    store: SqliteStore, clock: ManualClock, limiter: RateLimiter, banned: Caller
) -> None:
    await unban(store, ManualClock(clock() - HOUR * 1000), banned.id)
    clock.advance(60)
    assert (await limiter.take(banned)).verdict == "admitted"


@pytest.mark.usefixtures("patient")
async def test_a_ban_can_be_lifted_without_redis(
    store: SqliteStore, clock: ManualClock, limiter: RateLimiter, banned: Caller
) -> None:
    await limiter.save()
    nowhere = f"redis://127.0.0.1:{free_port()}"
    async with redis_limiter(nowhere, WatchedUnbans(store), clock, rules=BAN_AT_ONCE) as other:
        assert (await other.take(banned)).verdict == "banned"
        await unban(store, clock, banned.id)
        assert (await other.look(banned)).verdict == "admitted"


async def test_the_store_is_not_queried_for_a_key_that_is_not_banned(
    limiter: RateLimiter, key: Caller, watched: WatchedUnbans
) -> None:
    await asyncio.gather(*(limiter.take(key) for _ in range(61)))
    assert watched.queries == 0


@pytest.mark.usefixtures("patient")
async def test_calls_during_a_query_share_the_next_query(
    watched: WatchedUnbans, key: Caller
) -> None:
    unbans = Unbans(watched)
    watched.may_respond.clear()
    calls = [asyncio.create_task(unbans.latest(key)) for _ in range(3)]
    await eventually(lambda: watched.queries)
    calls += [asyncio.create_task(unbans.latest(key)) for _ in range(100)]
    await asyncio.sleep(0.01)
    assert watched.queries == 1
    watched.may_respond.set()
    assert set(await asyncio.gather(*calls)) == {NEVER}
    assert watched.queries == 2


@pytest.mark.usefixtures("patient")
async def test_a_call_after_an_unban_does_not_get_a_result_from_before_it(
    store: SqliteStore,
    clock: ManualClock,
    limiter: RateLimiter,
    watched: WatchedUnbans,
    banned: Caller,
) -> None:
    watched.may_respond.clear()
    before = watched.queries
    early = asyncio.create_task(limiter.look(banned))
    await eventually(lambda: watched.queries > before)
    await unban(store, clock, banned.id)
    late = asyncio.create_task(limiter.look(banned))
    await asyncio.sleep(0.01)
    watched.may_respond.set()
    assert (await early).verdict == "banned"
    assert (await late).verdict == "admitted"


async def test_a_ban_applies_while_the_store_does_not_respond(
    limiter: RateLimiter,
    watched: WatchedUnbans,
    banned: Caller,
    redis: RedisServer,
    store: SqliteStore,
    clock: ManualClock,
) -> None:
    watched.may_respond.clear()
    assert (await limiter.take(banned)).verdict == "banned"
    async with redis_limiter(redis.url, NoUnbans(store), clock, rules=BAN_AT_ONCE) as other:
        assert (await other.take(banned)).verdict == "banned"
