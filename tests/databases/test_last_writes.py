"""The LSN of each key's last write: in one process, and in Redis for all."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import pytest

from petstore.databases.last_writes import MemoryLastWrites, RedisLastWrites
from petstore.databases.replicas import END, LastWrites
from petstore.redis_client.client import RedisClient, RedisUnavailable
from support.manual_clock import ManualClock
from support.redis_server import RedisServer, redis_server
from support.silent_server import fake_server

pytestmark = pytest.mark.anyio

KEY, ANOTHER = 1, 2
BRIEF = 0.2
"""Seconds to wait for a server that will not respond."""
SILENT, BACK = "cannot read the last writes", "Redis responds again; lists are"


@pytest.fixture
def empty_redis(redis: RedisServer) -> RedisServer:
    redis.call("FLUSHALL")
    return redis


def logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the first words of what was logged."""
    return [" ".join(record.getMessage().split()[:5]) for record in caplog.records]


@asynccontextmanager
async def redis_last_writes(
    url: str, clock: ManualClock, seconds: float = 5
) -> AsyncIterator[RedisLastWrites]:
    """Give the writes that one process has in Redis, once it knows that."""
    writes = RedisLastWrites(RedisClient(url), (RedisUnavailable,), clock, seconds)
    await writes.lsn(KEY)
    clock.advance(1)
    try:
        yield writes
    finally:
        await writes.close()


@contextmanager
def failing(redis: RedisServer) -> Iterator[None]:
    """Let the server respond to everything with an error; it keeps its memory."""
    redis.call("CONFIG", "SET", "replica-serve-stale-data", "no")
    redis.call("REPLICAOF", "127.0.0.1", "1")
    try:
        yield
    finally:
        redis.call("REPLICAOF", "NO", "ONE")


@pytest.fixture(params=["memory", "redis"])
async def writes(request: pytest.FixtureRequest, clock: ManualClock) -> AsyncIterator[LastWrites]:
    if request.param == "memory":
        memory = MemoryLastWrites(clock)
        yield memory
        await memory.close()
        return
    redis: RedisServer = request.getfixturevalue("empty_redis")
    async with redis_last_writes(redis.url, clock) as shared:
        yield shared


@pytest.fixture
async def one(empty_redis: RedisServer, clock: ManualClock) -> AsyncIterator[RedisLastWrites]:
    async with redis_last_writes(empty_redis.url, clock) as writes:
        yield writes


@pytest.fixture
async def other(empty_redis: RedisServer, clock: ManualClock) -> AsyncIterator[RedisLastWrites]:
    """The last writes of another process on the server of ``one``."""
    async with redis_last_writes(empty_redis.url, clock) as writes:
        yield writes


async def test_a_key_without_a_write_has_position_0(writes: LastWrites) -> None:
    assert await writes.lsn(KEY) == 0


async def test_the_last_write_of_each_key_is_known(writes: LastWrites) -> None:
    await writes.record(KEY, 2**40)
    await writes.record(ANOTHER, 7)
    await writes.record(KEY, 2**40 + 1)
    assert await writes.lsn(KEY) == 2**40 + 1
    assert await writes.lsn(ANOTHER) == 7


async def test_a_write_that_is_recorded_late_does_not_move_a_key_back(writes: LastWrites) -> None:
    await writes.record(KEY, 100)
    await writes.record(KEY, 99)
    assert await writes.lsn(KEY) == 100


async def test_the_next_write_replaces_an_unknown_position(writes: LastWrites) -> None:
    await writes.record(KEY, 100)
    await writes.record(KEY, END)
    assert await writes.lsn(KEY) == END
    await writes.record(KEY, 102)
    assert await writes.lsn(KEY) == 102


async def test_memory_evicts_a_key_without_a_write_for_ten_minutes(clock: ManualClock) -> None:
    writes = MemoryLastWrites(clock)
    await writes.record(KEY, 5)
    await writes.record(ANOTHER, 6)
    clock.advance(400)
    await writes.record(KEY, 7)
    clock.advance(201)
    await writes.record(3, 8)
    assert [await writes.lsn(key) for key in (KEY, ANOTHER, 3)] == [7, 0, 8]


async def test_redis_expires_a_key_without_a_write_for_ten_minutes(
    one: RedisLastWrites, empty_redis: RedisServer
) -> None:
    await one.record(KEY, 5)
    assert 590 < empty_redis.call("TTL", f"petstore:changed:{KEY}") <= 600


async def test_every_process_sees_a_write_recorded_in_redis(
    one: RedisLastWrites, other: RedisLastWrites
) -> None:
    await one.record(KEY, 5)
    assert await other.lsn(KEY) == 5


