"""Processes that serve and end unasked, cannot start, or do not end when they are asked to."""

import os
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from support.process import ServerProcess, StartServer, servers_in
from support.redis_server import RedisServer, redis_server
from support.waiting import within


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory, redis: RedisServer) -> Iterator[ServerProcess]:
    """Two processes that serve; after each test there are two again."""
    with servers_in(tmp_path_factory.mktemp("pair")) as start:
        server = start("--workers", "2", "--redis", redis.url)
        assert within(30, lambda: redis.call("ZCARD", "petstore:processes") == 2)
        yield server
        assert server.stop() == 0


@contextmanager
def replaced(pair: ServerProcess, redis: RedisServer) -> Iterator[int]:
    """Give the younger process, and wait after the block until another one is in its place.

    The older one is certain to serve, whatever happens to the younger ones.
    """
    known = {*redis.call("ZRANGE", "petstore:processes", 0, -1)}
    left, killed = pair.workers()
    yield killed
    assert within(30, lambda: len({*pair.workers()} - {killed}) == 2)
    assert within(30, lambda: {*redis.call("ZRANGE", "petstore:processes", 0, -1)} - known)
    assert left in pair.workers()


@pytest.fixture(scope="module")
def client(pair: ServerProcess) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {pair.issue()}", "Connection": "close"}
    with httpx.Client(base_url=pair.url, headers=headers) as client:
        yield client


def events(server: ServerProcess) -> list[str]:
    return [line["event"] for line in server.log_lines()]


def errors(server: ServerProcess) -> list[str]:
    lines = (line for line in server.log_lines() if line["level"] == "error")
    return [line.get("message", line["event"]) for line in lines]


def responds(client: httpx.Client) -> bool:
    """Return whether a pet can be added and is there."""
    added = client.post("/v1/pets", json={"name": "Bella", "categoryId": 1})
    assert added.status_code == 201
    assert client.get(added.headers["Location"]).json() == added.json()
    return True


def test_a_repeatedly_killed_process_is_replaced_while_the_other_serves(
    pair: ServerProcess, redis: RedisServer, client: httpx.Client
) -> None:
    for _ in range(3):
        before = len(errors(pair))
        with replaced(pair, redis) as killed:
            os.kill(killed, signal.SIGKILL)
            assert within(30, lambda gone=killed: responds(client) and gone not in pair.workers())  # type: ignore[misc]
        said = [f"process {killed} exited unexpectedly: killed by signal 9"]
        assert within(30, lambda old=before, words=said: errors(pair)[old:] == words)  # type: ignore[misc]


@contextmanager
def few_files(server: ServerProcess, more: int) -> Iterator[None]:
    """Let the process that starts the others open only so many files more, until the block ends."""
    taken = {int(file.name) for file in Path(f"/proc/{server.process.pid}/fd").iterdir()}
    free = sorted(set(range(max(taken) + more + 2)) - taken)[more]
    before = resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (free, before[1]))
    try:
        yield
    finally:
        resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, before)


@pytest.mark.parametrize(
    ("files", "said"),
    [(1, "no process can be started: [Errno 24]"), (8, "this process cannot serve")],
    ids=["no process", "no process that can serve"],
)
def test_a_process_that_cannot_be_replaced_yet_is_replaced_later(
    pair: ServerProcess, redis: RedisServer, client: httpx.Client, files: int, said: str
) -> None:
    before = len(errors(pair))
    with replaced(pair, redis) as killed, few_files(pair, files):
        os.kill(killed, signal.SIGKILL)
        assert within(30, lambda: any(error.startswith(said) for error in errors(pair)[before:]))
        assert responds(client)


def test_a_process_that_exits_early_during_a_stop_is_not_a_failure(
    start: StartServer,
) -> None:
    server = start()
    worker = server.worker
    server.process.send_signal(signal.SIGSTOP)
    server.process.send_signal(signal.SIGTERM)
    os.kill(worker, signal.SIGTERM)
    assert within(30, lambda: Path(f"/proc/{worker}/stat").read_text().split()[2] == "Z")
    server.process.send_signal(signal.SIGCONT)
    assert server.process.wait(30) == 0
    assert errors(server) == []


def test_hanging_processes_are_killed_at_a_stop_and_leave_no_wal(
    start: StartServer, tmp_path: Path
) -> None:
    with redis_server() as redis:
        server = start("--workers", "2", "--redis", redis.url, "--shutdown-timeout", "2")
        # One that is still starting would end at once.
        assert within(30, lambda: "started" in events(server))
        hanging = server.workers()
        for worker in hanging:
            os.kill(worker, signal.SIGSTOP)
        assert list(tmp_path.glob("*-wal"))
        assert server.stop() == 0
    for worker in hanging:
        assert f"process {worker} did not end in time and was killed" in events(server)
    assert not list(tmp_path.glob("*-wal"))
