"""Processes that are killed: nothing acknowledged is lost, and nothing half alive stays."""

import os
import signal
import socket
from contextlib import closing
from pathlib import Path

import apsw
import httpx
import pytest

from petstore.databases.sqlite import SqliteStore
from petstore.errors import Unavailable
from support.command import Command
from support.idle_user import IdleUser
from support.process import is_ready
from support.servers import StartServer
from support.waiting import within
from support.writers import Writers

MANY = 100_000


def stored_ids(folder: Path) -> set[int]:
    lines = Command(folder / "petstore.db").succeed("pets", "export").splitlines()[1:]
    return {int(line.partition(",")[0]) for line in lines}


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
    with Writers(server, token) as writers:
        assert within(30, lambda: saved_count(tmp_path) > 100)
        saved = saved_count(tmp_path)
        server.kill()
    assert set(writers.acknowledged) <= stored_ids(tmp_path)

    headers = {"Authorization": f"Bearer {token}"}
    response = httpx.get(f"{start().url}/v1/pets", headers=headers)
    used = MANY - int(response.headers["X-RateLimit-Remaining"]) - 1
    assert used >= saved


def test_a_power_cut_after_the_wal_was_deleted_loses_no_acknowledged_write(
    start: StartServer, tmp_path: Path
) -> None:
    server = start()
    token = server.issue("enterprise", "--per-minute", str(MANY))
    with Writers(server, token) as writers:
        assert within(30, lambda: len(writers.acknowledged) > 100)
        (tmp_path / "petstore.db-wal").unlink()
        before = len(writers.acknowledged)
        assert within(30, lambda: len(writers.acknowledged) > before + 100)
        server.kill()
    assert set(writers.acknowledged) <= stored_ids(tmp_path)


@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGKILL])
def test_a_wal_deleted_while_another_program_reads_it_is_recovered(
    start: StartServer, tmp_path: Path, signal_number: int
) -> None:
    server = start()
    token = server.issue("enterprise", "--per-minute", str(MANY))
    database, saved = tmp_path / "petstore.db", tmp_path / "petstore.db-wal-saved"
    with Writers(server, token) as writers, IdleUser(database, reads=True):
        before = len(writers.acknowledged)
        assert within(30, lambda: len(writers.acknowledged) > before + 100)
        (tmp_path / "petstore.db-wal").unlink()
        assert within(30, saved.exists)
        if signal_number == signal.SIGTERM:
            assert server.stop() == 0
        else:
            server.kill()
    with pytest.raises(Unavailable, match="rename it to"):
        SqliteStore(database).migrate()
    saved.rename(tmp_path / "petstore.db-wal")
    assert set(writers.acknowledged) <= stored_ids(tmp_path)
    with closing(apsw.Connection(str(database))) as connection:
        assert connection.pragma("integrity_check") == "ok"
    start()


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
