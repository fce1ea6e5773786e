"""Processes that are killed: nothing acknowledged is lost, and nothing half alive stays."""

import os
import signal
import socket
from pathlib import Path

import apsw
import httpx
import pytest

from support.callers import Customers
from support.full_stores import query
from support.other_processes import IdleUser
from support.process import StartServer, is_ready
from support.waiting import within

MANY = 100_000


def stored_ids(folder: Path) -> set[int]:
    return {pet for (pet,) in query(f"sqlite:///{folder}/petstore.db", "SELECT id FROM pets")}


def saved_count(folder: Path) -> int:
    """Return how many requests of the only key have been saved."""
    connection = apsw.Connection(str(folder / "petstore.db"))
    count = connection.execute("SELECT sum(minute_used) FROM rate_limits").get
    connection.close()
    return count or 0


def test_a_power_cut_loses_no_acknowledged_write_and_no_saved_count(
    start: StartServer, tmp_path: Path
) -> None:
    server = start()
    token = server.issue("enterprise", "--per-minute", str(MANY))
    with Customers(server, token) as buyers:
        assert within(30, lambda: saved_count(tmp_path) > 100)
        saved = saved_count(tmp_path)
        server.kill()
    assert set(buyers.pets) <= stored_ids(tmp_path)

    headers = {"Authorization": f"Bearer {token}"}
    response = httpx.get(f"{start().url}/v1/pets", headers=headers)
    used = MANY - int(response.headers["X-RateLimit-Remaining"]) - 1
    assert used >= saved


@pytest.mark.parametrize("ending", ["-wal", "-shm"])
def test_a_service_whose_files_are_deleted_ends_and_loses_no_acknowledged_write(
    start: StartServer, tmp_path: Path, ending: str
) -> None:
    server = start(delivers=True)
    token = server.issue("enterprise", "--per-minute", str(MANY))
    lost = tmp_path / f"petstore.db{ending}"
    with Customers(server, token) as buyers:
        assert within(30, lambda: len(buyers.pets) > 100)
        lost.unlink()
        assert server.process.wait(30) == 1
    logged = [line["event"] for line in server.log_lines() if line["level"] == "critical"]
    assert any(event.startswith(f"{lost} was deleted or replaced while in use") for event in logged)
    assert set(buyers.statuses) <= {0, 201, 503}
    assert set(buyers.pets) <= stored_ids(tmp_path)
    start()


def test_a_service_goes_on_while_another_program_reads_a_deleted_wal(
    start: StartServer, tmp_path: Path
) -> None:
    server = start()
    token = server.issue("enterprise", "--per-minute", str(MANY))
    with Customers(server, token) as buyers:
        with IdleUser(tmp_path / "petstore.db", reads=True):
            before = len(buyers.pets)
            assert within(30, lambda: len(buyers.pets) > before + 100)
            (tmp_path / "petstore.db-wal").unlink()
            assert within(30, lambda: buyers.statuses[503])
            assert httpx.get(f"{server.url}/healthz").status_code == 200
        assert server.process.wait(30) == 1
    assert set(buyers.pets) <= stored_ids(tmp_path)


def test_a_worker_does_not_outlive_its_parent(start: StartServer) -> None:
    server = start()
    os.kill(server.process.pid, signal.SIGKILL)
    assert server.process.wait(30) == -signal.SIGKILL
    assert within(30, lambda: not is_ready(server.url))
    socket.create_server(("127.0.0.1", server.port)).close()


def test_a_service_that_can_no_longer_open_its_database_exits(
    start: StartServer, tmp_path: Path
) -> None:
    server = start()
    for name in ("petstore.db-wal", "petstore.db-shm"):
        (tmp_path / name).unlink()
    (tmp_path / "petstore.db").write_text("once upon a time, " * 100)
    os.kill(server.worker, signal.SIGKILL)
    assert server.process.wait(30) == 1
    lines = server.log_lines()
    assert any(line["event"].endswith("file is not a database") for line in lines)
