"""Limiters of both kinds, and the server that one of them needs."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import TypeAlias

import pytest

from petstore.databases.sqlite import SqliteStore
from petstore.keys.model import Caller
from petstore.limits.database import StoredRateLimits
from petstore.limits.decide import BanRules, RateLimiter
from petstore.limits.memory import MemoryLimiter
from support.keys import issue_stored
from support.manual_clock import ManualClock
from support.redis_limiters import redis_limiter
from support.redis_server import RedisServer

StartLimiter: TypeAlias = Callable[[StoredRateLimits], Awaitable[RateLimiter]]


@pytest.fixture
def redis(redis: RedisServer) -> RedisServer:
    """A server with nothing in it; it must be left running."""
    redis.call("FLUSHALL")
    return redis


@pytest.fixture(params=["memory", "redis"])
async def start_limiter(
    request: pytest.FixtureRequest, clock: ManualClock
) -> AsyncIterator[StartLimiter]:
    """Start limiters that remember nothing but what is in their store."""
    async with AsyncExitStack() as started:

        async def start(states: StoredRateLimits) -> RateLimiter:
            if request.param == "memory":
                return MemoryLimiter(states, clock, BanRules())
            redis: RedisServer = request.getfixturevalue("redis")
            redis.call("FLUSHALL")
            return await started.enter_async_context(redis_limiter(redis.url, states, clock))

        yield start


@pytest.fixture
def states(store: SqliteStore) -> StoredRateLimits:
    return StoredRateLimits(store)


@pytest.fixture
async def limiter(start_limiter: StartLimiter, states: StoredRateLimits) -> RateLimiter:
    """A limiter of either kind."""
    return await start_limiter(states)


@pytest.fixture
async def key(store: SqliteStore, clock: ManualClock) -> Caller:
    return await issue_stored(store, clock)
