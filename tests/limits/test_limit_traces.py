"""States at every edge, through ``decide`` and the script on a real server; and random traces."""

import asyncio
import random

from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from msgspec.structs import replace

from petstore.clock import DAY, MINUTE, SECOND, Milliseconds
from petstore.domain.plans import UNLIMITED, Limits
from petstore.limits.database import StoredRateLimits
from petstore.limits.decide import NEVER, BanRules, State, charge, decide, describe, touched
from petstore.limits.memory import MinuteLimiter
from petstore.limits.redis import RedisLimiter
from petstore.redis_client import RedisClient
from support.exploration import explored
from support.limited_key import LimitedKey
from support.manual_clock import ManualClock
from support.redis_limiters import OF_ADDRESS, PATIENT, TimedClient, api_key, redis_limiter
from support.redis_server import RedisServer
from support.strategies import pauses

SPANS = (0, SECOND, 7 * SECOND, MINUTE, 5 * MINUTE, DAY, 2 * DAY, 365 * DAY)


class Given(StoredRateLimits):
    """A store that has one state, or none, for every key."""

    def __init__(self, state: State | None = None) -> None:
        self._state = state

    async def load(self, _: int) -> State | None:
        return self._state


class Draw(random.Random):
    """Draws states and rules whose times are at the edges."""

    def rules(self) -> BanRules:
        return BanRules(
            min_strikes=self.randint(1, 4),
            strikes_divisor=self.randint(1, 200),
            grace=self.choice(SPANS[:2]),
            window=self.choice(SPANS[1:4]),
            duration=self.choice(SPANS[1:5]),
            max_duration=self.choice(SPANS[4:6]),
            decay=self.choice(SPANS[3:6]),
        )

    def limits(self) -> Limits:
        return Limits(self.choice([1, 3, 300, UNLIMITED]), self.choice([1, 3, UNLIMITED]))

    def near(self, now: Milliseconds) -> Milliseconds:
        """Return a time that something may have happened at."""
        if self.random() < 0.1:
            return NEVER
        return now + self.choice([-1, -1, -1, 1]) * self.choice(SPANS) + self.randint(-1, 1)

    def state(self, now: Milliseconds) -> State:
        return State(
            minute_started=self.near(now),
            minute_used=self.randint(0, 4),
            day=now // DAY + self.randint(-2, 2),
            day_used=self.randint(0, 4),
            refused_since=self.near(now),
            refused_at=self.near(now),
            strikes=self.randint(0, 4),
            struck_since=self.near(now),
            banned_at=self.near(now),
            banned_until=self.choice([self.near(now), NEVER]),
            ban_level=self.choice([*range(10), 2**46]),
            used_at=self.near(now),
            unbanned_at=self.near(now),
        )


async def agree(client: RedisClient, key_id: int, now: Milliseconds) -> None:
    """Go a few steps from a state in both, and compare each decision and the state after it."""
    draw = Draw(key_id)
    rules, state = draw.rules(), draw.state(now)
    unbanned_at = draw.choice([NEVER, state.unbanned_at, max(0, state.unbanned_at) + 1, now])
    one, other = [
        RedisLimiter(client, Given(found), ManualClock(), rules, timeout=PATIENT)
        for found in (state, None)  # another process learns the state from Redis alone
    ]
    for step in range(4):
        limits = draw.limits()
        key = replace(api_key(key_id, *limits), unbanned_at=unbanned_at)
        if draw.random() < 0.3:
            requests, taken = draw.randint(0, 3), describe(state, limits, now, unbanned_at)
            expected, after = charge(state, limits, now, unbanned_at, requests, taken)
            actual = await one.charge(key, requests, taken)
        else:
            expected, after = decide(state, limits, rules, now, unbanned_at)
            actual = await one.take(key)
        told = (step, rules, limits, state)
        assert actual == expected, told
        assert await one.load(key_id) == after, told
        described = describe(after, limits, now, unbanned_at)
        assert await other.look(key) == described, told
        state = touched(after, now)
        assert await other.load(key_id) == state, told
    assert [one.fallbacks, other.fallbacks] == [0, 0]


def test_the_script_agrees_with_the_limiter_for_any_state(
    redis: RedisServer, clock: ManualClock
) -> None:
    async def go() -> None:
        client = TimedClient(redis.url, clock)
        for start in range(0, 600, 50):  # a client has a hundred connections
            ids = range(start, start + 50)
            await asyncio.gather(*(agree(client, n, clock()) for n in ids))
        await client.close()

    asyncio.run(go())


@explored(25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(trace=st.lists(st.tuples(pauses, st.booleans()), max_size=40), per_minute=st.integers(1, 3))
def test_the_script_agrees_with_the_limiter_of_minutes(
    redis: RedisServer, trace: list[tuple[Milliseconds, bool]], per_minute: int
) -> None:
    async def follow() -> None:
        clock = ManualClock()
        alone = MinuteLimiter[str](clock, OF_ADDRESS._replace(per_minute=per_minute))
        async with redis_limiter(redis.url, Given(), clock) as limiter:
            for pause, is_look in trace:
                clock.now += pause
                if is_look:
                    assert await limiter.look_at(alone.budget, "a") == alone.look("a")
                else:
                    assert await limiter.take_of(alone.budget, "a") == alone.take("a")

    redis.call("FLUSHALL")
    asyncio.run(follow())


# The windows of one key


NO_BANS = BanRules(min_strikes=UNLIMITED)
small_limits = st.builds(Limits, st.integers(1, 4), st.integers(1, 9))


@explored(50)
@given(st.lists(st.tuples(pauses, st.integers(-2 * DAY, 0)), max_size=30), small_limits)
def test_a_clock_that_steps_back_never_admits_more(
    waits: list[tuple[Milliseconds, Milliseconds]], limits: Limits
) -> None:
    """Whatever is asked with the clock set back, it would have been refused without that too."""
    steady, stepping = LimitedKey(limits, NO_BANS), LimitedKey(limits, NO_BANS)
    for wait, step_back in waits:
        steady.clock.now += wait
        stepping.clock.now = steady.clock.now + step_back
        stepping.state = steady.state
        if stepping.ask().verdict == "admitted":
            assert steady.ask().verdict == "admitted"


@explored(50)
@given(st.lists(pauses, max_size=60), small_limits)
def test_a_client_that_waits_for_retry_after_is_never_banned(
    waits: list[Milliseconds], limits: Limits
) -> None:
    caller = LimitedKey(limits, BanRules(min_strikes=1, strikes_divisor=1000))
    for wait in waits:
        caller.clock.now += wait
        decision = caller.ask()
        assert decision.verdict != "banned"
        if decision.verdict == "limited":
            caller.clock.now = decision.described.reset * SECOND
            assert caller.ask().verdict == "admitted"
