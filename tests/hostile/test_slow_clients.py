"""Clients that take their time."""

import time
from contextlib import ExitStack

import pytest

from support.process import ServerProcess
from support.raw_socket import RawSocket
from support.servers import StartServer

POST = (
    b"POST /v1/pets HTTP/1.1\r\nHost: petstore\r\nAuthorization: Bearer %s\r\n"
    b"Content-Length: 100\r\n\r\n"
)


@pytest.mark.parametrize(
    "data",
    [b"", b"G", b"GET /v1/pets HTTP/1.1\r\n", b"GET /v1/pets HTTP/1.1\r\nHost: petstore\r\nX: "],
    ids=["nothing", "a letter", "a line", "half a head"],
)
def test_a_connection_whose_head_does_not_come_is_closed(
    short_timeout_server: ServerProcess, data: bytes
) -> None:
    started = time.monotonic()
    with RawSocket(short_timeout_server.port) as connection:
        connection.send(data)
        assert connection.rest() == b""
    assert 0.3 < time.monotonic() - started < 20


def test_a_head_that_drips_does_not_outlast_its_timeout(
    short_timeout_server: ServerProcess,
) -> None:
    started = time.monotonic()
    with RawSocket(short_timeout_server.port, seconds=0.05) as connection:
        connection.send(b"GET /v1/pets HTTP/1.1\r\n")
        while time.monotonic() - started < 20:
            connection.send(b"X: y\r\n")
            try:
                assert connection.rest() == b""
                break
            except TimeoutError:
                continue
    assert time.monotonic() - started < 20


def test_a_connection_that_is_not_used_again_is_closed(short_timeout_server: ServerProcess) -> None:
    with RawSocket(short_timeout_server.port) as connection:
        connection.send(b"GET /healthz HTTP/1.1\r\nHost: petstore\r\n\r\n")
        assert connection.read_response().status == 200
        assert connection.rest() == b""


@pytest.mark.under_asgi
@pytest.mark.parametrize("piece", [b"", b" "], ids=["stalls", "drips"])
def test_a_body_that_does_not_come_in_time_gets_408(
    short_timeout_server: ServerProcess, short_timeout_token: str, piece: bytes
) -> None:
    started = time.monotonic()
    with RawSocket(short_timeout_server.port, seconds=0.1) as connection:
        connection.send(POST % short_timeout_token.encode())
        while time.monotonic() - started < 20:
            connection.send(piece)
            try:
                response = connection.read_response()
                break
            except TimeoutError:
                continue
        assert response.status == 408
        assert response.json()["code"] == "request_timeout"
        assert connection.rest() == b""
    assert 0.3 < time.monotonic() - started < 20


def test_more_silent_clients_than_there_is_room_for_keep_others_out_only_for_a_while(
    start: StartServer,
) -> None:
    limits = ("--connections", "50", "--connections-per-address", "50")
    server = start(*limits, "--header-timeout", "0.5")
    started = time.monotonic()
    with ExitStack() as stack:
        for _ in range(60):
            stack.enter_context(RawSocket(server.port))
        connection = stack.enter_context(RawSocket(server.port))
        connection.send(b"GET /healthz HTTP/1.1\r\nHost: petstore\r\n\r\n")
        assert connection.read_response().status == 200
    assert time.monotonic() - started > 0.3
