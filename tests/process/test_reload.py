"""A reload reports each step and its outcome to the log, systemd and ``petstore reload``."""

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from support.process import ServerProcess, petstore
from support.raw_socket import RawSocket
from support.servers import StartServer
from support.stores import locked
from support.waiting import within

TIMEOUT = 30  # seconds, for what should happen at once


def events(server: ServerProcess) -> list[str]:
    """Return the names of all that happened to the service, but for requests."""
    return [line["event"] for line in server.log_lines() if line["event"] != "request"]


def has_told(server: ServerProcess, event: str, times: int = 1) -> bool:
    """Wait until the log has an event so many times."""
    return within(TIMEOUT, lambda: events(server).count(event) == times)


def reload(server: ServerProcess, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run ``petstore reload`` to its end."""
    return petstore("reload", "--pid-file", "petstore.pid", *arguments, cwd=server.folder)


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[socket.socket]:
    """A service manager that receives the notifications."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(str(tmp_path / "notify"))
        receiver.settimeout(TIMEOUT)
        yield receiver


def next_state(manager: socket.socket) -> str:
    """Return the first assignment of the next message that is more than a status."""
    while (message := manager.recv(1000).decode()).startswith("STATUS="):
        pass
    return message.partition("\n")[0]


def listens(port: int) -> bool:
    """Return whether a port accepts connections."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_a_sighup_while_the_service_begins_to_start_does_no_harm(tmp_path: Path) -> None:
    with locked(tmp_path / "petstore.db"):  # so the start waits to make the tables
        server = ServerProcess(tmp_path)
        assert within(TIMEOUT, lambda: listens(server.port))
        server.process.send_signal(signal.SIGHUP)
    server.wait_until_ready()
    assert server.stop() == 0


def test_a_reload_is_reported_from_its_beginning_to_its_end(
    start: StartServer, tmp_path: Path, manager: socket.socket
) -> None:
    server = start("--pid-file", "petstore.pid", env={"NOTIFY_SOCKET": str(tmp_path / "notify")})
    assert next_state(manager) == "READY=1"
    old = server.worker

    done = reload(server)

    assert (done.returncode, done.stdout, done.stderr) == (0, "Reloaded.\n", "")
    assert server.worker != old
    assert httpx.get(f"{server.url}/readyz").status_code == 200
    assert [next_state(manager) for _ in range(2)] == ["RELOADING=1", "READY=1"]
    assert server.stop() == 0
    assert next_state(manager) == "STOPPING=1"
    assert events(server) == [
        "started",
        "reload_started",
        "worker_replaced",
        "reload_ended",
        "stop_started",
        "stopped",
    ]
    replaced = next(line for line in server.log_lines() if line["event"] == "worker_replaced")
    assert replaced["pid"] == old
    again = reload(server)
    assert (again.returncode, again.stdout) == (1, "")
    assert again.stderr == "Error: petstore.pid: no service runs with this --pid-file\n"


def test_if_the_next_process_cannot_start_the_old_one_goes_on_and_the_reload_fails(
    start: StartServer, tmp_path: Path
) -> None:
    server = start("--pid-file", "petstore.pid")
    old, database = server.worker, tmp_path / "petstore.db"

    database.rename(tmp_path / "away.db")
    failed = reload(server)
    (tmp_path / "away.db").rename(database)

    words = "the reload failed; the remaining old processes continue to serve: process "
    assert (failed.returncode, failed.stdout) == (1, "")
    assert failed.stderr.startswith(f"Error: {words}")
    reason = "the database is not available: unable to open database file"
    assert failed.stderr.endswith(f" did not start: {reason}\n")
    assert server.worker == old
    assert has_told(server, "reload_failed")
    assert f"this process cannot serve: {reason}" in events(server)
    assert reload(server).returncode == 0
    assert server.worker != old


def test_the_wait_for_a_reload_has_an_end_and_one_more_during_another_begins_it_again(
    start: StartServer,
) -> None:
    server = start("--pid-file", "petstore.pid", "--body-timeout", "60")
    token = server.issue()
    with RawSocket(server.port) as caller:
        caller.begin_post(token)
        server.process.send_signal(signal.SIGHUP)
        assert within(TIMEOUT, lambda: len(server.workers()) == 2)
        late = reload(server, "--timeout", "0.2")
        assert len(server.workers()) == 2  # another one waits until the first is replaced
    assert late.returncode == 1
    assert late.stderr == "Error: the reload has not ended after 0.2 seconds; it continues\n"
    assert has_told(server, "reload_ended")
    assert events(server) == [
        "started",
        "reload_started",
        "worker_replaced",
        "worker_replaced",
        "reload_ended",
    ]


def test_a_stop_ends_the_wait_for_a_reload(start: StartServer) -> None:
    server = start("--pid-file", "petstore.pid", "--drain-timeout", "1")
    waiting = subprocess.Popen(
        [sys.executable, "-m", "petstore", "reload", "--pid-file", "petstore.pid"],
        cwd=server.folder,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert has_told(server, "reload_started")
    assert server.stop() == 0
    _, said = waiting.communicate(timeout=TIMEOUT)
    assert waiting.returncode == 1
    assert said == "Error: the service stopped before the reload ended\n"


def test_a_reload_of_several_processes_keeps_the_service_ready_throughout(
    start: StartServer,
) -> None:
    server = start("--pid-file", "petstore.pid", "--drain-timeout", "0.5")
    waiting = subprocess.Popen(
        [sys.executable, "-m", "petstore", "reload", "--pid-file", "petstore.pid"],
        cwd=server.folder,
        stdout=subprocess.DEVNULL,
    )
    statuses = set()
    while waiting.poll() is None:
        statuses.add(httpx.get(f"{server.url}/readyz", timeout=TIMEOUT).status_code)
    assert (waiting.returncode, statuses) == (0, {200})
