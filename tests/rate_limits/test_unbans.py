"""Bans that are lifted in the store end at once, in every process that shares a Redis."""

import asyncio
from collections.abc import AsyncIterator, Iterable

import pytest

from petstore.clock import Milliseconds
from petstore.databases.sqlite import SqliteStore
from petstore.domain.api_keys import ApiKey
from petstore.errors import Unavailable
from petstore.rate_limits.contract import NEVER, BanRules, Decision, RateLimiter
from petstore.rate_limits.redis import RedisLimiter
from petstore.rate_limits.unbans import Pardons
from petstore.store.rate_limits import StoredRateLimits
from support.keys import unban
from support.manual_clock import ManualClock
from support.patience import eventually
from support.process import free_port
from support.redis_limiters import redis_limiter
from support.redis_server import RedisServer

pytestmark = pytest.mark.anyio

BAN_AT_ONCE = BanRules(least_strikes=1, strikes_divisor=10**6, innocence=0)
HOUR = 3600


class WatchedPardons(StoredRateLimits):
    """Keeps back what the store tells of unbans until it may be told, and counts the questions."""

    def __init__(self, store: SqliteStore) -> None:
        super().__init__(store)
        self.questions = 0
        self.may_be_told = asyncio.Event()
        self.may_be_told.set()

    async def unbans(self, key_ids: Iterable[int]) -> dict[int, Milliseconds]:
        self.questions += 1
        told = await super().unbans(key_ids)
        await self.may_be_told.wait()
        return told


class NoPardons(StoredRateLimits):
    """A store that fails when it is asked for unbans."""

    async def unbans(self, key_ids: Iterable[int]) -> dict[int, Milliseconds]:
        msg = f"no unbans of {key_ids}"
        raise Unavailable(msg)


@pytest.fixture
def watched(store: SqliteStore) -> WatchedPardons:
    return WatchedPardons(store)


@pytest.fixture
async def limiter(
    redis: RedisServer, watched: WatchedPardons, clock: ManualClock
) -> AsyncIterator[RedisLimiter]:
    async with redis_limiter(redis.url, watched, clock, rules=BAN_AT_ONCE) as limiter:
        yield limiter


@pytest.fixture
async def banned(limiter: RateLimiter, key: ApiKey, clock: ManualClock) -> ApiKey:
    """A key that is banned, as it was known before whatever happens to it next."""
    while (await limiter.take(key)).verdict != "banned":
        clock.advance(0.01)
    return key


async def test_a_ban_that_was_lifted_holds_in_no_process(
    redis: RedisServer,
    states: StoredRateLimits,
    store: SqliteStore,
    clock: ManualClock,
    limiter: RateLimiter,
    banned: ApiKey,
) -> None:
    async with redis_limiter(redis.url, states, clock, rules=BAN_AT_ONCE) as other:
        assert (await other.take(banned)).verdict == "banned"
        await unban(store, clock, banned.id)
        clock.advance(60)
        assert (await other.look(banned)).verdict == "admitted"
        assert (await limiter.take(banned)).verdict == "admitted"


async def test_whoever_lifts_a_ban_may_have_a_clock_that_is_behind_that_of_the_ban(
    store: SqliteStore, clock: ManualClock, limiter: RateLimiter, banned: ApiKey
) -> None:
    await unban(store, ManualClock(clock() - HOUR * 1000), banned.id)
    clock.advance(60)
    assert (await limiter.take(banned)).verdict == "admitted"


async def test_a_ban_is_lifted_without_redis_too(
    store: SqliteStore, clock: ManualClock, limiter: RateLimiter, banned: ApiKey
) -> None:
    await limiter.save()
    nowhere = f"redis://127.0.0.1:{free_port()}"
    async with redis_limiter(nowhere, WatchedPardons(store), clock, rules=BAN_AT_ONCE) as other:
        assert (await other.take(banned)).verdict == "banned"
        await unban(store, clock, banned.id)
        assert (await other.look(banned)).verdict == "admitted"


async def test_of_a_key_that_is_not_banned_nothing_is_asked(
    limiter: RateLimiter, key: ApiKey, watched: WatchedPardons
) -> None:
    await asyncio.gather(*(limiter.take(key) for _ in range(61)))
    assert watched.questions == 0


async def test_those_who_ask_beside_a_question_share_the_next(
    watched: WatchedPardons, key: ApiKey
) -> None:
    unbans = Pardons(watched)
    watched.may_be_told.clear()
    calls = [asyncio.create_task(unbans.of(key)) for _ in range(3)]
    await eventually(lambda: watched.questions)
    calls += [asyncio.create_task(unbans.of(key)) for _ in range(100)]
    await asyncio.sleep(0.01)
    assert watched.questions == 1
    watched.may_be_told.set()
    assert set(await asyncio.gather(*calls)) == {NEVER}
    assert watched.questions == 2


async def test_who_asks_after_a_pardon_is_not_given_an_answer_from_before_it(
    store: SqliteStore,
    clock: ManualClock,
    limiter: RateLimiter,
    watched: WatchedPardons,
    banned: ApiKey,
) -> None:
    watched.may_be_told.clear()
    before = watched.questions
    early = asyncio.create_task(limiter.look(banned))
    await eventually(lambda: watched.questions > before)
    await unban(store, clock, banned.id)
    late = asyncio.create_task(limiter.look(banned))
    await asyncio.sleep(0.01)
    watched.may_be_told.set()
    assert (await early).verdict == "banned"
    assert (await late).verdict == "admitted"


async def test_who_leaves_takes_nobodys_answer_along(
    limiter: RateLimiter, watched: WatchedPardons, banned: ApiKey
) -> None:
    watched.may_be_told.clear()
    before = watched.questions
    calls = [asyncio.create_task(limiter.take(banned)) for _ in range(3)]
    await eventually(lambda: watched.questions > before)
    calls[0].cancel()
    watched.may_be_told.set()
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    assert isinstance(outcomes[0], asyncio.CancelledError)
    assert [d.verdict for d in outcomes if isinstance(d, Decision)] == ["banned"] * 2


async def test_a_ban_holds_while_the_store_does_not_tell(
    limiter: RateLimiter,
    watched: WatchedPardons,
    banned: ApiKey,
    redis: RedisServer,
    store: SqliteStore,
    clock: ManualClock,
) -> None:
    watched.may_be_told.clear()
    assert (await limiter.take(banned)).verdict == "banned"
    async with redis_limiter(redis.url, NoPardons(store), clock, rules=BAN_AT_ONCE) as other:
        assert (await other.take(banned)).verdict == "banned"
