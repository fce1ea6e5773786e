"""A stop signal: what is under way is finished, nothing new is taken, nothing is lost."""

import json
import os
import signal
import socket
from pathlib import Path

import httpx
import pytest

from support.command import Command
from support.process import ServerProcess
from support.raw_socket import RawSocket
from support.redis_server import redis_server
from support.servers import StartServer
from support.stores import locked
from support.waiting import within
from support.writers import Writers

BODY = b'{"name": "Rex", "categoryId": 1}'
UNHURRIED = ("--header-timeout", "60", "--shutdown-timeout", "60")
"""What waits for one of these does not stop within the 30 seconds that a test waits."""
STOP_SIGNALS = [signal.SIGTERM, signal.SIGINT]


def begin_adding(caller: RawSocket, token: str) -> None:
    """Send the head of a request, and wait until the service asks for its body."""
    caller.send(
        b"POST /v1/pets HTTP/1.1\r\nHost: petstore\r\nExpect: 100-continue\r\n"
        + f"Authorization: Bearer {token}\r\nContent-Length: {len(BODY)}\r\n\r\n".encode()
    )
    assert caller.read_response().status == 100


def is_refusing(server: ServerProcess) -> bool:
    """Return whether new connections are refused."""
    try:
        socket.create_connection(("127.0.0.1", server.port)).close()
    except ConnectionRefusedError:
        return True
    return False


def pets(folder: Path) -> list[dict[str, object]]:
    export = ("pets", "export", "--format", "jsonl")
    lines = Command(folder / "petstore.db").succeed(*export).splitlines()
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("number", STOP_SIGNALS)
def test_a_request_under_way_gets_its_response_and_new_ones_are_refused(
    start: StartServer, tmp_path: Path, number: signal.Signals
) -> None:
    server = start(*UNHURRIED)
    token = server.issue()
    with RawSocket(server.port) as caller, RawSocket(server.port):
        begin_adding(caller, token)
        caller.send(BODY[:5])
        server.process.send_signal(number)
        assert within(30, lambda: is_refusing(server))
        caller.send(BODY[5:])
        response = caller.read_response()
        assert response.status == 201
    assert server.process.wait(30) == 0
    assert pets(tmp_path) == [response.json()]
    requests = [line for line in server.log_lines() if line["event"] == "request"]
    assert requests[-1]["status"] == 201


def test_connections_that_ask_for_nothing_do_not_hold_it_up(start: StartServer) -> None:
    server = start(*UNHURRIED)
    with httpx.Client(base_url=server.url) as kept_alive:
        assert kept_alive.get("/healthz").status_code == 200
        assert server.stop() == 0


def test_a_body_that_never_comes_is_given_up(start: StartServer) -> None:
    server = start("--body-timeout", "1")
    token = server.issue()
    with RawSocket(server.port) as caller:
        begin_adding(caller, token)
        assert server.stop() == 0
        assert caller.read_response().status == 408


def test_a_request_that_takes_longer_than_the_stop_may_is_cut_off(
    start: StartServer, tmp_path: Path
) -> None:
    server = start("--shutdown-timeout", "2", "--body-timeout", "60")
    token = server.issue()
    with RawSocket(server.port) as caller:
        begin_adding(caller, token)
        assert server.stop() == 0
        assert caller.rest() == b""
    assert not list(tmp_path.glob("*-wal"))
    assert any("cut off" in line["event"] for line in server.log_lines())


@pytest.mark.parametrize("number", STOP_SIGNALS)
def test_no_write_that_was_acknowledged_is_lost(
    start: StartServer, tmp_path: Path, number: signal.Signals
) -> None:
    server = start()
    with Writers(server, server.issue()) as writers:
        assert within(30, lambda: len(writers.acknowledged) > 100)
        server.process.send_signal(number)
        assert server.process.wait(30) == 0
    stored = {pet["id"] for pet in pets(tmp_path)}
    assert set(writers.acknowledged) <= stored
    assert writers.unexpected == []


def test_counts_survive_exactly(start: StartServer) -> None:
    server = start()
    headers = {"Authorization": f"Bearer {server.issue('business')}"}
    with httpx.Client(headers=headers) as client:
        for _ in range(7):
            last = client.get(f"{server.url}/v1/pets").headers
        assert last["X-RateLimit-Remaining"] == "993"
        assert server.stop() == 0
        again = client.get(f"{start().url}/v1/pets").headers
    assert again["X-RateLimit-Remaining"] == "992"
    assert again["X-RateLimit-Reset"] == last["X-RateLimit-Reset"]


def test_counts_that_cannot_be_saved_are_logged_and_the_stop_goes_on(
    start: StartServer, tmp_path: Path
) -> None:
    server = start("--database-timeout", "0.2", "--limits-save-seconds", "60")
    headers = {"Authorization": f"Bearer {server.issue()}"}
    assert httpx.get(f"{server.url}/v1/pets", headers=headers).status_code == 200
    with locked(tmp_path / "petstore.db"):
        assert server.stop() == 0
    events = [line["event"] for line in server.log_lines()]
    assert any(event.startswith("counts not saved: ") for event in events)


def test_a_stop_in_the_middle_of_the_start_is_heard(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path, *UNHURRIED)
    assert server.process.stdout is not None
    server.process.stdout.readline()
    assert server.stop() in {0, -signal.SIGTERM}


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("number", STOP_SIGNALS * 2)
def test_a_stop_signal_to_every_process_as_a_terminal_sends_it_stops_at_once(
    start: StartServer, tmp_path: Path, number: signal.Signals, workers: int
) -> None:
    with redis_server() as redis:
        server = start("--workers", str(workers), "--redis", redis.url, *UNHURRIED)
        os.killpg(server.process.pid, number)
        assert server.process.wait(30) == 0
    assert not list(tmp_path.glob("*-wal"))
    assert not [line for line in server.log_lines() if line["level"] == "error"]


def test_a_caller_in_the_middle_of_a_head_does_not_hold_it_up(
    start: StartServer, tmp_path: Path
) -> None:
    server = start(*UNHURRIED)
    with RawSocket(server.port) as caller:
        caller.send(b"GET /v1")
        assert server.stop() == 0
    assert not list(tmp_path.glob("*-wal"))
