"""Processes that serve and end unasked, cannot start, or do not end when they are asked to."""

import os
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from support.process import ServerProcess
from support.redis_server import redis_server
from support.servers import StartServer
from support.waiting import within


@pytest.fixture
def pair(start: StartServer) -> Iterator[ServerProcess]:
    """Two processes that serve."""
    with redis_server() as redis:
        server = start("--workers", "2", "--redis", redis.url)
        assert within(30, lambda: redis.call("ZCARD", "petstore:processes") == 2)
        yield server


def errors(server: ServerProcess) -> list[str]:
    """Return the messages of the errors in the log."""
    lines = (line for line in server.log_lines() if line["level"] == "error")
    return [line.get("message", line["event"]) for line in lines]


def responds(server: ServerProcess) -> bool:
    """Return whether a new connection gets a response."""
    return httpx.get(f"{server.url}/healthz").status_code == 200


def test_while_a_killed_process_is_replaced_the_other_serves(pair: ServerProcess) -> None:
    killed, left = pair.workers()
    os.kill(killed, signal.SIGKILL)
    assert within(30, lambda: responds(pair) and len({*pair.workers()} - {killed}) == 2)
    assert left in pair.workers()
    said = f"process {killed} exited unexpectedly: killed by signal 9"
    assert within(30, lambda: errors(pair) == [said])


def test_one_that_ends_again_and_again_is_replaced_again_and_again(start: StartServer) -> None:
    server = start()
    for _ in range(3):
        os.kill(server.worker, signal.SIGKILL)
        server.wait_until_ready()
    assert server.stop() == 0
    assert len(errors(server)) == 3


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
def test_one_that_cannot_be_replaced_yet_is_replaced_later(
    pair: ServerProcess, files: int, said: str
) -> None:
    killed, left = pair.workers()
    with few_files(pair, files):
        os.kill(killed, signal.SIGKILL)
        assert within(30, lambda: any(error.startswith(said) for error in errors(pair)))
        assert responds(pair)
    assert within(30, lambda: len({*pair.workers()} - {killed}) == 2)
    assert left in pair.workers()
    assert pair.stop() == 0


def test_if_no_further_process_can_be_started_a_reload_fails_and_all_go_on(
    pair: ServerProcess,
) -> None:
    before = pair.workers()
    with few_files(pair, 1):
        pair.process.send_signal(signal.SIGHUP)
        assert within(30, lambda: any("the reload failed" in error for error in errors(pair)))
    assert responds(pair)
    assert pair.workers() == before


def test_a_process_that_ends_at_a_stop_before_its_parent_heard_of_it_is_no_failure(
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


def test_a_process_that_hangs_does_not_keep_a_stop_from_its_end(start: StartServer) -> None:
    server = start("--shutdown-timeout", "2")
    hanging = server.worker
    os.kill(hanging, signal.SIGSTOP)
    assert server.stop() == 0
    said = f"process {hanging} did not end in time and was killed"
    assert said in [line["event"] for line in server.log_lines()]


def test_processes_that_are_killed_at_a_stop_leave_no_log_of_the_database(
    start: StartServer, tmp_path: Path
) -> None:
    with redis_server() as redis:
        server = start("--workers", "2", "--redis", redis.url, "--shutdown-timeout", "2")
        for worker in server.workers():
            os.kill(worker, signal.SIGSTOP)
        assert list(tmp_path.glob("*-wal"))
        server.stop()
    assert not list(tmp_path.glob("*-wal"))
