"""The start and the stop of the service."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from petstore.cli.serve import announce
from petstore.settings import Settings
from support.process import ServerProcess, StartServer, listens
from support.raw_socket import RawSocket
from support.redis_server import redis_server
from support.stores import leave_half_written, locked
from support.waiting import within


def test_two_services_can_start_at_once_on_a_new_database(tmp_path: Path) -> None:
    servers = [ServerProcess(tmp_path) for _ in range(2)]
    try:
        for server in servers:
            server.wait_until_ready()
        headers = {"Authorization": f"Bearer {servers[0].issue()}"}
        new = {"name": "Rex", "categoryId": 1}
        added = [httpx.post(f"{each.url}/v1/pets", headers=headers, json=new) for each in servers]
    finally:
        statuses = [server.stop() for server in servers]
    assert [response.json()["id"] for response in added] == [1, 2]
    assert statuses == [0, 0]


def test_settings_from_the_environment_apply_and_only_addresses_are_printed(
    start: StartServer,
) -> None:
    server = start(env={"PETSTORE_MAX_BODY_BYTES": "1024", "PETSTORE_ENVIRONMENT": "staging"})
    token = server.issue("free", "--environment", "staging")
    response = httpx.post(
        f"{server.url}/v1/pets", headers={"Authorization": f"Bearer {token}"}, content=b" " * 1025
    )
    assert response.status_code == 413
    assert server.process.stdout is not None
    server.process.terminate()
    assert server.process.stdout.read().splitlines() == [
        f"Petstore is at  {server.url}/v1",
        f"Docs are at     {server.url}/docs",
        f"Console is at   {server.url}/console",
    ]
    assert [line for line in server.log_lines() if line["level"] == "warning"] == []


def test_sighup_changes_nothing_from_the_first_moments_on(tmp_path: Path) -> None:
    with locked(tmp_path / "petstore.db"):  # so the start waits to make the tables
        server = ServerProcess(tmp_path)
        assert within(30, lambda: listens(server.port))
        server.process.send_signal(signal.SIGHUP)
    server.wait_until_ready()
    worker = server.worker
    for pid in (server.process.pid, worker):
        os.kill(pid, signal.SIGHUP)
    assert httpx.get(f"{server.url}/readyz").status_code == 200
    assert server.worker == worker
    assert server.stop() == 0


@pytest.mark.parametrize("mode", [0o640, 0o604])
def test_a_database_that_others_can_read_causes_a_warning(
    start: StartServer, tmp_path: Path, mode: int
) -> None:
    database = tmp_path / "petstore.db"
    leave_half_written(database)  # a store that was half made can be used, too
    database.chmod(mode)
    server = start()
    headers = {"Authorization": f"Bearer {server.issue()}"}
    assert httpx.get(f"{server.url}/v1/categories", headers=headers).json() == []
    assert server.stop() == 0
    warnings = [line["event"] for line in server.log_lines() if line["level"] == "warning"]
    expected = (
        f"{database} is accessible to other users (mode {mode:04o}), who could read everything or"
        " block all changes; run chmod 600"
    )
    assert warnings == [expected]
    assert database.stat().st_mode & 0o777 == mode


def test_an_ipv6_address_is_printed_in_url_form(capsys: pytest.CaptureFixture[str]) -> None:
    settings = replace(Settings(), host="::1")
    announce(settings.listening_url, settings, None)
    assert capsys.readouterr().out.startswith("Petstore is at  http://[::1]:8000/v1\n")


ON_ANOTHER_SYSTEM = """
import os, sys
from petstore.server import supervisor
sys.platform = "other"
supervisor._run_worker(lambda worker_id, _: print("worker", worker_id), 3, None, os.getppid())
"""
TUNED = """
import gc
from petstore.server.service import tune_garbage_collector
tune_garbage_collector()
print(len(gc.get_objects()) < 100, gc.get_freeze_count() > 10_000)
"""
STARTED = """
import gc, os, signal
from petstore.server.supervisor import READY, Supervisor
def work(worker_id, link):
    print(gc.get_freeze_count() > 10_000, flush=True)
    link.send_bytes(READY)
    os.kill(os.getppid(), signal.SIGTERM)
    signal.pause()
Supervisor([work], 1, 5, lambda: None, "").run()
"""


@pytest.mark.parametrize(
    ("code", "printed"),
    [(ON_ANOTHER_SYSTEM, "worker 3\n"), (TUNED, "True True\n"), (STARTED, "True\n")],
    ids=["no parent death signal", "tuned", "started"],
)
def test_a_worker_starts_on_any_system_with_the_program_exempt_from_garbage_collection(
    code: str, printed: str
) -> None:
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == printed


# Stop: what is under way is finished, nothing new is taken, nothing is lost

UNHURRIED = ("--header-timeout", "60", "--shutdown-timeout", "60")
"""What waits for one of these does not stop within the 30 seconds that a test waits."""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_running_requests_get_responses_and_new_ones_are_refused(
    start: StartServer, tmp_path: Path, number: signal.Signals
) -> None:
    server = start(*UNHURRIED)
    token = server.issue()
    with (
        RawSocket(server.port) as caller,
        RawSocket(server.port),
        RawSocket(server.port) as half,
        RawSocket(server.port) as kept_alive,
    ):
        half.send(b"GET /v1")
        kept_alive.send(b"GET /healthz HTTP/1.1\r\nHost: petstore\r\n\r\n")
        assert kept_alive.read_response().status == 200
        caller.begin_post(token)
        caller.send(b"no ob")
        server.process.send_signal(number)
        assert within(30, lambda: not listens(server.port))
        caller.send(b"ject")
        assert caller.read_response().status == 400
        # Connections that are idle, or in the middle of a head, do not delay the stop.
        assert server.process.wait(30) == 0
    assert not list(tmp_path.glob("*-wal"))
    assert [line for line in server.log_lines() if line["event"] == "request"][-1]["status"] == 400


@pytest.mark.parametrize(
    ("options", "received"),
    [
        ("--body-timeout 1 --drain-timeout 0.3", b"HTTP/1.1 408 "),
        ("--body-timeout 60 --drain-timeout 1 --shutdown-timeout 3", b""),
    ],
    ids=["body timeout", "shutdown timeout"],
)
def test_a_body_that_never_arrives_is_abandoned_or_cut_off(
    start: StartServer, tmp_path: Path, options: str, received: bytes
) -> None:
    server = start(*options.split())
    with RawSocket(server.port) as caller:
        caller.begin_post(server.issue())
        assert server.stop() == 0
        assert caller.rest()[:13] == received
    assert not list(tmp_path.glob("*-wal"))
    assert any("cut off" in line["event"] for line in server.log_lines()) == (not received)


def test_a_stop_signal_during_the_start_takes_effect(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path, *UNHURRIED)
    assert server.process.stdout is not None
    server.process.stdout.readline()
    assert server.stop() in {0, -signal.SIGTERM}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_ctrl_c_in_a_terminal_stops_every_process_at_once(
    start: StartServer, tmp_path: Path, number: signal.Signals
) -> None:
    with redis_server() as redis:
        server = start("--workers", "2", "--redis", redis.url, *UNHURRIED)
        os.killpg(server.process.pid, number)
        assert server.process.wait(30) == 0
    assert not list(tmp_path.glob("*-wal"))
    assert not [line for line in server.log_lines() if line["level"] == "error"]
