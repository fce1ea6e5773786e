"""Processes that are killed: nothing acknowledged is lost, and nothing half alive stays."""

import asyncio
import os
import signal
import socket
from pathlib import Path

import httpx
import pytest

from support.buyers import Buyers, assert_agreement, assert_kept
from support.callers import Customers
from support.exploration import DEPTH
from support.full_stores import query
from support.other_processes import IdleUser
from support.process import ServerProcess, StartServer, is_ready
from support.waiting import eventually, within

MANY = 100_000


def stored_ids(folder: Path) -> set[int]:
    return {pet for (pet,) in query(f"sqlite:///{folder}/petstore.db", "SELECT id FROM pets")}


def saved_count(folder: Path) -> int:
    """Return how many requests of the only key have been saved."""
    ((count,),) = query(
        f"sqlite:///{folder}/petstore.db", "SELECT sum(minute_used) FROM rate_limits"
    )
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


def client_of(server: ServerProcess, token: str) -> httpx.AsyncClient:
    headers = {"Authorization": f"Bearer {token}"}
    return httpx.AsyncClient(base_url=server.url, headers=headers, timeout=60, trust_env=False)


@pytest.mark.anyio
@pytest.mark.explores
async def test_hundreds_of_buyers_and_a_power_cut_leave_the_store_consistent(
    start: StartServer, tmp_path: Path
) -> None:
    pets = range(1, 101)
    server = start("--database-timeout", "30")
    token = server.issue()
    async with client_of(server, token) as client:
        for number in pets:
            pet = {"name": f"Pet {number}", "categoryId": 1, "status": "available"}
            assert (await client.post("/v1/pets", json=pet)).json()["id"] == number
        first = Buyers(client, pets, seed=1)
        shopping = asyncio.create_task(first.shop(150 * DEPTH))
        await eventually(lambda: len(first.told) > 30)
        await asyncio.to_thread(server.kill)
        await shopping
    # Every third reservation ends while the service is down.
    ended = (
        "UPDATE orders SET reserved_until = placed_at"
        " WHERE reserved_until IS NOT NULL AND id % 3 = 0 RETURNING id"
    )
    lapsed = {order for (order,) in query(f"sqlite:///{tmp_path}/petstore.db", ended)}
    assert lapsed

    server = start("--database-timeout", "30")
    async with client_of(server, token) as client:
        orders = await assert_agreement(client)
        assert_kept(first, orders, lapsed)
        assert {orders[order_id]["status"] for order_id in lapsed} == {"cancelled"}
        second = Buyers(client, pets, seed=2)
        await second.shop(150 * DEPTH)
        assert second.codes <= {"pet_not_available"}
        assert second.asked == {}
        orders = await assert_agreement(client)
        assert_kept(first, orders, lapsed)
        assert_kept(second, orders, set())
        assert {order["status"] for order in orders.values()} == {
            *("placed", "approved", "delivered", "cancelled")
        }
