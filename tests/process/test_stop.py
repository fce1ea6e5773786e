"""A stop signal: what is under way is finished, nothing new is taken, nothing is lost."""

import os
import signal
import socket
from pathlib import Path

import pytest

from support.callers import Customers
from support.full_stores import query
from support.process import ServerProcess, StartServer
from support.raw_socket import RawSocket
from support.redis_server import redis_server
from support.waiting import within

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
    try:
        socket.create_connection(("127.0.0.1", server.port)).close()
    except ConnectionRefusedError:
        return True
    return False


def stored_ids(folder: Path) -> list[int]:
    return [pet for (pet,) in query(f"sqlite:///{folder}/petstore.db", "SELECT id FROM pets")]


@pytest.mark.parametrize("number", STOP_SIGNALS)
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
        begin_adding(caller, token)
        caller.send(BODY[:5])
        server.process.send_signal(number)
        assert within(30, lambda: is_refusing(server))
        caller.send(BODY[5:])
        response = caller.read_response()
        assert response.status == 201
        # Connections that are idle, or in the middle of a head, do not delay the stop.
        assert server.process.wait(30) == 0
    assert not list(tmp_path.glob("*-wal"))
    assert stored_ids(tmp_path) == [response.json()["id"]]
    requests = [line for line in server.log_lines() if line["event"] == "request"]
    assert requests[-1]["status"] == 201


def test_a_body_that_never_arrives_is_abandoned(start: StartServer) -> None:
    server = start("--body-timeout", "1")
    token = server.issue()
    with RawSocket(server.port) as caller:
        begin_adding(caller, token)
        assert server.stop() == 0
        assert caller.read_response().status == 408


def test_a_request_beyond_the_shutdown_timeout_is_cut_off(
    start: StartServer, tmp_path: Path
) -> None:
    server = start("--shutdown-timeout", "3", "--drain-timeout", "1", "--body-timeout", "60")
    token = server.issue()
    with RawSocket(server.port) as caller:
        begin_adding(caller, token)
        assert server.stop() == 0
        assert caller.rest() == b""
    assert not list(tmp_path.glob("*-wal"))
    assert any("cut off" in line["event"] for line in server.log_lines())


def test_no_acknowledged_write_is_lost(start: StartServer, tmp_path: Path) -> None:
    server = start()
    with Customers(server, server.issue()) as buyers:
        assert within(30, lambda: len(buyers.pets) > 100)
        assert server.stop() == 0
    stored = {*stored_ids(tmp_path)}
    assert set(buyers.pets) <= stored
    assert set(buyers.statuses) <= {0, 201}


def test_a_stop_signal_during_the_start_takes_effect(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path, *UNHURRIED)
    assert server.process.stdout is not None
    server.process.stdout.readline()
    assert server.stop() in {0, -signal.SIGTERM}


@pytest.mark.parametrize("number", STOP_SIGNALS)
def test_ctrl_c_in_a_terminal_stops_every_process_at_once(
    start: StartServer, tmp_path: Path, number: signal.Signals
) -> None:
    with redis_server() as redis:
        server = start("--workers", "2", "--redis", redis.url, *UNHURRIED)
        os.killpg(server.process.pid, number)
        assert server.process.wait(30) == 0
    assert not list(tmp_path.glob("*-wal"))
    assert not [line for line in server.log_lines() if line["level"] == "error"]
