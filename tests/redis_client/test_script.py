"""Scripts that many callers share: one round trip for several calls."""

import asyncio

import pytest

from petstore.redis_client.client import RedisClient
from petstore.redis_client.script import BatchedScript
from support.redis_server import RedisServer
from support.silent_server import way_to

pytestmark = pytest.mark.anyio

COUNT = b"return redis.call('INCR', KEYS[1])"


async def test_concurrent_calls_share_round_trips(redis: RedisServer) -> None:
    async with way_to(redis.port) as way:
        client = RedisClient(way.url)
        script = BatchedScript(client, COUNT, 10)
        await script.run("first", b"")
        before = len(way.heard)
        counts = await asyncio.gather(*(script.run("shared", b"") for _ in range(64)))
        assert counts == [*range(1, 65)]
        assert len(way.heard) - before < 20
        await client.close()


async def test_two_hundred_concurrent_calls_wait_for_few_slow_round_trips(
    redis: RedisServer,
) -> None:
    async with way_to(redis.port, delay=0.03) as way:
        client = RedisClient(way.url)
        script = BatchedScript(client, COUNT, 10)
        await script.run("first", b"")
        before = len(way.heard)
        await asyncio.gather(*(script.run("slow", b"") for _ in range(200)))
        assert len(way.heard) - before < 12
        await client.close()
