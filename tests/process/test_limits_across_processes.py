"""Limits, bans and revocations are the same in every process, on real sockets."""

import asyncio
import os
import signal
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from itertools import count

import httpx
import pytest

from support.process import ServerProcess, petstore
from support.redis_server import RedisServer, redis_server
from support.servers import StartServer
from support.swarm import Response, ask, request_at_once, undisturbed
from support.waiting import eventually

pytestmark = pytest.mark.anyio

IN_PEACE = ("--ban-strikes", "1000000", "--header-timeout", "60")
"""On a busy machine a burst takes longer than one that is innocent, or that is not given up."""
BAN_SOON = ("--ban-strikes", "1", "--ban-strikes-divisor", "1000000")


@pytest.fixture
def redis() -> Iterator[RedisServer]:
    with redis_server() as server:
        yield server


def statuses(responses: list[Response]) -> Counter[int]:
    return Counter(response.status for response in responses)


async def test_a_limit_of_300_admits_300_of_2000_concurrent_requests_to_4_processes(
    start: StartServer, redis: RedisServer
) -> None:
    server = start("--workers", "4", "--redis", redis.url, *IN_PEACE)
    # Redis has two cores with four busy workers; elsewhere it has a machine of its own.
    for worker in server.workers():
        os.setpriority(os.PRIO_PROCESS, worker, 10)

    async def burst() -> None:
        token = await asyncio.to_thread(server.issue, "enterprise", "--per-minute", "300")
        responses = await request_at_once(server.port, token, 2_000, "/v1/pets")
        assert statuses(responses) == {200: 300, 429: 1_700}
        remaining = [
            int(response.fields["x-ratelimit-remaining"])
            for response in responses
            if response.status == 200
        ]
        assert sorted(remaining) == list(range(300))
        assert len({response.fields["x-ratelimit-reset"] for response in responses}) == 1
        assert len(redis.call("ZRANGE", "petstore:processes", 0, -1)) == 4

    await undisturbed(server, burst)


async def test_two_services_on_one_redis_share_the_limits(
    start: StartServer, redis: RedisServer
) -> None:
    servers = [start("--redis", redis.url) for _ in range(2)]
    token = await asyncio.to_thread(servers[0].issue, "free")
    responses = await asyncio.gather(
        *(request_at_once(server.port, token, 50) for server in servers)
    )
    assert statuses([*responses[0], *responses[1]]) == {404: 60, 429: 40}


def unban_over_http(server: ServerProcess, admin: str) -> None:
    headers = {"Authorization": f"Bearer {admin}"}
    unbanned = httpx.post(f"{server.url}/v1/keys/1/unban", headers=headers)
    assert unbanned.status_code == 204


def unban_on_the_command_line(server: ServerProcess, _: str) -> None:
    command = ("keys", "unban", "1", "--database", server.database)
    assert petstore(*command, cwd=server.folder).returncode == 0


@pytest.mark.parametrize("unban", [unban_over_http, unban_on_the_command_line])
async def test_a_ban_and_its_end_reach_every_process_at_once(
    start: StartServer, redis: RedisServer, unban: Callable[[ServerProcess, str], None]
) -> None:
    seldom = ("--key-refresh-seconds", "60")  # so no process learns of it in that way
    server = start("--workers", "2", "--redis", redis.url, *BAN_SOON, *seldom)
    token = await asyncio.to_thread(server.issue, "enterprise", "--per-minute", "1")
    admin = await asyncio.to_thread(server.issue, "enterprise", "--scope", "keys:admin")
    while code_of(await ask(server.port, token)) != "api_key_banned":
        pass
    assert set(map(code_of, await request_at_once(server.port, token, 40))) == {"api_key_banned"}
    await asyncio.to_thread(unban, server, admin)
    responses = await request_at_once(server.port, token, 40, "/v1/usage")
    assert {response.body["bannedUntil"] for response in responses} == {None}
    assert code_of(await ask(server.port, token)) == "rate_limit_exceeded"


async def test_a_revocation_reaches_every_process_within_a_second(
    start: StartServer, redis: RedisServer
) -> None:
    server = start("--workers", "4", "--redis", redis.url)
    token = await asyncio.to_thread(server.issue)
    assert set(map(code_of, await request_at_once(server.port, token, 40))) == {"not_found"}
    await asyncio.to_thread(
        petstore, "keys", "revoke", "1", "--database", server.database, cwd=server.folder
    )
    await within_a_second(lambda: no_response_is(server, token, "not_found"))


async def test_a_change_of_limits_reaches_every_process_within_a_second(
    start: StartServer, redis: RedisServer
) -> None:
    server = start("--workers", "4", "--redis", redis.url)
    admin = await asyncio.to_thread(server.issue, "enterprise", "--scope", "keys:admin")
    key_ids = count(2)

    async def change() -> None:
        token = await asyncio.to_thread(server.issue, "free")
        key = f"{server.url}/v1/keys/{next(key_ids)}"
        assert statuses(await request_at_once(server.port, token, 61)) == {404: 60, 429: 1}
        changed = await asyncio.to_thread(
            httpx.patch,
            key,
            headers={"Authorization": f"Bearer {admin}"},
            json={"plan": "pro"},
        )
        assert changed.status_code == 200
        await asyncio.sleep(1)
        assert statuses(await request_at_once(server.port, token, 400)) == {404: 240, 429: 160}

    await undisturbed(server, change)


async def test_a_process_that_took_the_place_of_another_counts_with_the_others(
    start: StartServer, redis: RedisServer
) -> None:
    server = start("--workers", "2", "--redis", redis.url)
    token = await asyncio.to_thread(server.issue, "enterprise", "--per-minute", "300")
    assert statuses(await request_at_once(server.port, token, 100)) == {404: 100}
    workers = server.workers()
    os.kill(workers[0], signal.SIGKILL)
    await eventually(lambda: len(set(server.workers()) - {workers[0]}) == 2)
    await eventually(lambda: redis.call("ZCARD", "petstore:processes") == 3)
    assert statuses(await request_at_once(server.port, token, 400)) == {404: 200, 429: 200}
    assert "Redis" not in server.log_path.read_text()


def code_of(response: Response) -> str:
    code: str = response.body["code"]
    return code


async def no_response_is(server: ServerProcess, token: str, code: str) -> bool:
    """Return whether no process responds with ``code`` any more."""
    return code not in map(code_of, await request_at_once(server.port, token, 40))


async def within_a_second(happened: Callable[[], Awaitable[bool]]) -> None:
    """Wait until it comes true; that takes a second, and some more on a busy machine."""
    await eventually(happened, 10)
