"""The limiter of many processes, on a real server: with it, without it, and in between."""

import asyncio
import math
import shutil
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from itertools import cycle, islice
from pathlib import Path
from typing import TypeAlias

import pytest
from msgspec.msgpack import encode
from msgspec.structs import replace

from petstore.clock import MINUTE, SECOND, system_clock
from petstore.keys.model import Caller
from petstore.limits.database import StoredRateLimits
from petstore.limits.decide import BanRules, Decision, LimitWindow, RateLimiter
from petstore.limits.redis import RedisLimiter
from petstore.redis_client import RedisClient
from support.manual_clock import ManualClock
from support.programs import needs
from support.redis_limiters import OF_ADDRESS, TimedClient, api_key, redis_limiter, said
from support.redis_server import RedisServer, redis_server
from support.silent_server import fake_server, way_to
from support.tls import self_signed_certificate
from support.waiting import eventually

pytestmark = pytest.mark.anyio

SECONDS = 0.3
"""The timeout of a round trip to a server that never responds as Redis does."""
NOON = 20_788 * 86_400 + 43_200
LOST, FOUND = "Redis is unavailable;", "Redis is back;"
BAN_AT_ONCE = BanRules(min_strikes=1, strikes_divisor=10**6, grace=0)


@pytest.fixture
def server() -> Iterator[RedisServer]:
    with redis_server() as server:
        yield server


Connect: TypeAlias = Callable[..., AbstractAsyncContextManager[RedisLimiter]]
"""Takes the URL of a server and options of ``redis_limiter``."""


@pytest.fixture
def connect(states: StoredRateLimits, clock: ManualClock) -> Connect:
    return lambda url, **options: redis_limiter(url, states, clock, **options)


async def admitted(limiter: RateLimiter, key: Caller, requests: int) -> int:
    decisions = await asyncio.gather(*(limiter.take(key) for _ in range(requests)))
    return [decision.verdict for decision in decisions].count("admitted")


async def get_banned(limiter: RateLimiter, key: Caller, clock: ManualClock) -> Decision:
    while (decision := await limiter.take(key)).verdict != "banned":
        clock.advance(0.01)
    return decision


async def test_processes_share_one_count_which_is_saved_whoever_saves_last(
    redis: RedisServer, states: StoredRateLimits, connect: Connect, key: Caller
) -> None:
    async with connect(redis.url) as one, connect(redis.url) as other:
        assert await admitted(one, key, 24) == 24
        assert await admitted(other, key, 24) == 24
        for each in (other, one):  # the older state is saved last
            await each.save()
        saved = await states.load(key.id)
        assert saved is not None
        assert saved.minute_used == 48
        decisions = await asyncio.gather(*((one, other)[n % 2].take(key) for n in range(100)))
    remaining = [d.minute.remaining for d in decisions if d.verdict == "admitted"]
    assert sorted(remaining) == list(range(12))


async def test_the_clock_of_the_redis_server_is_used_even_without_it(
    server: RedisServer, connect: Connect, key: Caller
) -> None:
    async with connect(server.url, client=RedisClient(server.url)) as limiter:
        await limiter.heartbeat()
        decisions = [await limiter.take(key)]
        server.kill()
        decisions.append(await limiter.take(key))
    assert all(abs(each.now - system_clock()) < MINUTE for each in decisions)


async def test_an_unban_seen_by_one_process_applies_at_once_in_another(
    redis: RedisServer, connect: Connect, clock: ManualClock, key: Caller
) -> None:
    async with (
        connect(redis.url, rules=BAN_AT_ONCE) as one,
        connect(redis.url, rules=BAN_AT_ONCE) as other,
    ):
        await get_banned(one, key, clock)
        await one.look(replace(key, unbanned_at=clock()))
        clock.advance(60)
        assert (await other.take(key)).verdict == "admitted"


