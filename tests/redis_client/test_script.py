"""Scripts that many callers share: one round trip for several calls."""

import asyncio

import pytest

from petstore.redis_client.client import RedisClient, RedisUnavailable
from petstore.redis_client.script import BatchedScript
from support.redis_server import RedisServer
from support.silent_server import way_to

pytestmark = pytest.mark.anyio

COUNT = b"""
local counts = {}
for number, key in ipairs(KEYS) do counts[number] = redis.call("INCR", key) end
return counts
"""


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


async def test_calls_of_one_round_trip_share_commands(redis: RedisServer) -> None:
    async with way_to(redis.port) as way:
        client = RedisClient(way.url)
        script = BatchedScript(client, COUNT, 10)
        await script.run("first", b"")
        before = b"".join(way.heard).count(b"EVALSHA")
        keys = [f"apart {number}" for number in range(100)]
        assert await asyncio.gather(*(script.run(key, b"") for key in keys)) == [1] * 100
        assert b"".join(way.heard).count(b"EVALSHA") - before == 4
        await client.close()


async def test_a_command_that_fails_fails_for_all_its_keys_and_for_no_others(
    redis: RedisServer,
) -> None:
    client = RedisClient(redis.url)
    script = BatchedScript(client, COUNT, 10)
    await client.execute([("SET", "no number", "text")], 10)
    keys = [f"beside {number}" for number in range(63)]
    calls = [script.run(key, b"") for key in ("no number", *keys)]
    results = await asyncio.gather(*calls, return_exceptions=True)
    assert [isinstance(result, RedisUnavailable) for result in results[:32]] == [True] * 32
    assert results[32:] == [1] * 32
    await client.close()
