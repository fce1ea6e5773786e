"""Processes that serve and end unasked, cannot start, or do not end when they are asked to."""

import os
import resource
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import httpx
import pytest

from support.process import UNREACHABLE, ServerProcess, StartServer, free_port, servers_in
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
    [(None, ""), (1, "no process can be started: [Errno 24]"), (8, "this process cannot serve")],
    ids=["at once", "no process can be started", "no process can serve"],
)
def test_a_killed_process_is_replaced_as_soon_as_possible_while_the_other_serves(
    pair: ServerProcess, redis: RedisServer, client: httpx.Client, files: int | None, said: str
) -> None:
    before = len(errors(pair))
    with replaced(pair, redis) as killed, few_files(pair, files) if files else nullcontext():
        os.kill(killed, signal.SIGKILL)
        assert within(30, lambda: responds(client) and killed not in pair.workers())
        assert within(30, lambda: any(error.startswith(said) for error in errors(pair)[before:]))
        assert responds(client)
    after = errors(pair)[before:]
    assert after[0] == f"process {killed} exited unexpectedly: killed by signal 9"
    assert len(after) == 1 or files


def test_a_process_that_exits_early_during_a_stop_is_not_a_failure(start: StartServer) -> None:
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


# A supervisor whose only process hangs, or that stands still itself

TIMEOUT = 30  # seconds, for what should happen at once


PROGRAM = """
import logging, os, signal, sys, time
from pathlib import Path
from petstore.server import supervisor

starts_left, after_fork = int(sys.argv[1]), int(sys.argv[2])
# A supervisor that stands still is always too late for the start of a process.
supervisor._START_TIMEOUT = 0 if after_fork else 3
supervisor._RESTART_SECONDS = 0.1
run_worker, supervisor_id = supervisor._run_worker, os.getpid()


def state_of_supervisor():
    return Path(f"/proc/{supervisor_id}/stat").read_text().rpartition(")")[2].split()[0]


def until(condition):
    while not condition():
        time.sleep(0.005)


def work(worker_id, link):
    if starts > starts_left:
        time.sleep(60)
    if after_fork:
        until(lambda: state_of_supervisor() == "T")
    link.send_bytes(supervisor.READY)
    if after_fork:
        os.kill(supervisor_id, signal.SIGCONT)
    time.sleep(60)


def run_late(*arguments):
    if after_fork == signal.SIGKILL:
        until(lambda: os.getppid() != supervisor_id)
    run_worker(*arguments)


class Counted(supervisor._Worker):
    def __init__(self, *arguments):
        global starts
        starts += 1
        super().__init__(*arguments)
        if after_fork:
            os.kill(supervisor_id, after_fork)


class Told(logging.Handler):
    def emit(self, record):
        if record.msg.name == "worker_ended":
            print(str(record.msg).partition(": ")[2], flush=True)
        elif record.msg.name != "stop_started":
            print("started" if record.msg.name == "started" else f"starts {starts}", flush=True)


starts = 0
supervisor._Worker, supervisor._run_worker = Counted, run_late
supervisor._LOG.addHandler(Told())
supervisor._LOG.setLevel(logging.INFO)
supervisor._LOG.addFilter(lambda record: isinstance(record.msg, supervisor.LogEvent))
main = supervisor.Supervisor([work], 1, 1, lambda: None, "")
sys.exit(main.run())
"""


PRINTING = f"""
import gc, io, sys
from petstore.__main__ import run

{UNREACHABLE}

class Terminal(io.StringIO):
    def flush(self):
        Unreachable()
        gc.collect()


sys.stdout = Terminal()
sys.argv[1:] = ["serve", "--port", sys.argv[1]]
run()
"""


STARTING = f"""
from petstore.server import supervisor

{UNREACHABLE}

Unreachable()
main = supervisor.Supervisor([lambda worker_id, link: None], 1, 1, lambda: None, "")
raise SystemExit(main.run())
"""


@contextmanager
def supervised(starts: int, number: int = 0) -> Iterator[subprocess.Popen[str]]:
    """Give a supervisor of one process, with so many starts that do not hang.

    After each fork it sends itself the signal ``number``, if that is not 0. One that stops it lasts
    until the new process is ready; one that kills it comes before the new process does anything.
    """
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(starts), str(int(number))],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_service_whose_only_process_hangs_ends() -> None:
    with supervised(0) as process:
        assert process.wait() == 1


def test_a_process_that_is_ready_early_is_neither_overlooked_nor_killed() -> None:
    with supervised(9, signal.SIGSTOP) as process:
        assert process.stdout is not None
        assert select.select([process.stdout], [], [], TIMEOUT)[0], "it stands still"
        assert process.stdout.readline() == "started\n"
        process.terminate()
        assert process.stdout.read() == "starts 1\n"


def test_a_process_that_starts_after_its_supervisor_ended_does_not_serve() -> None:
    with supervised(9, signal.SIGKILL) as process:
        said, _ = process.communicate(timeout=TIMEOUT)  # both have ended, and closed their output
    assert said == ""


@pytest.mark.parametrize(("code", "status"), [(PRINTING, 130), (STARTING, 0)])
def test_ctrl_c_while_garbage_is_collected_at_the_start_stops_the_service(
    tmp_path: Path, code: str, status: int
) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", code, str(free_port())],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (status, "")
