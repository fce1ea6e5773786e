"""The start of the service."""

import os
import signal
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from petstore.cli.serve import announce
from petstore.databases.sqlite import SqliteStore
from petstore.server.listeners import listen
from petstore.settings import Settings
from support.process import UNREACHABLE, ServerProcess, StartServer, free_port
from support.stores import leave_half_written, locked
from support.waiting import within

INTERRUPTED_IN_A_FINALIZER = f"""
import gc, io, sys
from petstore.cli.main import main

{UNREACHABLE}

class Terminal(io.StringIO):
    def flush(self):
        Unreachable()
        gc.collect()


sys.stdout = Terminal()
main(["serve", "--port", sys.argv[1]], "petstore")
"""


def test_two_services_can_start_at_once_on_a_new_database(
    tmp_path: Path,
) -> None:
    servers = [ServerProcess(tmp_path) for _ in range(2)]
    try:
        for server in servers:
            server.wait_until_ready()
        headers = {"Authorization": f"Bearer {servers[0].issue()}"}
        new = {"name": "Rex", "categoryId": 1}
        ids = [
            httpx.post(f"{server.url}/v1/pets", headers=headers, json=new).json()["id"]
            for server in servers
        ]
    finally:
        statuses = [server.stop() for server in servers]
    assert ids == [1, 2]
    assert statuses == [0, 0]


def test_a_service_starts_on_a_store_that_was_half_made(tmp_path: Path, start: StartServer) -> None:
    leave_half_written(tmp_path / "petstore.db")
    server = start()
    headers = {"Authorization": f"Bearer {server.issue()}"}
    assert httpx.get(f"{server.url}/v1/categories", headers=headers).json() == []
    assert server.stop() == 0


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


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.parametrize("mode", [0o640, 0o604])
def test_a_database_that_others_can_read_causes_a_warning(
    start: StartServer, tmp_path: Path, mode: int
) -> None:
    database = tmp_path / "petstore.db"
    SqliteStore(database).migrate()
    database.chmod(mode)
    server = start()
    assert server.stop() == 0
    warnings = [line["event"] for line in server.log_lines() if line["level"] == "warning"]
    expected = (
        f"{database} is accessible to other users (mode {mode:04o}), who could read everything or"
        " block all changes; run chmod 600"
    )
    assert warnings == [expected]
    assert database.stat().st_mode & 0o777 == mode


def test_an_ipv6_address_is_printed_in_url_form(
    capsys: pytest.CaptureFixture[str],
) -> None:
    settings = replace(Settings(), host="::1")
    announce(settings.listening_url, settings, None)
    assert capsys.readouterr().out.startswith("Petstore is at  http://[::1]:8000/v1\n")


def test_the_host_may_be_a_name() -> None:
    port = free_port()
    with listen("localhost", port):
        socket.create_connection(("localhost", port)).close()


def test_an_unknown_host_is_refused() -> None:
    with pytest.raises(OSError, match=r"^cannot listen on nobody\.invalid port 8000: [A-Z]"):
        listen("nobody.invalid", 8000)


def test_a_process_starts_on_systems_without_a_parent_death_signal() -> None:
    code = (
        "import os, sys; from petstore.server import supervisor; sys.platform = 'other';"
        "work = lambda worker_id, _: print('worker', worker_id);"
        "supervisor._run_worker(work, 3, None, os.getppid())"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "worker 3\n"


def test_garbage_collection_skips_the_objects_of_the_program() -> None:
    code = (
        "import gc; from petstore.server.service import tune_garbage_collector as tune; tune();"
        "print(len(gc.get_objects()) < 100, gc.get_freeze_count() > 10_000)"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "True True\n"


def test_a_worker_begins_with_the_program_exempt_from_garbage_collection() -> None:
    code = (
        "import gc, os, signal\n"
        "from petstore.server.supervisor import READY, Supervisor\n"
        "def work(worker_id, link):\n"
        "    print(gc.get_freeze_count() > 10_000, flush=True)\n"
        "    link.send_bytes(READY)\n"
        "    os.kill(os.getppid(), signal.SIGTERM)\n"
        "    signal.pause()\n"
        "Supervisor([work], 1, 5, lambda: None, '').run()\n"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "True\n"


def test_ctrl_c_while_the_address_is_printed_ends_the_service(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_IN_A_FINALIZER, str(free_port())],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (-signal.SIGINT, "")