async def test_every_redis_key_is_in_the_database_of_the_url_and_has_an_expiry(
    redis: RedisServer, connect: Connect, key: Caller
) -> None:
    async with connect(f"{redis.url}/3") as limiter:
        await limiter.look(api_key(7))  # which creates none
        await limiter.look_at(OF_ADDRESS, "192.0.2.7")
        await limiter.heartbeat()
        await limiter.take(key)
        await limiter.take_of(OF_ADDRESS, "192.0.2.1")
        assert redis.call("DBSIZE") == 0
        redis.call("SWAPDB", 0, 3)
        ends = {name: redis.call("PTTL", name) for name in redis.call("KEYS", "*")}
    assert len(ends) == 3
    assert 0 < ends["petstore:address:{192.0.2.1}"] <= 2 * MINUTE
    assert 0 < ends[f"petstore:key:{{{key.id}}}"] <= 24 * 60 * MINUTE
    assert 0 < ends["petstore:processes"] <= 5_000


async def test_what_somebody_else_wrote_is_ignored_or_replaced(
    redis: RedisServer, connect: Connect, key: Caller
) -> None:
    names = f"petstore:key:{{{key.id}}}", "petstore:address:{192.0.2.1}"
    async with connect(redis.url) as limiter:
        for value in (2.5, math.nan, math.inf, 1e300, 2**47, "many", None, [1]):
            fields = dict.fromkeys(("day_used", "minute_used", "banned_until"), value)
            redis.call("SET", names[0], encode(fields))
            decision = await limiter.take(key)
            assert (decision.verdict, decision.minute.remaining) == ("admitted", 59), value
        await limiter.save()
        redis.call("DEL", names[0])
        redis.call("LPUSH", names[0], "mine")
        redis.call("SET", names[1], "mine")
        of_key, of_address = await limiter.take(key), await limiter.take_of(OF_ADDRESS, "192.0.2.1")
        assert not limiter.has_fallen_back
    assert (of_key.minute.remaining, of_address.minute.remaining) == (58, 1)
    assert {redis.call("TYPE", name) for name in names} == {"string"}


