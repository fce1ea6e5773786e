"""Invalid HTTP messages are refused like any request, and what becomes of their connection."""

import json
from collections.abc import Iterator

import pytest

from petstore.interface.openapi.document import document
from support.observed import read_metrics
from support.process import ServerProcess, free_port
from support.raw_socket import RawResponse, RawSocket
from support.waiting import within

SHOP = "https://shop.example"
HOST = f"Host: petstore\r\nOrigin: {SHOP}\r\n".encode()
LIMIT_HEADERS = ("x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset")
MESSAGES = [
    (b"nonsense\r\n\r\n", 400, "invalid_request", "the request line"),
    (b"GET /v1/pets HTTP/2.0\r\n" + HOST + b"\r\n", 400, "invalid_request", "HTTP/1.1"),
    (b"GET /v1/pets HTTP/1.1\r\nX : y\r\n" + HOST + b"\r\n", 400, "invalid_request", "the head"),
    (b"GET /v1/pets HTTP/1.1\nHost: a\n\n", 400, "invalid_request", "CR LF"),
    (b"GET /#a HTTP/1.1\r\n" + HOST + b"\r\n", 400, "invalid_request", "fragment"),
    (
        b"POST /v1/pets HTTP/1.1\r\nTransfer-Encoding: chunked, gzip\r\n" + HOST + b"\r\n",
        400,
        "invalid_request",
        "Transfer-Encoding",
    ),
    (b"GET /" + b"a" * 9_000 + b" HTTP/1.1\r\n" + HOST + b"\r\n", 414, "uri_too_long", "8192"),
    (
        b"GET / HTTP/1.1\r\n" + HOST + b"X: " + b"y" * 17_000,
        431,
        "header_fields_too_large",
        "16384",
    ),
    (
        b"GET / HTTP/1.1\r\n" + HOST + b"X: y\r\n" * 100 + b"\r\n",
        431,
        "header_fields_too_large",
        "100 fields",
    ),
    (b"FETCH / HTTP/1.1\r\n" + HOST + b"\r\n", 501, "not_implemented", "method"),
    (
        b"POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n" + HOST + b"\r\n",
        501,
        "not_implemented",
        "Transfer-Encoding",
    ),
]


@pytest.fixture(scope="module")
def metrics_port() -> int:
    """The metrics URL of the service of these tests."""
    return free_port()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, metrics_port: int) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("refusing")
    server = ServerProcess(folder, "--metrics-port", str(metrics_port), "--allowed-origin", SHOP)
    server.wait_until_ready()
    yield server
    assert server.stop() == 0


def refusal(server: ServerProcess, data: bytes) -> RawResponse:
    with RawSocket(server.port) as connection:
        connection.send(data)
        response = connection.read_response()
        assert connection.rest() == b""
    return response


def test_a_target_that_is_too_long_is_refused_as_documented(server: ServerProcess) -> None:
    described = document("http://shop.example")
    response = described["paths"]["/pets"]["get"]["responses"]["414"]
    shared = described["components"]["responses"][response["$ref"].rpartition("/")[2]]
    given = refusal(
        server, b"GET /v1/pets?name=" + b"a" * 9_000 + b" HTTP/1.1\r\n" + HOST + b"\r\n"
    )
    unlisted = {"date", "connection", "content-type", "content-length", "x-content-type-options"}
    unlisted |= {"access-control-allow-origin", "access-control-expose-headers", "vary"}
    named = {name.lower() for name in shared["headers"]} - {"vary"}  # the operation is unknown
    assert set(given.fields) - unlisted == named
    assert json.loads(given.body)["code"] in shared["content"]["application/json"]["examples"]


@pytest.mark.parametrize(
    ("data", "status", "code", "words"), MESSAGES, ids=[repr(row[0])[2:40] for row in MESSAGES]
)
def test_the_refusal_has_the_error_body_and_its_headers(
    server: ServerProcess, data: bytes, status: int, code: str, words: str
) -> None:
    response = refusal(server, data)
    body = response.json()
    assert response.status == status
    assert list(body) == ["code", "message", "status"]
    assert (body["code"], body["status"]) == (code, status)
    assert words in body["message"]
    assert response.fields["content-type"] == "application/json"
    assert response.fields["connection"] == "close"
    assert len(response.fields["x-request-id"]) > 10
    assert all(response.fields[name].isdigit() for name in LIMIT_HEADERS)
    # So a page can read it.
    allowed = SHOP if HOST in data else None
    assert response.fields.get("access-control-allow-origin") == allowed


def test_the_refusal_is_logged_and_measured_and_does_not_count_against_the_address(
    server: ServerProcess, metrics_port: int
) -> None:
    first, second = (refusal(server, b"nonsense\r\n\r\n").fields for _ in range(2))
    assert first[LIMIT_HEADERS[1]] == second[LIMIT_HEADERS[1]]
    request_id = first["x-request-id"]
    assert within(30, lambda: request_id in server.log_path.read_text())
    (line,) = (line for line in server.log_lines() if line.get("request") == request_id)
    assert (line["status"], line["method"], line["key"]) == (400, "-", None)
    counted = 'petstore_requests_total{method="other",operation="none",status="501"}'

    def count() -> float:
        return read_metrics(metrics_port).get(counted, 0)

    before = count()
    refusal(server, b"FETCH / HTTP/1.1\r\nHost: a\r\n\r\n")
    assert within(30, lambda: count() == before + 1)


@pytest.fixture(scope="module")
def token(server: ServerProcess) -> str:
    return server.issue()


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
