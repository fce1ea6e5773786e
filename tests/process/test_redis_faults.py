"""The service while its Redis is gone, hangs, returns errors or closes connections."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from support.process import ServerProcess, StartServer, free_port, petstore, servers_in
from support.redis_server import RedisServer, redis_server
from support.swarm import Response, ask, request_at_once, undisturbed
from support.waiting import eventually

pytestmark = pytest.mark.anyio

LOST, FOUND = "Redis is unavailable", "Redis is back"
STALL = 20
"""Max seconds for a response. On a busy machine this detects a hang, not its exact length."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, redis: RedisServer) -> Iterator[ServerProcess]:
    with servers_in(tmp_path_factory.mktemp("server")) as start:
        yield start("--workers", "2", "--redis", redis.url)


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


async def limits_are_exact(server: ServerProcess) -> None:
    token = await asyncio.to_thread(server.issue, "enterprise", "--per-minute", "100")
    responses = await request_at_once(server.port, token, 300)
    assert Counter(response.status for response in responses) == {404: 100, 429: 200}


def refuse_writes(redis: RedisServer) -> None:
    redis.call("REPLICAOF", "127.0.0.1", "1")


def take_writes(redis: RedisServer) -> None:
    redis.call("REPLICAOF", "NO", "ONE")


def fill(redis: RedisServer) -> None:
    redis.call("CONFIG", "SET", "maxmemory", "1")


def empty(redis: RedisServer) -> None:
    redis.call("CONFIG", "SET", "maxmemory", "0")


@pytest.mark.parametrize(
    ("fail", "recover"),
    [
        (RedisServer.kill, RedisServer.start),
        (RedisServer.pause, RedisServer.resume),
        (refuse_writes, take_writes),
        (fill, empty),
    ],
    ids=["gone", "hanging", "read only", "full"],
)
async def test_requests_get_responses_during_every_redis_failure_and_redis_recovers(
    fail: Callable[[RedisServer], None],
    recover: Callable[[RedisServer], None],
    server: ServerProcess,
    redis: RedisServer,
) -> None:
    token = await asyncio.to_thread(server.issue)
    limited = await asyncio.to_thread(server.issue, "enterprise", "--per-minute", "100")
    async with traffic(server, token) as responses:
        await eventually(lambda: len(responses) > 50)
        fail(redis)
        await eventually(lambda: logged(server)[LOST] - logged(server)[FOUND] == 2)
        before = len(responses)
        # Each process admits its share, half of the limit, whatever it has counted before.
        statuses = Counter(a.status for a in await request_at_once(server.port, limited, 300))
        assert set(statuses) == {404, 429}
        assert 50 <= statuses[404] <= 100
        await eventually(lambda: len(responses) > before + 50)
        recover(redis)
        await eventually(lambda: logged(server)[FOUND] == logged(server)[LOST])
        before = len(responses)
        await eventually(lambda: len(responses) > before + 50)
    assert {response.status for response in responses} == {404}
    assert max(response.seconds for response in responses) < STALL
    await undisturbed(lambda: limits_are_exact(server), server)


async def test_repeatedly_broken_connections_lose_no_response(
    server: ServerProcess, redis: RedisServer
) -> None:
    token = await asyncio.to_thread(server.issue)
    async with traffic(server, token) as responses:
        for cut in range(20):
            await eventually(lambda cut=cut: len(responses) > 10 * cut)  # type: ignore[misc]
            redis.call("CLIENT", "KILL", "TYPE", "normal")
        await eventually(lambda: logged(server)[FOUND] == logged(server)[LOST])
    assert {response.status for response in responses} == {404}
    assert max(response.seconds for response in responses) < STALL
    await undisturbed(lambda: limits_are_exact(server), server)


async def test_without_redis_a_service_starts_and_splits_the_limits(
    start: StartServer, redis: RedisServer
) -> None:
    redis.kill()
    try:
        server = start("--workers", "2", "--redis", redis.url)
        await eventually(lambda: logged(server) == {LOST: 2, FOUND: 0})
        token = await asyncio.to_thread(server.issue, "enterprise", "--per-minute", "100")
        statuses = Counter(a.status for a in await request_at_once(server.port, token, 300))
        assert statuses[404] + statuses[429] == 300
        assert 50 <= statuses[404] <= 100
    finally:
        redis.start()
    await eventually(lambda: logged(server)[FOUND] == 2)


async def test_a_start_with_a_password_that_redis_refuses_is_refused(tmp_path: Path) -> None:
    with redis_server("requirepass right-secret") as redis:
        url = redis.url.replace("//", "//nobody:wrong-secret@")
        command = ("serve", "--port", str(free_port()), "--redis", url)
        refused = await asyncio.to_thread(petstore, *command, cwd=tmp_path)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith("Error: redis: ")
    assert refused.stderr.count("\n") == 1
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