async def test_more_reads_than_connections_can_run_at_once(one: RedisLastWrites) -> None:
    await asyncio.gather(*(one.record(key, key) for key in range(400)))
    assert await asyncio.gather(*map(one.lsn, range(400))) == list(range(400))


async def test_without_redis_every_position_is_unknown_and_the_log_says_so_once(
    clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    with redis_server() as server:
        async with redis_last_writes(server.url, clock) as writes:
            server.kill()
            for _ in range(3):
                await writes.record(KEY, 6)
                assert await writes.lsn(ANOTHER) == END
                clock.advance(1)
            assert logged(caplog) == [SILENT]
            server.start()
            assert await writes.lsn(KEY) == END  # it has lost its memory
            await writes.record(KEY, 7)
            assert await writes.lsn(KEY) == 7
            assert logged(caplog) == [SILENT, BACK]


async def test_a_hanging_redis_is_tried_once_a_second(clock: ManualClock) -> None:
    async with fake_server() as silent, redis_last_writes(silent.url, clock, BRIEF) as writes:
        for _ in range(3):
            heard = len(silent.heard)
            assert [await writes.lsn(KEY), await writes.lsn(KEY)] == [END, END]
            await writes.record(KEY, 5)
            assert len(silent.heard) == heard + 1
            clock.advance(1)


async def test_concurrent_reads_share_one_timeout(
    clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with fake_server() as silent, redis_last_writes(silent.url, clock, BRIEF) as writes:
        assert set(await asyncio.gather(*map(writes.lsn, range(400)))) == {END}
        # As many requests as connections were sent, and none after them.
        assert len(silent.heard) <= 51
    assert logged(caplog) == [SILENT]


@pytest.mark.parametrize("is_known_to_fail", [False, True])
async def test_no_process_misses_a_write_made_while_redis_failed(
    is_known_to_fail: bool,  # noqa: FBT001 - a parameter of the test
    one: RedisLastWrites,
    other: RedisLastWrites,
    empty_redis: RedisServer,
    clock: ManualClock,
) -> None:
    await one.record(KEY, 10)
    with failing(empty_redis):
        if is_known_to_fail:
            await one.lsn(ANOTHER)
        await one.record(KEY, 20)
    clock.advance(1)
    assert await one.lsn(ANOTHER) == END
    assert await other.lsn(KEY) == END
    await other.record(ANOTHER, 30)
    assert await other.lsn(KEY) == await one.lsn(KEY) == 30
    await one.record(3, 40)
    assert await other.lsn(KEY) == 40
    assert 0 < empty_redis.call("TTL", "petstore:changes:min") <= 600


async def test_no_process_misses_a_write_whose_client_disconnected_early(
    one: RedisLastWrites, other: RedisLastWrites, empty_redis: RedisServer
) -> None:
    empty_redis.pause()
    noting = asyncio.create_task(one.record(KEY, 5))
    await asyncio.sleep(0.01)
    noting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await noting
    empty_redis.resume()
    await one.lsn(ANOTHER)
    assert await other.lsn(KEY) == END


async def test_after_a_long_redis_failure_a_process_assumes_writes_by_others(
    one: RedisLastWrites, other: RedisLastWrites, empty_redis: RedisServer, clock: ManualClock
) -> None:
    with failing(empty_redis):
        for _ in range(2):
            assert await one.lsn(KEY) == END
            clock.advance(1)
    assert await one.lsn(KEY) == END
    assert await other.lsn(KEY) == END


async def test_after_a_single_redis_failure_a_process_assumes_no_writes_by_others(
    one: RedisLastWrites, empty_redis: RedisServer, clock: ManualClock
) -> None:
    with failing(empty_redis):
        assert await one.lsn(KEY) == END
    assert await one.lsn(KEY) == END
    clock.advance(1)
    assert await one.lsn(KEY) == 0


async def test_after_redis_lost_its_data_positions_are_unknown_until_the_next_write(
    one: RedisLastWrites, other: RedisLastWrites, empty_redis: RedisServer, clock: ManualClock
) -> None:
    await one.record(KEY, 10)
    empty_redis.call("FLUSHALL")
    async with redis_last_writes(empty_redis.url, clock) as late:
        # A process that has just started does not know what there was; another one does.
        assert await other.lsn(KEY) == END
        assert await late.lsn(KEY) == await one.lsn(KEY) == await other.lsn(KEY) == END
        await late.record(ANOTHER, 11)
        assert [await each.lsn(KEY) for each in (late, one, other)] == [11, 11, 11]
