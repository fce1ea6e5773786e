"""The limiter on a Redis Cluster of three masters, and behind a Sentinel."""

import asyncio
from collections.abc import Iterator

import pytest

from petstore.limits.contract import RateLimiter
from petstore.limits.database import StoredRateLimits
from petstore.limits.redis import RedisLimiter
from petstore.redis_client.client import KeysApart, RedisClient
from petstore.redis_client.script import BatchedScript
from support.manual_clock import ManualClock
from support.outages import LOST, HurriedClient, comes_back
from support.redis_cluster import RedisCluster, redis_cluster, watched
from support.redis_limiters import PATIENT, api_key, redis_limiter, said

pytestmark = pytest.mark.anyio


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for each server as long as for a round trip, where none fails."""
    monkeypatch.setattr("petstore.redis_client.client._NODE_TIMEOUT", PATIENT)


@pytest.fixture(scope="module")
def cluster() -> Iterator[RedisCluster]:
    with redis_cluster() as cluster:
        yield cluster


async def admitted_of_each(limiters: list[RedisLimiter], ids: range, requests: int) -> list[int]:
    """Send concurrent requests with alternating keys; return how many of each were admitted."""

    async def ask(key_id: int, number: int) -> bool:
        limiter: RateLimiter = limiters[(key_id + number) % len(limiters)]
        return (await limiter.take(api_key(key_id, 10))).verdict == "admitted"

    asked = [asyncio.gather(*(ask(key_id, n) for n in range(requests))) for key_id in ids]
    return [sum(verdicts) for verdicts in await asyncio.gather(*asked)]


@pytest.mark.usefixtures("patient")
async def test_keys_on_all_nodes_of_a_cluster_are_counted_exactly(
    cluster: RedisCluster,
    states: StoredRateLimits,
    clock: ManualClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with (
        redis_limiter(cluster.url, states, clock) as one,
        redis_limiter(cluster.url, states, clock) as other,
    ):
        await one.heartbeat()
        await other.heartbeat()
        assert await admitted_of_each([one, other], range(1, 41), 25) == [10] * 40
    assert all(server.call("DBSIZE") > 5 for server in cluster.servers)
    assert said(caplog) == []


@pytest.mark.usefixtures("patient")
async def test_flushed_scripts_and_moved_slots_do_not_cause_failures(
    cluster: RedisCluster,
    states: StoredRateLimits,
    clock: ManualClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with redis_limiter(cluster.url, states, clock) as limiter:
        await admitted_of_each([limiter], range(101, 110), 1)
        for key_id in range(111, 120):
            name = f"petstore:key:{{{key_id}}}"
            home = cluster.servers.index(cluster.server_of(name))
            cluster.move(name, cluster.servers[home - 1])
            cluster.servers[home - 1].call("SCRIPT", "FLUSH")
        assert await admitted_of_each([limiter], range(111, 120), 25) == [10] * 9
        assert await admitted_of_each([limiter], range(111, 120), 25) == [0] * 9
    assert said(caplog) == []


async def test_behind_an_address_of_one_server_each_key_has_a_command_after_the_first_refusal(
    cluster: RedisCluster,
) -> None:
    server = cluster.server_of("1")
    names = [name for name in map(str, range(20)) if cluster.server_of(name) is server]
    client = RedisClient(server.url)
    script = BatchedScript(client, b"return KEYS", PATIENT)
    refused = await asyncio.gather(*(script.run(n, b"") for n in names), return_exceptions=True)
    assert {type(error) for error in refused} == {KeysApart}
    assert await asyncio.gather(*(script.run(n, b"") for n in names)) == [
        name.encode() for name in names
    ]
    await client.close()


@pytest.mark.parametrize("fault", ["killed", "hanging"])
async def test_without_a_master_of_the_cluster_processes_fall_back_to_their_share(
    fault: str,
    states: StoredRateLimits,
    clock: ManualClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with redis_cluster() as cluster:
        client = HurriedClient(cluster.url, clock)
        async with redis_limiter(cluster.url, states, clock, client=client) as limiter:
            await admitted_of_each([limiter], range(1, 20), 4)
            lost = cluster.server_of("petstore:key:{1}")
            lost.kill() if fault == "killed" else lost.pause()
            client.hurried = 1
            assert await admitted_of_each([limiter], range(1, 20), 25) == [6] * 19
            # On a busy machine, another master may have been late before.
            assert said(caplog)[0] == LOST
            lost.start() if fault == "killed" else lost.resume()
            client.hurried = None
            await comes_back(limiter, caplog)
            # The cluster may have counted a request although its response was lost.
            assert max(await admitted_of_each([limiter], range(1, 20), 25)) <= 6
            assert await admitted_of_each([limiter], range(201, 220), 25) == [10] * 19


async def test_the_count_continues_after_a_sentinel_failover(
    states: StoredRateLimits, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    with watched() as shop:
        client = HurriedClient(shop.url, clock)
        async with redis_limiter(shop.url, states, clock, client=client) as limiter:
            assert await admitted_of_each([limiter], range(1, 2), 4) == [4]
            shop.replicate()
            shop.master.kill()
            client.hurried = 1
            assert await admitted_of_each([limiter], range(1, 2), 3) == [3]
            client.hurried = None
            await comes_back(limiter, caplog)
            assert await admitted_of_each([limiter], range(1, 2), 25) == [6]
        assert shop.replica.call("ROLE")[0] == "master"
