"""Processes that are killed: nothing acknowledged is lost, and nothing half alive stays."""

import os
import signal
import socket
from pathlib import Path

import httpx

from support.command import Command
from support.patience import within
from support.process import ServerProcess
from support.servers import StartServer
from support.writers import Writers

MANY = 100_000


def worker_of(server: ServerProcess) -> int:
    """Return the id of the process that serves."""
    parent = server.process.pid
    (child,) = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return int(child)


def is_alive(server: ServerProcess) -> bool:
    """Tell whether anybody answers at the port of the service."""
    try:
        return httpx.get(f"{server.url}/healthz").status_code == 200
    except httpx.TransportError:
        return False


def stored_ids(folder: Path) -> set[int]:
    lines = Command(folder / "petstore.db").succeed("pets", "export").splitlines()[1:]
    return {int(line.partition(",")[0]) for line in lines}


def test_a_power_cut_loses_no_acknowledged_write_and_a_second_of_counts_at_most(
    start: StartServer, tmp_path: Path
) -> None:
    server = start()
    token = server.issue("enterprise", "--per-minute", str(MANY))
    with Writers(server, token) as writers:

        def has_gone_on_for_a_while() -> bool:
            known = writers.acknowledged
            return len(known) > 100 and known[-1].moment - known[0].moment > 1.5

        assert within(20, has_gone_on_for_a_while)
        server.kill()
    acknowledged = writers.acknowledged
    assert {pet_id for pet_id, _ in acknowledged} <= stored_ids(tmp_path)
    a_second_before = acknowledged[-1].moment - 1
    certain = sum(moment < a_second_before for _, moment in acknowledged)

    headers = {"Authorization": f"Bearer {token}"}
    answer = httpx.get(f"{start().url}/v1/pets", headers=headers)
    used = MANY - int(answer.headers["X-RateLimit-Remaining"]) - 1
    assert 0 < certain <= used


def test_a_worker_that_was_killed_is_replaced(start: StartServer) -> None:
    server = start()
    headers = {"Authorization": f"Bearer {server.issue()}"}
    new = {"name": "Rex", "categoryId": 1}
    pet = httpx.post(f"{server.url}/v1/pets", headers=headers, json=new).json()
    killed = worker_of(server)
    os.kill(killed, signal.SIGKILL)
    server.wait_until_ready()
    assert worker_of(server) != killed
    found = httpx.get(f"{server.url}/v1/pets?id={pet['id']}", headers=headers)
    assert found.json() == [pet]
    assert "Unexpected exit from worker-1" in {line["event"] for line in server.log_lines()}
    assert server.stop() == 0


def test_a_worker_does_not_outlive_its_parent(start: StartServer) -> None:
    server = start()
    os.kill(server.process.pid, signal.SIGKILL)
    assert server.process.wait(5) == -signal.SIGKILL
    assert within(5, lambda: not is_alive(server))
    socket.create_server(("127.0.0.1", server.port)).close()


def test_a_service_that_cannot_open_its_database_any_more_ends_rather_than_fail_every_request(
    start: StartServer, tmp_path: Path
) -> None:
    server = start()
    for name in ("petstore.db-wal", "petstore.db-shm"):
        (tmp_path / name).unlink()
    (tmp_path / "petstore.db").write_text("once upon a time, " * 100)
    os.kill(worker_of(server), signal.SIGKILL)
    assert server.process.wait(10) == 1
    lines = server.log_lines()
    assert any("file is not a database" in line.get("traceback", "") for line in lines)
