"""Random traces of requests through ``decide`` and through the script on a real server."""

import asyncio
import random
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple, get_args

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from msgspec.structs import replace

from petstore.clock import DAY, MINUTE, SECOND, Milliseconds
from petstore.domain.plans import UNLIMITED, Limits
from petstore.keys.model import Caller
from petstore.limits.database import StoredRateLimits
from petstore.limits.decide import NEVER, BanRules, State, charge, decide, touched
from petstore.limits.memory import MinuteLimiter
from petstore.limits.redis import Mode, RedisRateLimiter
from petstore.redis_client import RedisClient
from support.exploration import explored
from support.limited_key import LimitedKey
from support.manual_clock import ManualClock
from support.redis_limiters import OF_ADDRESS, PATIENT, TimedClient, api_key, redis_limiter
from support.redis_server import RedisServer
from support.strategies import pauses, small_limits

Action = Literal["take", "charge", "look", "unbans"]
Moment = Literal[
    "now", "minute", "day", "run", "strikes", "ban", "forgiven", "lately", "leap", "early"
]


class Step(NamedTuple):
    """The next step: ``off`` from a time in the state, so many ``times``, and a change of plan."""

    action: Action
    moment: Moment
    off: Milliseconds
    times: int
    every: Milliseconds
    limits: Limits | None


def when(moment: Moment, state: State, rules: BanRules, now: Milliseconds) -> Milliseconds:
    """Return a moment at which something may change."""
    moments: dict[Moment, Milliseconds] = {
        "now": now,
        "minute": state.minute_started + MINUTE,
        "day": (state.day + 1) * DAY,
        "run": state.refused_at + rules.window,
        "strikes": state.struck_since + rules.window,
        "ban": state.banned_until,
        "forgiven": state.banned_until + rules.decay,
        "lately": state.used_at + MINUTE,
        "leap": now + 365 * DAY,
        "early": min(state.minute_started - MINUTE, state.day * DAY),
    }
    return moments[moment] if moments[moment] > 0 else now


class Given(StoredRateLimits):
    """A store that has one state, or none, for every key and keeps nothing."""

    def __init__(self, state: State | None = None) -> None:
        self._state = state

    async def load(self, _: int) -> State | None:
        return self._state

    async def save(self, _: Iterable[tuple[int, State]]) -> None:
        raise AssertionError


steps = st.builds(
    Step,
    action=st.sampled_from(["take", "take", "take", "charge", "look", "unbans"]),
    moment=st.sampled_from(get_args(Moment)),
    off=st.sampled_from([0, 0, 0, -1, 1, -MINUTE, MINUTE, -DAY, DAY, -365 * DAY]) | pauses,
    times=st.integers(1, 9),
    every=st.sampled_from([0, 1, 120, SECOND, SECOND + 1]),
    limits=st.sampled_from([None, None, None, Limits(UNLIMITED, UNLIMITED), Limits(300, 1)])
    | small_limits,
)

rules_of_bans = st.builds(
    BanRules,
    min_strikes=st.integers(1, 4),
    strikes_divisor=st.integers(1, 200),
    grace=st.sampled_from([0, SECOND]),
    window=st.sampled_from([SECOND, MINUTE]),
    duration=st.sampled_from([SECOND, 7 * SECOND, 5 * MINUTE]),
    max_duration=st.sampled_from([5 * MINUTE, MINUTE * 37, DAY]),
    decay=st.sampled_from([MINUTE, DAY]),
)

