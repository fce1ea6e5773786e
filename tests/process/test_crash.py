"""Processes that are killed: nothing acknowledged is lost, and nothing half alive stays."""

import asyncio
import json
import os
import signal
import socket
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.buyers import Buyers, assert_agreement, assert_kept
from support.callers import Customers
from support.exploration import DEPTH
from support.full_stores import query
from support.other_processes import IdleUser
from support.process import ServerProcess, StartServer, is_ready
from support.raw_socket import RawSocket
from support.waiting import eventually, within

MANY = 100_000


def stored_ids(folder: Path) -> set[int]:
    return {pet for (pet,) in query(f"sqlite:///{folder}/petstore.db", "SELECT id FROM pets")}


def saved_count(folder: Path) -> int:
    """Return how many requests of the only key have been saved."""
    used = "SELECT coalesce(sum(minute_used), 0) FROM rate_limits"
    ((saved,),) = query(f"sqlite:///{folder}/petstore.db", used)
    return int(saved)


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
    assert any(line["event"].endswith("file is not a database") for line in server.log_lines())


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


# Killed between a commit and its response: a retry gets the response, and acts once

ALL_SCOPES = ("pets:read", "pets:write", "orders:read", "orders:write", "keys:admin")
POSTS: dict[str, tuple[str, dict[str, Any], str]] = {
    "createPet": ("/v1/pets", {"name": "Rex", "categoryId": 1}, "SELECT 1 FROM pets WHERE id > 1"),
    "placeOrder": ("/v1/store/orders", {"petId": 1}, "SELECT 1 FROM orders"),
    "createKey": (
        "/v1/keys",
        {"name": "Till", "scopes": [*ALL_SCOPES[:4]]},
        "SELECT 1 FROM api_keys WHERE id > 1",
    ),
}


def kept(server: ServerProcess) -> int:
    """Return how many responses are kept for retries."""
    return len(query(server.database, "SELECT 1 FROM idempotency_records"))


def test_the_next_process_replays_responses_lost_in_a_crash(start: StartServer) -> None:
    # The order of a set is another one in each process.
    server = start(env={"PYTHONHASHSEED": "1"})
    scopes = (word for scope in ALL_SCOPES for word in ("--scope", scope))
    headers = {"Authorization": f"Bearer {server.issue('enterprise', *scopes)}"}
    pet = {"name": "Bella", "categoryId": 1, "status": "available"}
    httpx.post(f"{server.url}/v1/pets", json=pet, headers=headers)
    with ExitStack() as opened:
        for name, (path, body, done) in POSTS.items():
            connection = opened.enter_context(RawSocket(server.port))
            content = json.dumps(body)
            fields = {**headers, "Host": "x", "Idempotency-Key": name}
            fields["Content-Length"] = str(len(content))
            lines = [f"POST {path} HTTP/1.1", *(f"{field}: {fields[field]}" for field in fields)]
            connection.send("\r\n".join([*lines, "", content]).encode())
            assert within(30, lambda sql=done: query(server.database, sql))  # type: ignore[misc]
        server.kill()
    server = start(env={"PYTHONHASHSEED": "2"})
    with httpx.Client(base_url=server.url, headers=headers) as client:
        for name, (path, body, done) in POSTS.items():
            again = {"Idempotency-Key": name}
            first, second = (client.post(path, json=body, headers=again) for _ in range(2))
            assert first.status_code == second.status_code, first.text
            assert first.content == second.content
            assert first.headers["Idempotent-Replayed"] == "true"
            assert len(query(server.database, done)) == 1
            if name == "createKey":
                assert first.json()["code"] == "secret_already_shown"
                continue
            found = client.get(httpx.URL(first.headers["Location"]).path)
            assert found.json().items() <= first.json().items()


def assert_whole(server: ServerProcess) -> None:
    """Check that each change is there together with its idempotency record."""
    counts = "SELECT (SELECT count(*) FROM pets), (SELECT count(*) FROM orders)"
    ((pets, orders),) = query(server.database, counts)
    assert kept(server) == pets + orders
    inventory = query(server.database, "SELECT pets FROM inventory ORDER BY status")
    assert inventory == [(pets - orders,), (orders,), (0,)]


@pytest.mark.explores
def test_repeated_kills_leave_an_idempotency_record_for_every_change(start: StartServer) -> None:
    server = start()
    token = server.issue()
    killed: list[Customers] = []
    for kill in range(2 * DEPTH):
        enough = kept(server) + 20 + 7 * (kill % 4)
        with Customers(server, token) as buyers:
            assert within(30, lambda running=server, least=enough: kept(running) > least)  # type: ignore[misc]
            server.kill()
        killed.append(buyers)
        assert set(buyers.statuses) <= {0, 201}
        assert_whole(server)
        server = start()
    headers = {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=f"{server.url}/v1", headers=headers) as client:
        for buyers in killed:
            for key, (path, body) in buyers.sent.items():
                reply = client.post(path, json=body, headers={"Idempotency-Key": key})
                assert reply.status_code == 201
                assert reply.content == buyers.responses.get(key, reply.content)
    assert_whole(server)
    assert kept(server) == sum(len(buyers.sent) for buyers in killed)