async def test_flushed_scripts_and_broken_connections_cause_no_failures(
    redis: RedisServer, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    key = api_key(1, 1_000)
    async with connect(redis.url) as limiter:
        for _ in range(20):
            await asyncio.gather(admitted(limiter, key, 10), limiter.heartbeat())
            redis.call("SCRIPT", "FLUSH")
            redis.call("CLIENT", "KILL", "TYPE", "normal")
        assert (await limiter.take(key)).minute.remaining == 799
    assert said(caplog) == []


async def test_a_cancelled_call_does_not_affect_the_others(
    redis: RedisServer, connect: Connect, key: Caller
) -> None:
    async with connect(redis.url) as limiter:
        await limiter.take(key)
        calls = [asyncio.create_task(limiter.take(key)) for _ in range(10)]
        await asyncio.sleep(0)
        for call in calls[::2]:
            call.cancel()
        decisions = await asyncio.gather(*calls, return_exceptions=True)
        remaining = [d.minute.remaining for d in decisions if isinstance(d, Decision)]
        assert remaining == [57, 55, 53, 51, 49]
        assert (await limiter.take(key)).minute.remaining == 48


async def test_if_one_round_trip_fails_every_waiting_call_falls_back_at_once(
    connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    key = api_key(1, 300)
    async with fake_server() as silent, connect(silent.url, seconds=SECONDS) as limiter:
        calls = [asyncio.create_task(limiter.take(key)) for _ in range(400)]
        await eventually(lambda: silent.heard)
        calls[0].cancel()
        cancelled, *decisions = await asyncio.gather(*calls, return_exceptions=True)
        assert isinstance(cancelled, asyncio.CancelledError)
        remaining = [d.minute.remaining for d in decisions if isinstance(d, Decision)]
        assert remaining == [*range(299, -1, -1), *[0] * 99]
        assert await admitted(limiter, key, 10) == 0
    # One for the first round trip, at most one for closing: no other request has waited.
    assert len(silent.heard) <= 2
    assert said(caplog) == [LOST]


@pytest.mark.parametrize(
    "response",
    [
        *(b"HTTP/1.1 400 Bad Request\r\n\r\n", b"+OK\r\n", b":7\r\n", b"*1\r\n$-1\r\n", b"$"),
        b"-LOADING Redis is loading the dataset in memory\r\n" * 3,
    ],
)
async def test_a_server_that_is_not_redis_or_is_loading_is_unavailable(
    response: bytes, connect: Connect, key: Caller, caplog: pytest.LogCaptureFixture
) -> None:
    async with fake_server(response) as fake, connect(fake.url, seconds=SECONDS) as limiter:
        assert await admitted(limiter, key, 100) == 60
    assert said(caplog) == [LOST]


async def test_without_redis_each_process_admits_its_share(
    server: RedisServer, connect: Connect
) -> None:
    async with AsyncExitStack() as stack:
        limiters = [await stack.enter_async_context(connect(server.url)) for _ in range(4)]
        for limiter in [*limiters, *limiters]:
            await limiter.heartbeat()
        server.kill()
        key = api_key(1, 100, 60)
        assert [await admitted(limiter, key, 99) for limiter in limiters] == [15] * 4
        limiter = limiters[0]
        assert (await limiter.look(key)).day == LimitWindow(15, 0, (20_788 + 1) * 86_400)
        other = api_key(2, 100, 60)
        verdicts = [(await limiter.charge(other, requests)).verdict for requests in (16, 15, 1)]
        assert verdicts == ["limited", "admitted", "limited"]
        assert await admitted(limiter, api_key(3), 500) == 500


async def test_a_server_that_does_not_let_the_script_run_is_unavailable(
    server: RedisServer, connect: Connect
) -> None:
    async with connect(server.url) as limiter:
        server.call("ACL", "SETUSER", "default", "-get")
        for remaining in (1, 0):
            assert (await limiter.take_of(OF_ADDRESS, "a")).minute.remaining == remaining
            await limiter.heartbeat()
        server.call("ACL", "SETUSER", "default", "+get")
        await limiter.heartbeat()
        assert not limiter.has_fallen_back


async def test_processes_share_a_budget_and_without_redis_each_has_its_share(
    server: RedisServer, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    budget = OF_ADDRESS._replace(per_minute=4)
    async with connect(server.url, processes=2) as one, connect(server.url, processes=2) as other:
        limiters = [one, other, one, other, one]
        shared = [(await each.take_of(budget, "a")).verdict for each in limiters]
        assert shared == ["admitted"] * 4 + ["limited"]
        server.kill()
        alone = [(await one.take_of(budget, "b")).verdict for _ in range(3)]
        assert alone == ["admitted", "admitted", "limited"]
        assert said(caplog) == [LOST]
        assert (await other.look_at(budget, "b")).described == (2, 2, NOON + 60)


@pytest.mark.parametrize("is_up", [True, False])
async def test_the_share_uses_at_least_the_configured_number_of_processes(
    server: RedisServer, connect: Connect, *, is_up: bool
) -> None:
    if not is_up:
        server.kill()
    async with connect(server.url, processes=3) as limiter:
        await limiter.heartbeat()
        server.kill()
        assert await admitted(limiter, api_key(1, 100), 99) == 33


async def test_the_share_of_a_process_that_closed_or_is_silent_goes_to_the_others(
    server: RedisServer, connect: Connect
) -> None:
    async with connect(server.url) as limiter:
        async with connect(server.url) as other:
            await other.heartbeat()
        server.call("ZADD", "petstore:processes", int(time.time()) - 6, "silent")
        await limiter.heartbeat()
        server.kill()
        assert await admitted(limiter, api_key(1, 100), 200) == 100


@pytest.mark.parametrize(("used", "left"), [(40, 10), (39, 10), (41, 9)])
async def test_earlier_requests_count_against_the_share(
    server: RedisServer, connect: Connect, key: Caller, used: int, left: int
) -> None:
    async with connect(server.url, processes=2) as limiter:
        assert await admitted(limiter, key, used) == used
        server.kill()
        assert await admitted(limiter, key, 40) == left


@pytest.mark.parametrize("saved", [True, False])
async def test_known_bans_apply_without_redis(
    server: RedisServer, connect: Connect, clock: ManualClock, key: Caller, *, saved: bool
) -> None:
    """Saved bans hold in every process, unsaved ones in the process that knows them."""
    async with (
        connect(server.url, rules=BAN_AT_ONCE) as limiter,
        connect(server.url, rules=BAN_AT_ONCE) as other,
    ):
        await get_banned(limiter, key, clock)
        if saved:
            await limiter.save()
        server.kill()
        clock.advance(61)
        assert (await limiter.take(key)).verdict == "banned"
        assert (await other.take(key)).verdict == ("banned" if saved else "admitted")
        unbanned = replace(key, unbanned_at=clock())
        assert (await limiter.take(unbanned)).verdict == "admitted"


async def test_a_server_that_lost_its_data_continues_from_the_saved_counts(
    server: RedisServer, connect: Connect, clock: ManualClock
) -> None:
    key, banned = api_key(1, 100), api_key(2, 1)
    async with connect(server.url, rules=BAN_AT_ONCE) as limiter:
        assert await admitted(limiter, key, 30) == 30
        await get_banned(limiter, banned, clock)
        server.call("FLUSHALL")
        assert await admitted(limiter, key, 100) == 70
        assert (await limiter.take(banned)).verdict == "banned"


async def test_a_restart_of_the_server_does_not_increase_the_shares(
    server: RedisServer, connect: Connect
) -> None:
    async with connect(server.url) as limiter, connect(server.url) as other:
        await other.heartbeat()
        await limiter.heartbeat()
        server.kill()
        await limiter.heartbeat()
        server.start()
        await limiter.heartbeat()
        server.kill()
        assert await admitted(limiter, api_key(1, 100), 200) == 50


async def test_a_call_whose_connection_breaks_is_sent_again(
    server: RedisServer, connect: Connect, key: Caller, caplog: pytest.LogCaptureFixture
) -> None:
    async with way_to(server.port) as way, connect(way.url) as limiter:
        await limiter.take(key)
        server.pause()
        heard = len(way.heard)
        call = asyncio.create_task(limiter.take(key))
        await eventually(lambda: len(way.heard) > heard)
        way.cut()
        server.resume()
        # It may have been done before it was cut off, so it may count twice.
        assert (await call).minute.remaining in (57, 58)
    assert said(caplog) == []


async def test_the_limiter_follows_a_failover_and_logs_each_switch_once(
    server: RedisServer,
    redis: RedisServer,
    connect: Connect,
    key: Caller,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The connections to the old server last, and it refuses changes."""
    async with way_to(server.port) as way, connect(way.url) as limiter:
        await limiter.heartbeat()
        server.call("REPLICAOF", "127.0.0.1", "1")
        way.port = redis.port
        assert await admitted(limiter, key, 10) == 10
        assert said(caplog) == [LOST]

        async def is_back() -> bool:
            await limiter.heartbeat()
            return not limiter.has_fallen_back

        await eventually(is_back)
        await limiter.heartbeat()
        assert (await limiter.take(key)).verdict == "admitted"
        assert redis.call("DBSIZE") > 0
        words = said(caplog)
        assert words == [*islice(cycle([LOST, FOUND]), len(words))]
        assert words[-1] == FOUND


@pytest.mark.parametrize("ahead", [-20, 20])
async def test_without_redis_the_limiter_continues_with_the_time_of_redis(
    ahead: int, server: RedisServer, connect: Connect, clock: ManualClock, key: Caller
) -> None:
    """So a client that waited as Redis said has waited long enough for the limiter in memory."""
    there = ManualClock(clock() + ahead * SECOND)
    client = TimedClient(server.url, there)
    async with connect(server.url, client=client) as limiter:
        await limiter.heartbeat()
        assert await admitted(limiter, key, 60) == 60
        refused = await limiter.take(key)
        server.kill()
        clock.now += refused.minute.reset * SECOND - refused.now - 1
        assert (await limiter.take(key)).verdict == "limited"
        clock.now += 1
        decision = await limiter.take(key)
        assert decision.verdict == "admitted"
        assert decision.now == refused.minute.reset * SECOND


@pytest.mark.skipif(shutil.which("openssl") is None, reason=needs("openssl"))
@pytest.mark.parametrize("is_trusted", [True, False])
async def test_a_certificate_named_in_the_url_is_trusted(
    redis: RedisServer,
    connect: Connect,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    *,
    is_trusted: bool,
) -> None:
    certificate, key = self_signed_certificate(tmp_path)
    named = f"?ssl_ca_certs={certificate}" if is_trusted else ""
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificate, key)
    async with (
        way_to(redis.port, tls=tls) as way,
        connect(way.url.replace("redis:", "rediss:") + named) as limiter,
    ):
        assert (await limiter.take(api_key(1, 10))).minute.remaining == 9
    assert said(caplog) == [LOST] * (not is_trusted)
    assert redis.call("EXISTS", "petstore:key:{1}") == is_trusted
