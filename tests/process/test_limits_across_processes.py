"""Limits, bans and revocations are the same in every process, and work while Redis is gone."""

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import apsw
import httpx
import pytest

from support.process import ServerProcess, StartServer, free_port, petstore, servers_in
from support.redis_server import RedisServer, redis_server
from support.swarm import Response, ask, request_at_once, undisturbed
from support.waiting import eventually

pytestmark = pytest.mark.anyio

PATIENT = ("--ban-strikes", "1000000", "--header-timeout", "60")
"""On a busy machine a burst takes longer than one that is innocent, or that is not given up."""


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


# While Redis is gone or hangs

LOST, FOUND = "Redis is unavailable", "Redis is back"


def logged(server: ServerProcess) -> Counter[str]:
    log = server.log_path.read_text()
    return Counter({words: log.count(f'"event":"{words}') for words in (LOST, FOUND)})


@asynccontextmanager
async def traffic(server: ServerProcess, token: str) -> AsyncIterator[list[Response]]:
    """Make requests all the time, a few at once, and collect what comes back."""
    responses: list[Response] = []

    async def keep_requesting() -> None:
        while True:
            responses.append(await ask(server.port, token))
            await asyncio.sleep(0.005)  # leaves the machine some time for the rest

    callers = [asyncio.create_task(keep_requesting()) for _ in range(4)]
    try:
        yield responses
        assert all(not caller.done() for caller in callers)
    finally:
        for caller in callers:
            caller.cancel()
        await asyncio.gather(*callers, return_exceptions=True)


def calling(*command: str) -> Callable[[RedisServer], None]:
    return lambda redis: redis.call(*command)


@pytest.mark.parametrize(
    ("fail", "recover"),
    [
        (RedisServer.kill, RedisServer.start),
        (RedisServer.pause, RedisServer.resume),
        (calling("REPLICAOF", "127.0.0.1", "1"), calling("REPLICAOF", "NO", "ONE")),
        (calling("CONFIG", "SET", "maxmemory", "1"), calling("CONFIG", "SET", "maxmemory", "0")),
    ],
    ids=["gone", "hanging", "read only", "full"],
)
async def test_requests_get_responses_during_every_redis_failure_and_redis_recovers(
    fail: Callable[[RedisServer], None],
    recover: Callable[[RedisServer], None],
    shared: ServerProcess,
    redis: RedisServer,
) -> None:
    token = await asyncio.to_thread(shared.issue)
    limited = await asyncio.to_thread(shared.issue, "enterprise", "--per-minute", "100")
    async with traffic(shared, token) as responses:
        await eventually(lambda: len(responses) > 50)
        fail(redis)
        await eventually(lambda: logged(shared)[LOST] - logged(shared)[FOUND] == 4)
        before = len(responses)
        # Each process admits its share, a quarter of the limit, whatever it has counted before.
        found = statuses(await request_at_once(shared.port, limited, 300))
        assert set(found) == {404, 429}
        assert 25 <= found[404] <= 100
        await eventually(lambda: len(responses) > before + 50)
        recover(redis)
        await eventually(lambda: logged(shared)[FOUND] == logged(shared)[LOST])
        before = len(responses)
        await eventually(lambda: len(responses) > before + 50)
    assert {response.status for response in responses} == {404}
    # On a busy machine this detects a hang, not its exact length.
    assert max(response.seconds for response in responses) < 20

    async def limits_are_exact() -> None:
        token = await asyncio.to_thread(shared.issue, "enterprise", "--per-minute", "100")
        responses = await request_at_once(shared.port, token, 300)
        assert statuses(responses) == {404: 100, 429: 200}

    await undisturbed(limits_are_exact, shared)


async def test_without_redis_a_service_starts_and_splits_the_limits(
    start: StartServer, redis: RedisServer
) -> None:
    redis.kill()
    try:
        server = start("--workers", "2", "--redis", redis.url)
        await eventually(lambda: logged(server) == {LOST: 2, FOUND: 0})
        token = await asyncio.to_thread(server.issue, "enterprise", "--per-minute", "100")
        found = statuses(await request_at_once(server.port, token, 300))
        assert found[404] + found[429] == 300
        assert 50 <= found[404] <= 100
    finally:
        redis.start()
    await eventually(lambda: logged(server)[FOUND] == 2)


async def test_a_start_with_a_password_that_redis_refuses_is_refused(tmp_path: Path) -> None:
    with redis_server("requirepass right-secret") as redis:
        url = redis.url.replace("//", "//nobody:wrong-secret@")
        command = ("serve", "--port", str(free_port()), "--redis", url)
        refused = await asyncio.to_thread(petstore, *command, cwd=tmp_path)
    assert (refused.returncode, refused.stdout) == (1, "")
    warning, error = refused.stderr.splitlines()
    assert (warning[:17], error[:14]) == ("Warning: --redis:", "Error: redis: ")
    assert "secret" not in refused.stderr
    assert list(tmp_path.iterdir()) == []


async def test_a_password_that_redis_no_longer_accepts_is_not_logged(
    start: StartServer, redis: RedisServer
) -> None:
    redis.call("ACL", "SETUSER", "shop", "on", ">right-secret", "~*", "+@all")
    server = start("--redis", redis.url.replace("//", "//shop:right-secret@"))
    token = await asyncio.to_thread(server.issue)
    assert (await ask(server.port, token)).status == 404
    assert not logged(server)[LOST]
    redis.call("ACL", "DELUSER", "shop")
    await eventually(lambda: logged(server)[LOST])
    assert (await ask(server.port, token)).status == 404
    assert "secret" not in server.log_path.read_text()
