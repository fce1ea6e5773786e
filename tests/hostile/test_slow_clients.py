"""Clients that are slow, and clients with many connections."""

import socket
import time
from contextlib import ExitStack

import pytest

from support.process import ServerProcess, StartServer
from support.raw_socket import ConnectionEnded, RawSocket
from support.waiting import within

POST = (
    b"POST /v1/pets HTTP/1.1\r\nHost: petstore\r\nAuthorization: Bearer %s\r\n"
    b"Content-Length: 100\r\n\r\n"
)


def test_a_connection_is_closed_after_the_header_timeout_or_the_idle_timeout(
    short_timeout_server: ServerProcess,
) -> None:
    line = b"GET /v1/pets HTTP/1.1\r\n"
    started = time.monotonic()
    with ExitStack() as stack:
        connections = []
        for data in (b"", b"G", line, line + b"Host: petstore\r\nX: "):
            connections.append(stack.enter_context(RawSocket(short_timeout_server.port)))
            connections[-1].send(data)
        idle = stack.enter_context(RawSocket(short_timeout_server.port))
        idle.send(b"GET /healthz HTTP/1.1\r\nHost: petstore\r\n\r\n")
        assert idle.read_response().status == 200
        assert {connection.rest() for connection in (*connections, idle)} == {b""}
    assert time.monotonic() - started > 0.3


@pytest.mark.parametrize(
    ("begin", "drop"), [(b"GET /v1/pets HTTP/1.1\r\n", b"X: y\r\n"), (b"", b"\r\n")]
)
def test_headers_or_blank_lines_that_drip_do_not_extend_their_timeout(
    short_timeout_server: ServerProcess, begin: bytes, drop: bytes
) -> None:
    started = time.monotonic()
    with RawSocket(short_timeout_server.port, seconds=0.05) as connection:
        connection.send(begin)
        while time.monotonic() - started < 20:
            connection.send(drop)
            try:
                assert connection.rest() == b""
                break
            except TimeoutError:
                continue
    assert time.monotonic() - started < 20


@pytest.mark.parametrize("piece", [b"", b" "], ids=["stalls", "drips"])
def test_a_body_that_does_not_arrive_in_time_gets_408(
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
    assert time.monotonic() - started > 0.3


def test_silent_clients_beyond_the_limit_block_others_only_for_a_while(start: StartServer) -> None:
    limits = ("--max-connections", "50", "--connections-per-address", "50")
    server = start(*limits, "--header-timeout", "0.5")
    started = time.monotonic()
    with ExitStack() as stack:
        for _ in range(60):
            stack.enter_context(RawSocket(server.port))
        connection = stack.enter_context(RawSocket(server.port))
        connection.send(b"GET /healthz HTTP/1.1\r\nHost: petstore\r\n\r\n")
        assert connection.read_response().status == 200
    assert time.monotonic() - started > 0.3


GET = b"GET /healthz HTTP/1.1\r\nHost: petstore\r\n\r\n"
FEW = ("--max-connections", "100", "--connections-per-address", "5")


def has_response(connection: RawSocket) -> bool:
    connection.send(GET)
    try:
        return connection.read_response().status == 200
    except (ConnectionEnded, ConnectionError):
        return False


def responding(server: ServerProcess, stack: ExitStack, count: int) -> int:
    connections = [stack.enter_context(RawSocket(server.port)) for _ in range(count)]
    return sum(has_response(connection) for connection in connections)


def test_the_connections_of_each_address_have_their_own_limit(start: StartServer) -> None:
    server = start(*FEW)
    with ExitStack() as stack:
        assert responding(server, stack, 8) in (4, 5)  # the readiness check may still be connected
        source = ("127.0.0.2", 0)
        other = stack.enter_context(
            socket.create_connection(("127.0.0.1", server.port), 30, source)
        )
        other.sendall(GET)
        assert other.recv(12) == b"HTTP/1.1 200"
    said = "127.0.0.1 has 5 connections, the maximum"
    assert within(30, lambda: said in server.log_path.read_text())


def test_a_trusted_proxy_has_no_connection_limit(start: StartServer) -> None:
    server = start(*FEW, "--trusted-proxy", "127.0.0.0/8")
    with ExitStack() as stack:
        assert responding(server, stack, 8) == 8