TRIED = explored(25, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


def stored(redis: RedisServer, key: Caller) -> State:
    flat = redis.call("HGETALL", f"petstore:key:{{{key.id}}}")
    return State(**{name: int(value) for name, value in flat.items()})


async def follow(redis: RedisServer, rules: BanRules, trace: list[Step]) -> None:
    """Go through a trace in both, and compare the decision and the state after each step."""
    caller = LimitedKey(Limits(1, 1), rules)
    async with redis_limiter(redis.url, Given(), caller.clock, rules=rules) as limiter:
        for step in trace:
            moment = when(step.moment, caller.state, rules, caller.clock())
            if step.action == "unbans":
                # By a clock that may differ from the server's; other processes learn of it later.
                caller.unbanned_at = moment + step.off or 1  # no key was unbanned in 1970
            else:
                caller.clock.now = max(0, moment + step.off)
            caller.limits = step.limits or caller.limits
            key = replace(api_key(1, *caller.limits), unbanned_at=caller.unbanned_at)
            if step.action == "look":
                assert await limiter.look(key) == caller.look()
                if caller.state != State():
                    caller.state = touched(caller.state, caller.clock())
                continue
            if step.action == "charge":
                admitted = caller.look()
                charged = await limiter.charge(key, step.times, admitted)
                assert charged == caller.charge(step.times, admitted)
                assert stored(redis, key) == caller.state
                continue
            for _ in range(step.times):
                assert await limiter.take(key) == caller.ask()
                assert stored(redis, key) == caller.state
                caller.clock.now += step.every


@TRIED
@given(rules=rules_of_bans, trace=st.lists(steps, min_size=1, max_size=20))
def test_the_script_agrees_with_the_limiter(
    redis: RedisServer, runner: asyncio.Runner, rules: BanRules, trace: list[Step]
) -> None:
    redis.call("FLUSHALL")
    runner.run(follow(redis, rules, trace))


SPANS = (0, SECOND, 7 * SECOND, MINUTE, 5 * MINUTE, DAY, 2 * DAY, 365 * DAY)


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
            ban_level=self.randint(0, 9),
            used_at=self.near(now),
            unbanned_at=self.near(now),
        )


async def agree(client: RedisClient, key_id: int, now: Milliseconds) -> None:
    draw = Draw(key_id)
    rules, limits, state = draw.rules(), draw.limits(), draw.state(now)
    unbanned_at = draw.choice([NEVER, state.unbanned_at, max(0, state.unbanned_at) + 1, now])
    key = replace(api_key(key_id, *limits), unbanned_at=unbanned_at)
    shared = RedisRateLimiter(client, Given(state), rules, PATIENT)
    mode: Mode = "charge" if key_id % 4 == 0 else "take"
    if mode == "charge":
        expected, after = charge(state, limits, now, unbanned_at, requests=key_id % 3)
    else:
        expected, after = decide(state, limits, rules, now, unbanned_at)
    assert await shared.judge(mode, key, key_id % 3) == expected, (rules, limits, state)
    assert await shared.load(key_id) == after, (rules, limits, state)
    other = RedisRateLimiter(client, Given(), rules, PATIENT)
    await other.judge("look", api_key(key_id, *limits))
    assert await other.load(key_id) == touched(after, now), (rules, limits, state)


def test_the_script_agrees_with_the_limiter_for_any_state(
    redis: RedisServer, runner: asyncio.Runner, clock: ManualClock
) -> None:
    async def go() -> None:
        client = TimedClient(redis.url, clock)
        for start in range(0, 1_000, 50):  # a client has a hundred connections
            ids = range(start, start + 50)
            await asyncio.gather(*(agree(client, n, clock()) for n in ids))
        await client.close()

    runner.run(go())


@TRIED
@given(trace=st.lists(steps, min_size=1, max_size=20), per_minute=st.integers(1, 3))
def test_the_script_agrees_with_the_limiter_of_minutes(
    redis: RedisServer, runner: asyncio.Runner, trace: list[Step], per_minute: int
) -> None:
    async def follow() -> None:
        clock = LimitedKey(Limits(1, 1)).clock
        alone = MinuteLimiter[str](clock, OF_ADDRESS._replace(per_minute=per_minute))
        async with redis_limiter(redis.url, Given(), clock) as limiter:
            for step in trace:
                clock.now += step.off
                if step.action == "look":
                    assert await limiter.look_at(alone.budget, "a") == alone.look("a")
                else:
                    assert await limiter.take_of(alone.budget, "a") == alone.take("a")

    redis.call("FLUSHALL")
    runner.run(follow())
