"""Requests that take up memory: whoever holds most gives way, with a response."""

from contextlib import ExitStack

from support.process import ServerProcess, StartServer
from support.raw_socket import RawSocket
from support.waiting import within

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
