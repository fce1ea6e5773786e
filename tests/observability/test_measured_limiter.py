"""Bans and fallbacks of a limiter in Redis, as ``/metrics`` has them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeAlias

import pytest

from petstore.backends import create_limiter
from petstore.databases.sqlite import SqliteStore
from petstore.limits.decide import RateLimiter
from petstore.observability.measured import report_limiter
from petstore.settings import Settings
from support.keys import issue_stored
from support.manual_clock import ManualClock
from support.observed import port_of, read_metrics, registry_of_test
from support.redis_server import RedisServer, redis_server
from support.stores import open_store

pytestmark = pytest.mark.anyio

ReadSample: TypeAlias = Callable[[str], Awaitable[float]]


@asynccontextmanager
async def measured_limiter(
    database: Path, redis: RedisServer, clock: ManualClock
) -> AsyncIterator[tuple[RateLimiter, SqliteStore, ReadSample]]:
    settings = Settings(redis=redis.url, ban_strikes=1, ban_grace_seconds=0)
    with registry_of_test() as registry:

        async def sample(name: str) -> float:
            samples = await asyncio.to_thread(read_metrics, port_of(registry))
            return samples[f"petstore_{name}"]

        async with open_store(database) as store, registry.running():
            limiter = create_limiter(settings, store, clock)
            report_limiter(registry, limiter)
            try:
                yield limiter, store, sample
            finally:
                await limiter.close()


async def test_a_ban_in_redis_is_counted_once(database: Path, clock: ManualClock) -> None:
    with redis_server() as redis:
        async with measured_limiter(database, redis, clock) as (limiter, store, sample):
            for bans in (1, 2, 3):
                key = await issue_stored(store, clock, plan="enterprise", per_minute=1)
                is_banned = False
                while not is_banned:
                    # Several within one millisecond, so that one brings the ban and others meet it.
                    burst = await asyncio.gather(*(limiter.take(key) for _ in range(50)))
                    is_banned = burst[-1].verdict == "banned"
                for _ in range(200):  # which takes longer than a millisecond
                    await limiter.take(key)
                assert await sample("bans_total") == bans


async def test_a_fallback_without_redis_is_reported_and_counted(
    database: Path, clock: ManualClock
) -> None:
    with redis_server() as redis:
        async with measured_limiter(database, redis, clock) as (limiter, store, sample):
            key = await issue_stored(store, clock)
            await limiter.take(key)
            assert await sample("limiter_fallback_workers") == 0
            redis.kill()
            await limiter.take(key)
            await limiter.heartbeat()
            assert await sample("limiter_fallback_workers") == 1
            assert await sample("limiter_fallbacks_total") == 1
            redis.start()
            await limiter.heartbeat()
            assert await sample("limiter_fallback_workers") == 0
            assert await sample("limiter_fallbacks_total") == 1


async def test_a_failed_heartbeat_counts_as_a_fallback(database: Path, clock: ManualClock) -> None:
    with redis_server() as redis:
        async with measured_limiter(database, redis, clock) as (limiter, _, sample):
            redis.kill()
            await limiter.heartbeat()
            assert await sample("limiter_fallback_workers") == 1
