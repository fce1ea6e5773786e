"""The usage that a key can see."""

from datetime import UTC, date, datetime, timedelta

import pytest

from petstore.databases.contract import Store
from petstore.domain.api_keys import ApiKey
from petstore.domain.plans import UNLIMITED
from petstore.rate_limits.contract import BanRules
from petstore.rate_limits.memory import MemoryLimiter
from petstore.rate_limits.minutes import MinuteLimiter, network_of
from petstore.store.deprecated_calls import DeprecatedCalls
from petstore.store.rate_limits import StoredRateLimits
from petstore.store.usage import Usage, UsageWindow, get_usage
from support.keys import issue_stored
from support.manual_clock import ManualClock

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]

NOON = 20_788 * 86_400 + 43_200
TODAY = date(2026, 12, 1)


class Caller:
    """A key that asks, and then asks for its usage."""

    def __init__(self, store: Store, clock: ManualClock, key: ApiKey) -> None:
        self.store, self.clock, self.key = store, clock, key
        self.restart()

    def restart(self) -> None:
        """Start the service anew: it knows what was saved."""
        addresses = MinuteLimiter[str](self.clock, 300, 10, network_of)
        states = StoredRateLimits(self.store)
        self.limiter = MemoryLimiter(states, self.clock, BanRules(), addresses)

    async def ask(self, times: int = 1, *, every: float = 0) -> None:
        for _ in range(times):
            self.clock.advance(every)
            await self.limiter.take(self.key)

    async def usage(self) -> Usage:
        calls = DeprecatedCalls(self.store, self.clock, ())
        return await get_usage(self.store, self.limiter, calls, self.key)


@pytest.fixture
async def caller(store: Store, clock: ManualClock) -> Caller:
    return Caller(store, clock, await issue_stored(store, clock))


async def test_a_fresh_key_has_all_its_requests_left(caller: Caller) -> None:
    usage = await caller.usage()
    assert usage.plan == "free"
    assert usage.minute == UsageWindow(60, 60, NOON + 60)
    assert usage.day == UsageWindow(1_000, 1_000, NOON + 43_200)
    assert usage.bannedUntil is None
    assert [day.requests for day in usage.days] == [0] * 30


async def test_the_last_30_days_are_returned_and_today_is_the_last(caller: Caller) -> None:
    days = (await caller.usage()).days
    assert [day.date for day in days] == [TODAY - timedelta(ago) for ago in range(29, -1, -1)]


async def test_today_is_counted_before_it_is_saved(caller: Caller) -> None:
    await caller.ask(3)
    usage = await caller.usage()
    assert usage.minute.remaining == 57
    assert usage.days[-1].requests == 3


async def test_asking_for_the_usage_costs_nothing(caller: Caller) -> None:
    await caller.ask()
    assert await caller.usage() == await caller.usage()


async def test_days_without_requests_are_zero_and_old_days_are_left_out(caller: Caller) -> None:
    await caller.ask(1)
    caller.clock.advance(86_400)
    await caller.ask(2)
    caller.clock.advance(28 * 86_400)
    await caller.ask(3)
    await caller.limiter.save()
    caller.restart()
    assert [day.requests for day in (await caller.usage()).days] == [1, 2] + [0] * 27 + [3]
    caller.clock.advance(86_400)
    assert [day.requests for day in (await caller.usage()).days] == [2] + [0] * 27 + [3, 0]


async def test_the_usage_of_another_key_is_not_returned(
    caller: Caller, store: Store, clock: ManualClock
) -> None:
    await caller.ask(3)
    await caller.limiter.save()
    caller.key = await issue_stored(store, clock)
    assert sum(day.requests for day in (await caller.usage()).days) == 0


async def test_refused_requests_are_not_usage(caller: Caller) -> None:
    await caller.ask(70)
    usage = await caller.usage()
    assert usage.minute.remaining == 0
    assert usage.days[-1].requests == 60


async def test_a_ban_is_reported_until_it_ends(caller: Caller) -> None:
    await caller.ask(60)
    await caller.ask(40, every=0.5)
    usage = await caller.usage()
    assert usage.bannedUntil is not None
    assert timedelta(minutes=4) < usage.bannedUntil - moment(caller.clock) < timedelta(minutes=5)
    caller.clock.advance(300)
    assert (await caller.usage()).bannedUntil is None


async def test_a_key_without_limits_has_the_largest_value_left(
    store: Store, clock: ManualClock
) -> None:
    caller = Caller(store, clock, await issue_stored(store, clock, plan="enterprise"))
    await caller.ask(5)
    usage = await caller.usage()
    assert (usage.day.limit, usage.day.remaining) == (UNLIMITED, UNLIMITED)
    assert usage.days[-1].requests == 5


def moment(clock: ManualClock) -> datetime:
    return datetime.fromtimestamp(clock() / 1000, UTC)
