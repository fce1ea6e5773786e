"""Limits, bans and revocations are the same in every process, on real sockets."""

import asyncio
import os
import signal
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import closing

import apsw
import httpx
import pytest

from support.process import ServerProcess, StartServer, petstore, servers_in
from support.redis_server import RedisServer
from support.swarm import Response, request_at_once, undisturbed
from support.waiting import eventually

pytestmark = pytest.mark.anyio

PATIENT = ("--ban-strikes", "1000000", "--header-timeout", "60")
"""On a busy machine a burst takes longer than one that is innocent, or that is not given up."""
BAN_SOON = ("--ban-strikes", "1", "--ban-grace-seconds", "0")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, redis: RedisServer) -> Iterator[ServerProcess]:
    with servers_in(tmp_path_factory.mktemp("shared")) as start:
        server = start("--workers", "4", "--redis", redis.url, *PATIENT)
        # Redis has two cores with four busy workers; elsewhere it has a machine of its own.
        for worker in server.workers():
            os.setpriority(os.PRIO_PROCESS, worker, 10)
        yield server


def statuses(responses: list[Response]) -> Counter[int]:
    return Counter(response.status for response in responses)


def code_of(response: Response) -> str:
    code: str = response.body["code"]
    return code


@pytest.fixture
async def admin(shared: ServerProcess) -> AsyncIterator[httpx.AsyncClient]:
    scopes = ("--scope", "keys:admin", "--scope", "pets:read")
    token = await asyncio.to_thread(shared.issue, "enterprise", *scopes)
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=f"{shared.url}/v1", headers=headers) as client:
        yield client


async def test_a_limit_of_100_admits_100_of_500_concurrent_requests_to_4_processes(
    shared: ServerProcess, redis: RedisServer
) -> None:
    async def burst() -> None:
        token = await asyncio.to_thread(shared.issue, "enterprise", "--per-minute", "100")
        responses = await request_at_once(shared.port, token, 500, "/v1/pets")
        assert statuses(responses) == {200: 100, 429: 400}
        remaining = [
            int(response.fields["x-ratelimit-remaining"])
            for response in responses
            if response.status == 200
        ]
        assert sorted(remaining) == list(range(100))
        assert len({response.fields["x-ratelimit-reset"] for response in responses}) == 1
        assert len(redis.call("ZRANGE", "petstore:processes", 0, -1)) == 4
        with closing(apsw.Connection(str(shared.folder / "petstore.db"))) as database:
            # All of them are counted, each in one process.
            refused = (
                "SELECT sum(count) = 400 FROM counts"
                " WHERE kind = 'refused' AND key_id = (SELECT max(id) FROM api_keys)"
            )
            await eventually(lambda: database.execute(refused).get)

    await undisturbed(burst, shared)


async def test_a_change_of_limits_and_a_revocation_reach_every_process_at_once(
    shared: ServerProcess, admin: httpx.AsyncClient
) -> None:
    new = {"name": "app", "scopes": ["pets:read"], "plan": "free"}

    async def change() -> None:
        issued = (await admin.post("/keys", json=new)).json()
        path, token = f"/keys/{issued['id']}", issued["token"]
        assert statuses(await request_at_once(shared.port, token, 61)) == {404: 60, 429: 1}
        assert (await admin.patch(path, json={"plan": "pro"})).status_code == 200

        async def has_new_limit() -> bool:
            # Reading it is free, but not without limit.
            await asyncio.sleep(0.2)
            seen = await request_at_once(shared.port, token, 8, "/v1/usage")
            return {response.fields["x-ratelimit-limit"] for response in seen} == {"300"}

        await eventually(has_new_limit)
        # One process may have taken all these connections; within a second, every one knows.
        await asyncio.sleep(1)
        assert statuses(await request_at_once(shared.port, token, 300)) == {404: 240, 429: 60}
        assert (await admin.delete(path)).status_code == 204

        async def is_revoked() -> bool:
            return statuses(await request_at_once(shared.port, token, 20)) == {401: 20}

        await eventually(is_revoked)

    await undisturbed(change, shared)


