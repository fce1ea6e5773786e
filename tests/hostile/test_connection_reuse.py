"""After a refused body the connection is reused if possible, else the response closes it."""

import pytest

from support.process import ServerProcess
from support.raw_socket import RawSocket

LARGEST = 64 * 1024


def head(method: str, token: str | None, *fields: str) -> bytes:
    key = [] if token is None else [f"Authorization: Bearer {token}"]
    lines = [f"{method} /v1/pets HTTP/1.1", "Host: petstore", *key, *fields, "", ""]
    return "\r\n".join(lines).encode()


@pytest.mark.parametrize(
    ("with_key", "fields", "status"), [(False, [], 401), (True, ["Content-Type: text/plain"], 415)]
)
def test_a_connection_stays_open_if_the_body_arrives_after_the_refusal(
    server: ServerProcess, token: str, *, with_key: bool, fields: list[str], status: int
) -> None:
    with RawSocket(server.port) as caller:
        caller.send(head("POST", token if with_key else None, *fields, "Content-Length: 30000"))
        caller.send(b"x" * 30_000)
        refused = caller.read_response()
        assert refused.status == status
        assert "connection" not in refused.fields
        caller.send(head("GET", token))
        assert caller.read_response().status == 200


def test_a_connection_stays_open_after_a_get_with_a_body(server: ServerProcess, token: str) -> None:
    with RawSocket(server.port) as caller:
        caller.send(head("GET", token, "Transfer-Encoding: chunked"))
        caller.send(b"5\r\nhello\r\n0\r\n\r\n")
        assert "connection" not in caller.read_response().fields
        caller.send(head("GET", token))
        assert caller.read_response().status == 200


@pytest.mark.parametrize(
    "fields",
    [
        [f"Content-Length: {LARGEST + 1}"],
        ["Content-Length: 50", "Expect: 100-continue", "Content-Type: text/plain"],
    ],
)
def test_an_unread_body_closes_the_connection_with_a_connection_close_header(
    server: ServerProcess, token: str, fields: list[str]
) -> None:
    with RawSocket(server.port) as caller:
        caller.send(head("POST", token, *fields))
        assert caller.read_response().fields["connection"] == "close"
        assert caller.rest() == b""
