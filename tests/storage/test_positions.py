"""Where each caller's last change is: in one process, and in Redis for all."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from petstore.errors import Unavailable
from petstore.rate_limits.trips import FAULTS, connect
from petstore.storage.positions import MemoryPositions, RedisPositions
from petstore.storage.replicas import Positions
from support.manual_clock import ManualClock
from support.redis_server import RedisServer, redis_server

pytestmark = pytest.mark.anyio

KEY, ANOTHER = 1, 2


@pytest.fixture(scope="module")
def redis() -> Iterator[RedisServer]:
    with redis_server() as server:
        yield server


@pytest.fixture
def empty_redis(redis: RedisServer) -> RedisServer:
    redis.call("FLUSHALL")
    return redis


@asynccontextmanager
async def redis_positions(redis: RedisServer, seconds: float = 5) -> AsyncIterator[RedisPositions]:
    """Give the positions that one process has in Redis."""
    positions = RedisPositions(connect(redis.url, seconds), FAULTS)
    try:
        yield positions
    finally:
        await positions.close()


@pytest.fixture(params=["memory", "redis"])
async def positions(request: pytest.FixtureRequest, clock: ManualClock) -> AsyncIterator[Positions]:
    if request.param == "memory":
        memory = MemoryPositions(clock)
        yield memory
        await memory.close()
        return
    async with redis_positions(request.getfixturevalue("empty_redis")) as shared:
        yield shared


async def test_who_changed_nothing_is_at_the_beginning(positions: Positions) -> None:
    assert await positions.of(KEY) == 0


async def test_the_last_change_of_each_caller_is_known(positions: Positions) -> None:
    await positions.note(KEY, 2**40)
    await positions.note(ANOTHER, 7)
    await positions.note(KEY, 2**40 + 1)
    assert await positions.of(KEY) == 2**40 + 1
    assert await positions.of(ANOTHER) == 7


async def test_memory_forgets_who_changed_nothing_for_ten_minutes(clock: ManualClock) -> None:
    positions = MemoryPositions(clock)
    await positions.note(KEY, 5)
    await positions.note(ANOTHER, 6)
    clock.advance(400)
    await positions.note(KEY, 7)
    clock.advance(201)
    await positions.note(3, 8)
    assert [await positions.of(key) for key in (KEY, ANOTHER, 3)] == [7, 0, 8]


async def test_redis_forgets_who_changed_nothing_for_ten_minutes(empty_redis: RedisServer) -> None:
    async with redis_positions(empty_redis) as positions:
        await positions.note(KEY, 5)
    assert 590 < empty_redis.call("TTL", f"petstore:changed:{KEY}") <= 600


async def test_in_redis_every_process_knows_of_a_change(empty_redis: RedisServer) -> None:
    async with redis_positions(empty_redis) as one, redis_positions(empty_redis) as other:
        await one.note(KEY, 5)
        assert await other.of(KEY) == 5


async def test_more_may_ask_at_once_than_there_are_connections(empty_redis: RedisServer) -> None:
    async with redis_positions(empty_redis) as positions:
        await asyncio.gather(*(positions.note(key, key) for key in range(400)))
        assert await asyncio.gather(*map(positions.of, range(400))) == list(range(400))


async def test_without_redis_nothing_is_noted_or_told() -> None:
    with redis_server() as server:
        async with redis_positions(server) as positions:
            await positions.note(KEY, 5)
            server.kill()
            with pytest.raises(Unavailable, match="Redis is out of reach"):
                await positions.note(KEY, 6)
            with pytest.raises(Unavailable, match="Redis is out of reach"):
                await positions.of(KEY)
            server.start()
            await positions.note(KEY, 7)
            assert await positions.of(KEY) == 7


async def test_a_redis_that_hangs_is_not_waited_for(empty_redis: RedisServer) -> None:
    async with redis_positions(empty_redis, 0.1) as positions:
        empty_redis.pause()
        try:
            with pytest.raises(Unavailable):
                await positions.of(KEY)
        finally:
            empty_redis.resume()
