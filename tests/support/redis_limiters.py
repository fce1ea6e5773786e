"""Limiters on a real Redis server, by a clock that only the test moves."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from petstore.domain.api_keys import DEFAULT_SCOPES, ApiKey
from petstore.rate_limits.contract import BanRules, PardonStore
from petstore.rate_limits.redis import RedisLimiter
from petstore.rate_limits.trips import Check, Heartbeat, Reply, Trips, connect
from support.manual_clock import ManualClock

PATIENT = 10.0
"""Seconds to wait for Redis where nothing fails: a busy machine is no fault."""


class TimedTrips(Trips):
    """Trips that go by ``clock``, as if it were that of the server."""

    clock: ManualClock

    async def run(self, check: Check) -> Reply:
        mode, _, *others = check.arguments
        return await super().run(check._replace(arguments=(mode, self.clock(), *others)))

    async def count_processes(self) -> Heartbeat:
        return (await super().count_processes())._replace(now=self.clock())


def timed_trips(url: str, clock: ManualClock, seconds: float = PATIENT) -> Trips:
    """Return trips to a server that go by ``clock``."""
    trips = TimedTrips(connect(url, None), seconds)
    trips.clock = clock
    return trips


@asynccontextmanager
async def redis_limiter(
    url: str,
    store: PardonStore,
    clock: ManualClock,
    *,
    rules: BanRules | None = None,
    seconds: float = PATIENT,
    per_minute: int = 2,
    processes: int = 1,
    trips: Trips | None = None,
) -> AsyncIterator[RedisLimiter]:
    """Give the limiter of one process; the server has its clock, unless by ``trips`` another."""
    trips = trips or timed_trips(url, clock, seconds)
    limiter = RedisLimiter(
        trips, store, clock, rules or BanRules(), per_minute, 100, processes=processes
    )
    try:
        yield limiter
    finally:
        await limiter.close()


def api_key(key_id: int, per_minute: int | None = None, per_day: int | None = None) -> ApiKey:
    """Return a key that is in no store, with the limits that are given."""
    return ApiKey(
        id=key_id,
        name="test",
        plan="enterprise",
        per_minute=per_minute,
        per_day=per_day,
        scopes=frozenset(DEFAULT_SCOPES),
        environment="production",
        created_at=0,
        expires_at=None,
        revoked_at=None,
        unbanned_at=None,
    )


def said(caplog: Any) -> list[str]:
    """Return the first words of what the limiter has logged."""
    return [" ".join(record.getMessage().split()[:3]) for record in caplog.records]
