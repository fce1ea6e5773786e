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
    ("method", "with_key", "fields", "body", "status"),
    [
        ("POST", False, ["Content-Length: 30000"], b"x" * 30_000, 401),
        ("POST", True, ["Content-Type: a/b", "Content-Length: 30000"], b"x" * 30_000, 415),
        ("GET", True, ["Transfer-Encoding: chunked"], b"5\r\nhello\r\n0\r\n\r\n", 200),
    ],
)
def test_a_connection_stays_open_if_the_body_arrives_after_the_response(
    server: ServerProcess,
    token: str,
    method: str,
    fields: list[str],
    body: bytes,
    status: int,
    *,
    with_key: bool,
) -> None:
    with RawSocket(server.port) as caller:
        caller.send(head(method, token if with_key else None, *fields))
        caller.send(body)
        response = caller.read_response()
        assert response.status == status
        assert "connection" not in response.fields
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
