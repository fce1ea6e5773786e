"""A stop signal: what is under way is finished, nothing new is taken, nothing is lost."""

import json
import signal
import socket
import time
from pathlib import Path

import apsw
import httpx
import pytest

from support.command import Command
from support.patience import within
from support.process import ServerProcess
from support.raw_socket import RawSocket
from support.servers import StartServer
from support.writers import Writers

BODY = b'{"name": "Rex", "categoryId": 1}'
STOP_SIGNALS = [signal.SIGTERM, signal.SIGINT]


def head(token: str) -> bytes:
    return (
        b"POST /v1/pets HTTP/1.1\r\nHost: petstore\r\n"
        + f"Authorization: Bearer {token}\r\nContent-Length: {len(BODY)}\r\n\r\n".encode()
    )


def is_refusing(server: ServerProcess) -> bool:
    """Tell whether new connections are refused."""
    try:
        socket.create_connection(("127.0.0.1", server.port)).close()
    except ConnectionRefusedError:
        return True
    return False


def is_reading_a_body(server: ServerProcess, token: str) -> bool:
    """Tell whether the service has taken what was sent to it before now."""
    headers = {"Authorization": f"Bearer {token}"}
    return httpx.get(f"{server.url}/v1/pets", headers=headers).status_code == 200


def pets(folder: Path) -> list[dict[str, object]]:
    export = ("pets", "export", "--format", "jsonl")
    lines = Command(folder / "petstore.db").succeed(*export).splitlines()
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("number", STOP_SIGNALS)
def test_a_request_under_way_gets_its_answer_and_new_ones_are_refused(
    start: StartServer, tmp_path: Path, number: signal.Signals
) -> None:
    server = start()
    token = server.issue()
    with RawSocket(server.port) as caller, RawSocket(server.port):
        caller.send(head(token) + BODY[:5])
        assert is_reading_a_body(server, token)
        started = time.monotonic()
        server.process.send_signal(number)
        assert within(5, lambda: is_refusing(server))
        caller.send(BODY[5:])
        answer = caller.answer()
        assert answer.status == 201
    assert server.process.wait(10) == 0
    assert time.monotonic() - started < 10
    assert pets(tmp_path) == [answer.json()]
    assert server.log_lines()[-1]["status"] == 201


def test_connections_that_ask_for_nothing_do_not_hold_it_up(start: StartServer) -> None:
    server = start()
    with httpx.Client(base_url=server.url) as kept_alive:
        assert kept_alive.get("/healthz").status_code == 200
        started = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - started < 5


def test_a_body_that_never_comes_is_given_up(start: StartServer) -> None:
    server = start("--body-seconds", "1")
    token = server.issue()
    with RawSocket(server.port) as caller:
        caller.send(head(token))
        assert is_reading_a_body(server, token)
        assert server.stop() == 0
        assert caller.answer().status == 408


def test_a_request_that_takes_longer_than_the_stop_may_is_cut_off(start: StartServer) -> None:
    server = start("--stop-seconds", "2", "--body-seconds", "60")
    token = server.issue()
    with RawSocket(server.port) as caller:
        caller.send(head(token))
        assert is_reading_a_body(server, token)
        started = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - started < 5
        assert caller.rest() == b""


@pytest.mark.parametrize("number", STOP_SIGNALS)
def test_no_write_that_was_acknowledged_is_lost(
    start: StartServer, tmp_path: Path, number: signal.Signals
) -> None:
    server = start()
    with Writers(server, server.issue()) as writers:
        assert within(20, lambda: len(writers.acknowledged) > 100)
        server.process.send_signal(number)
        assert server.process.wait(10) == 0
    stored = {pet["id"] for pet in pets(tmp_path)}
    assert {pet_id for pet_id, _ in writers.acknowledged} <= stored
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


def test_counts_that_cannot_be_saved_are_told_and_the_stop_goes_on(
    start: StartServer, tmp_path: Path
) -> None:
    server = start("--database-seconds", "0.2", "--limits-save-seconds", "60")
    token = server.issue()
    assert is_reading_a_body(server, token)
    other = apsw.Connection(str(tmp_path / "petstore.db"))
    other.execute("BEGIN IMMEDIATE")
    assert server.stop() == 0
    other.close()
    events = [line["event"] for line in server.log_lines()]
    assert any(event.startswith("counts not saved: ") for event in events)


def test_a_stop_in_the_middle_of_the_start_is_heard(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path)
    assert server.process.stdout is not None
    server.process.stdout.readline()
    started = time.monotonic()
    assert server.stop() in {0, -signal.SIGTERM}
    assert time.monotonic() - started < 5
