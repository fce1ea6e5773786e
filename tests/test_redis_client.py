"""The client of Redis: its timeout, the errors that its callers see, and scripts they share."""

import asyncio
import time

import pytest

from petstore.limits.redis import check_redis
from petstore.redis_client import BatchedScript, CredentialsRefused, RedisClient, RedisUnavailable
from support.redis_server import RedisServer, redis_server
from support.silent_server import fake_server, way_to

pytestmark = pytest.mark.anyio

ECHO = [("ECHO", "hi")]
COUNT = b"""
local counts = {}
for number, key in ipairs(KEYS) do counts[number] = redis.call("INCR", key) end
return counts
"""


async def test_a_call_to_a_silent_server_ends_at_the_timeout() -> None:
    async with fake_server() as silent:
        client = RedisClient(silent.url)
        begun = time.monotonic()
        with pytest.raises(RedisUnavailable, match="no response in time"):
            await client.execute(ECHO, 0.05)
        assert time.monotonic() - begun >= 0.05
        await client.close()


async def test_the_timeout_excludes_the_time_in_which_the_process_was_busy(
    redis: RedisServer,
) -> None:
    client = RedisClient(redis.url)  # it has yet to connect
    call = asyncio.create_task(client.execute(ECHO, 0.3))
    await asyncio.sleep(0)
    time.sleep(0.4)  # noqa: ASYNC251 - it is the loop that is to stand still
    assert await call == [b"hi"]
    await client.close()


async def test_an_error_reply_is_raised_by_execute_and_returned_by_try_each(
    redis: RedisServer,
) -> None:
    client = RedisClient(redis.url)
    commands = [("SET", "text", "word"), ("HGETALL", "text"), ("GET", "text")]
    with pytest.raises(RedisUnavailable, match="wrong kind of value"):
        await client.execute(commands, 10)
    await client.close()  # after which it can connect again
    _, refused, text = await client.try_each(commands, 10)
    assert isinstance(refused, RedisUnavailable)
    assert text == b"word"
    await client.close()


async def test_a_wrong_password_is_reported_and_never_shown() -> None:
    with redis_server("requirepass right-secret") as server:
        address = f"127.0.0.1:{server.port}"
        for credentials in ("", ":wrong-secret@", "nobody:wrong-secret@"):
            url = f"redis://{credentials}{address}"
            with pytest.raises(PermissionError, match="redis: ") as refusal:
                await check_redis(url)
            client = RedisClient(url)
            with pytest.raises(CredentialsRefused) as failure:
                await client.execute(ECHO, 10)
            assert "secret" not in f"{refusal.value}{failure.value}"
            await client.close()
        await check_redis(f"redis://:right-secret@{address}")


@pytest.mark.parametrize("missing", ["time", "eval", "evalsha", "get", "set", "zadd", "zrem"])
async def test_a_user_who_cannot_run_a_command_of_the_limiter_is_refused(
    redis: RedisServer, missing: str
) -> None:
    url = redis.url.replace("//", "//shop:right-secret@")
    needed = "+eval +evalsha +time +get +set +del +zadd +zremrangebyscore +expire"
    rights = f"on >right-secret ~petstore:* {needed} +zcard +zrem"
    redis.call("ACL", "SETUSER", "shop", *rights.split())
    await check_redis(url)
    assert redis.call("KEYS", "petstore:*") == []
    redis.call("ACL", "SETUSER", "shop", f"-{missing}")
    with pytest.raises(PermissionError, match=r"^redis: [^\n]*expected a user who can run TIME"):
        await check_redis(url)


async def test_a_replica_is_reported(redis: RedisServer) -> None:
    refused = pytest.raises(ConnectionError, match=r"^redis: [^\n]*read only replica")
    with redis_server(f"replicaof 127.0.0.1 {redis.port}") as replica, refused:
        await check_redis(replica.url)


async def test_an_unreachable_server_is_not_reported_as_a_refused_password() -> None:
    with redis_server() as server:
        await check_redis(server.url)
        server.kill()
        with pytest.raises(ConnectionError, match="redis: "):
            await check_redis(server.url)


async def test_concurrent_calls_share_commands_and_few_slow_round_trips(redis: RedisServer) -> None:
    async with way_to(redis.port, delay=0.03) as way:
        client = RedisClient(way.url)
        script = BatchedScript(client, COUNT, 10)
        await script.run("first", b"")
        before = len(way.heard)
        counts = await asyncio.gather(*(script.run("shared", b"") for _ in range(200)))
        assert counts == [*range(1, 201)]
        assert len(way.heard) - before < 12
        commands = b"".join(way.heard).count(b"EVALSHA")
        keys = [f"apart {number}" for number in range(100)]
        assert await asyncio.gather(*(script.run(key, b"") for key in keys)) == [1] * 100
        assert b"".join(way.heard).count(b"EVALSHA") - commands == 4
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
