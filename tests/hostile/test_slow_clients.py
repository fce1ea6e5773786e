"""Clients that are slow, and clients that have many connections or take up memory."""

import socket
import time
from contextlib import ExitStack

import pytest

from support.process import ServerProcess, StartServer
from support.raw_socket import RawSocket
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


def test_the_connections_of_an_address_are_limited_unless_it_is_a_trusted_proxy(
    start: StartServer,
) -> None:
    limits = ("--max-connections", "100", "--connections-per-address", "5")
    server = start(*limits, "--trusted-proxy", "127.0.0.2")

    def responds(address: str) -> bool:
        connection = socket.create_connection(("127.0.0.1", server.port), 30, (address, 0))
        stack.enter_context(connection)
        try:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: petstore\r\n\r\n")
            return connection.recv(12) == b"HTTP/1.1 200"
        except ConnectionError:
            return False

    with ExitStack() as stack:
        few = sum(responds("127.0.0.1") for _ in range(8))
        assert few in (4, 5)  # the readiness check may still be connected
        assert sum(responds("127.0.0.2") for _ in range(8)) == 8


BODY = b'{"name":"Bella","categoryId":1}'.ljust(60_000)
ROOM = ("--anonymous-per-minute", "1000000", "--buffer-bytes")


def head(token: str) -> bytes:
    return (
        "POST /v1/pets HTTP/1.1\r\nHost: petstore\r\n"
        f"Authorization: Bearer {token}\r\nContent-Length: {len(BODY)}\r\n\r\n"
    ).encode()


def unfinished(server: ServerProcess, stack: ExitStack, token: str, count: int) -> list[RawSocket]:
    """Open so many connections that have sent all of a request but the last byte."""
    connections = [stack.enter_context(RawSocket(server.port)) for _ in range(count)]
    for connection in connections:
        connection.send(head(token) + BODY[:-1])
    return connections


def test_bodies_without_a_key_take_no_memory(start: StartServer) -> None:
    server = start(*ROOM, str(4 * 1024 * 1024))
    with ExitStack() as stack:
        own = unfinished(server, stack, server.issue(), 2)
        strangers = unfinished(server, stack, "none", 100)
        for connection in own:
            connection.send(BODY[-1:])
            assert connection.read_response().status == 201
        for connection in strangers:
            connection.send(BODY[-1:])
            assert connection.read_response().status == 401


def test_bodies_beyond_the_memory_budget_get_503(start: StartServer) -> None:
    server = start(*ROOM, str(1024 * 1024))
    with ExitStack() as stack:
        connections = unfinished(server, stack, server.issue(), 30)
        statuses = []
        for connection in connections:
            connection.send(BODY[-1:])
            response = connection.read_response()
            statuses.append(response.status)
            if response.status == 503:
                assert response.json()["code"] == "service_unavailable"
                assert "too busy" in response.json()["message"]
                assert response.fields["connection"] == "close"
                assert response.fields["retry-after"] == "1"
        assert set(statuses) == {201, 503}
        assert statuses.count(201) >= 12
    assert within(30, lambda: "--buffer-bytes" in server.log_path.read_text())
