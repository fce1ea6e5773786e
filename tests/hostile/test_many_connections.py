"""One address with many connections leaves room for others, unless it is a trusted proxy."""

import socket
from contextlib import ExitStack

from support.process import ServerProcess, StartServer
from support.raw_socket import ConnectionEnded, RawSocket
from support.waiting import within

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