async def test_two_services_on_one_redis_share_the_limits(
    shared: ServerProcess, redis: RedisServer, start: StartServer
) -> None:
    other = start("--redis", redis.url, "--database", shared.database)

    async def burst() -> None:
        token = await asyncio.to_thread(shared.issue, "free")
        responses = await asyncio.gather(
            *(request_at_once(server.port, token, 50) for server in (shared, other))
        )
        assert statuses([*responses[0], *responses[1]]) == {404: 60, 429: 40}

    await undisturbed(burst, shared, other)


async def test_a_replacement_process_shares_the_limits_with_the_others(
    shared: ServerProcess, redis: RedisServer
) -> None:
    async def count() -> None:
        token = await asyncio.to_thread(shared.issue, "enterprise", "--per-minute", "300")
        assert statuses(await request_at_once(shared.port, token, 100)) == {404: 100}
        workers = shared.workers()
        processes = {*redis.call("ZRANGE", "petstore:processes", 0, -1)}
        os.kill(workers[0], signal.SIGKILL)
        await eventually(lambda: len({*shared.workers()} - {*workers}) == 1)
        await eventually(lambda: {*redis.call("ZRANGE", "petstore:processes", 0, -1)} - processes)
        assert statuses(await request_at_once(shared.port, token, 400)) == {404: 200, 429: 200}

    await undisturbed(count, shared)


@pytest.fixture(scope="module")
def banning(
    tmp_path_factory: pytest.TempPathFactory, redis: RedisServer
) -> Iterator[ServerProcess]:
    """Two processes that ban at once."""
    with servers_in(tmp_path_factory.mktemp("banning")) as start:
        yield start("--workers", "2", "--redis", redis.url, *BAN_SOON)


async def get_banned(server: ServerProcess, token: str) -> None:
    """Ask until each process has banned a key: where Redis is late, one may judge alone."""

    async def is_banned() -> bool:
        responses = await request_at_once(server.port, token, 40)
        return {code_of(response) for response in responses} == {"api_key_banned"}

    await eventually(is_banned)


async def unban_over_http(server: ServerProcess) -> None:
    admin = await asyncio.to_thread(server.issue, "enterprise", "--scope", "keys:admin")
    async with httpx.AsyncClient(headers={"Authorization": f"Bearer {admin}"}) as client:
        unbanned = await client.post(f"{server.url}/v1/keys/1/unban")
    assert unbanned.status_code == 204


async def unban_on_the_command_line(server: ServerProcess) -> None:
    command = ("keys", "unban", "1", "--database", server.database)
    ended = await asyncio.to_thread(petstore, *command, cwd=server.folder)
    assert ended.returncode == 0


async def test_every_process_applies_a_ban_and_its_end_with_and_without_redis(
    banning: ServerProcess, redis: RedisServer
) -> None:
    token = await asyncio.to_thread(banning.issue, "enterprise", "--per-minute", "1")

    async def is_lifted() -> bool:
        responses = await request_at_once(banning.port, token, 8, "/v1/usage")
        return {response.body["bannedUntil"] for response in responses} == {None}

    ways: list[Callable[[ServerProcess], Awaitable[None]]] = [
        unban_over_http,
        unban_on_the_command_line,
    ]
    for unban in ways:
        await get_banned(banning, token)
        await unban(banning)
        await eventually(is_lifted)
    await get_banned(banning, token)
    with closing(apsw.Connection(str(banning.folder / "petstore.db"))) as database:
        until = redis.call("HGET", "petstore:key:{1}", "banned_until")
        saved = "SELECT banned_until = ? FROM rate_limits WHERE key_id = 1"
        await eventually(lambda: database.execute(saved, (int(until),)).get)
    redis.kill()
    try:
        responses = await request_at_once(banning.port, token, 40)
    finally:
        redis.start()
    assert {response.body["code"] for response in responses} == {"api_key_banned"}


async def test_a_limit_of_50_admits_50_of_200_concurrent_requests(server: ServerProcess) -> None:
    token = await asyncio.to_thread(server.issue, "enterprise", "--per-minute", "50")
    responses = await request_at_once(server.port, token, 200, "/v1/pets")
    assert Counter(response.status for response in responses) == {200: 50, 429: 150}
