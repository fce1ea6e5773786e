"""The usage that a key can see."""

import pytest

from petstore.databases.contract import Store
from petstore.deprecations.store import DeprecatedCalls
from petstore.domain.plans import UNLIMITED
from petstore.keys.model import Caller
from petstore.limits.contract import BanRules
from petstore.limits.database import StoredRateLimits
from petstore.limits.memory import MemoryLimiter
from petstore.limits.minutes import MinuteLimiter, network_of
from petstore.usage.refusals import Refusals
from petstore.usage.store import Usage, get_usage
from support.keys import issue_stored
from support.manual_clock import ManualClock

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]


class UsingKey:
    """A key that asks, and then asks for its usage."""

    def __init__(self, store: Store, clock: ManualClock, key: Caller) -> None:
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
        refusals = Refusals(self.store, self.clock)
        decision = await self.limiter.look(self.key)
        return await get_usage(self.store, decision, calls, refusals, self.key)


@pytest.fixture
async def caller(store: Store, clock: ManualClock) -> UsingKey:
    return UsingKey(store, clock, await issue_stored(store, clock))


async def test_days_without_requests_are_zero_and_old_days_are_left_out(caller: UsingKey) -> None:
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


async def test_a_clock_that_steps_back_over_midnight_leaves_30_days(caller: UsingKey) -> None:
    caller.clock.advance(43_200 + 10)
    await caller.ask(1)
    caller.clock.advance(-20)
    assert [day.requests for day in (await caller.usage()).days] == [0] * 29 + [1]


async def test_the_usage_of_another_key_is_not_returned(
    caller: UsingKey, store: Store, clock: ManualClock
) -> None:
    await caller.ask(3)
    await caller.limiter.save()
    caller.key = await issue_stored(store, clock)
    assert sum(day.requests for day in (await caller.usage()).days) == 0


async def test_a_key_without_limits_has_the_largest_value_remaining(
    store: Store, clock: ManualClock
) -> None:
    caller = UsingKey(store, clock, await issue_stored(store, clock, plan="enterprise"))
    await caller.ask(5)
    usage = await caller.usage()
    assert (usage.day.limit, usage.day.remaining) == (UNLIMITED, UNLIMITED)
    assert usage.days[-1].requests == 5
