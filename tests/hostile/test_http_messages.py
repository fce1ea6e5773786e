"""HTTP messages that are wrong, or that two readers could read differently."""

import json
import re
from collections.abc import Callable

import pytest

from support.process import ServerProcess
from support.raw_socket import RawSocket

BELLA = b'{"name":"Bella","categoryId":1}'
LAST = b"GET /healthz HTTP/1.1\r\nHost: petstore\r\nX-Request-Id: last\r\nConnection: close\r\n\r\n"
RESPONSE = re.compile(rb"HTTP/1\.[01] ([0-9]{3}) ")
CHUNKED = b"Transfer-Encoding: chunked\r\n"
GET = b"GET /v1/pets?limit=1 HTTP/1.1"
END = b"0\r\n\r\n"

Head = Callable[..., bytes]
Exchange = Callable[[bytes], bytes]
Statuses = Callable[[bytes], list[int]]


@pytest.fixture
def head(short_timeout_token: str) -> Head:
    """Makes the head of a request with a valid key."""

    def make(line: bytes = GET, *fields: bytes) -> bytes:
        always = b"Host: petstore\r\nAuthorization: Bearer " + short_timeout_token.encode()
        return line + b"\r\n" + always + b"\r\n" + b"".join(fields) + b"\r\n"

    return make


@pytest.fixture
def post(head: Head) -> Head:
    def make(*fields: bytes, body: bytes = BELLA) -> bytes:
        if not any(b"content-length" in f.lower() or b"transfer" in f.lower() for f in fields):
            fields = (*fields, b"Content-Length: %d\r\n" % len(body))
        return head(b"POST /v1/pets HTTP/1.1", *fields) + body

    return make


@pytest.fixture
def exchange(short_timeout_server: ServerProcess) -> Exchange:
    """Sends data and a last request, and returns the responses before the last one."""

    def send(data: bytes) -> bytes:
        with RawSocket(short_timeout_server.port) as connection:
            connection.send(data + LAST)
            responses = connection.rest()
        assert b"Traceback" not in responses
        before, start, last = responses.rpartition(b"HTTP/1.1 ")
        return before if b"x-request-id: last" in last else before + start + last

    return send


@pytest.fixture
def statuses(exchange: Exchange) -> Statuses:
    return lambda data: [int(status) for status in RESPONSE.findall(exchange(data))]


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


# Heads

LINES = {
    400: (
        *(b"GET /v1/pets", b"GET /v1/pets HTTP/0.9", b"GET /v1/pets HTTP/2.0", b"{}"),
        *(b"GET /v1/pets HTTP/1.1 x", b"GET /v1/pe ts HTTP/1.1", b"GET /v1/pets\0 HTTP/1.1"),
        *(b"GET /v1/\xff HTTP/1.1", b"GET /v1/pets?status=\xff HTTP/1.1", b"GET v1/pets HTTP/1.1"),
        *(b"G@T /v1/pets HTTP/1.1", b"G\0T /v1/pets HTTP/1.1", b" GET /v1/pets HTTP/1.1"),
        *(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"GET /v1/pets HTTP/1"),
        *(b"GET /v1/pets HTTP/11", b"GET /v1/pets RTSP/1.0", b"OPTIONS /v1/pets RTSP/1.1"),
        *(b"SOURCE /v1/pets ICE/1.0", b"PLAY /v1/pets HTTP/1.1", b"PRI /v1/pets HTTP/1.1"),
        b"GET /v1/pets#top HTTP/1.1",
    ),
    404: (b"CONNECT example.org:80 HTTP/1.1", b"OPTIONS * HTTP/1.1"),
    405: (b"CONNECT /v1/pets HTTP/1.1", b"TRACE /v1/pets HTTP/1.1", b"QUERY /v1/pets HTTP/1.1"),
    501: (
        *(b"FETCH /v1/pets HTTP/1.1", b"get /v1/pets HTTP/1.1"),
        b"X" * 5_000 + b" /v1/pets HTTP/1.1",
    ),
}


@pytest.mark.parametrize(
    ("line", "status"),
    [(line, status) for status, lines in LINES.items() for line in lines],
    ids=lambda value: repr(value)[:30],
)
def test_a_wrong_request_line_is_refused(
    statuses: Statuses, head: Head, line: bytes, status: int
) -> None:
    assert statuses(head(line)) == [status]


@pytest.mark.parametrize("version", [b"1.2", b"1.9"])
def test_a_later_minor_version_is_treated_as_1_1(
    statuses: Statuses, head: Head, version: bytes
) -> None:
    assert statuses(head(b"GET /v1/pets?limit=1 HTTP/" + version) * 2) == [200, 200]


@pytest.mark.parametrize(
    "field",
    [
        *(b"X : a\r\n", b" X: a\r\n", b"X\r\n", b": a\r\n", b"X: a\r\n b\r\n", b"X: a\r\n\tb\r\n"),
        *(b"X: a\0b\r\n", b"X: a\rb\r\n", b"X: a\x01b\r\n", b"X\0: a\r\n", b"X\xff: a\r\n"),
        *(b"X Y: a\r\n", b"Host: petstore\r\n", b"Host: other\r\n"),
    ],
    ids=repr,
)
def test_a_malformed_field_or_a_second_host_is_refused(
    statuses: Statuses, head: Head, field: bytes
) -> None:
    assert statuses(head(GET, field)) == [400]


def test_non_text_bytes_in_a_header_do_no_harm(statuses: Statuses, head: Head) -> None:
    fields = [b"X-Request-Id: \xff\xfe\r\n", b"Origin: \xff\r\n", b"X-Forwarded-For: \xff\r\n"]
    assert statuses(head(GET, *fields)) == [200]


# Bodies whose end could be read in two ways


@pytest.mark.parametrize(
    "fields",
    [
        b"Content-Length: 31\r\nContent-Length: 5\r\n",
        b"Content-Length: 31\r\nContent-Length: 31\r\n",
        b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        *(b"Content-Length: 31, 31\r\n", b"Content-Length: 31, 5\r\n", b"Content-Length: -1\r\n"),
        *(b"Content-Length: +31\r\n", b"Content-Length: 0x1f\r\n", b"Content-Length: 3 1\r\n"),
        *(b"Content-Length:\r\n", b"Content-Length: 99999999999999999999\r\n"),
        *(b"Transfer-Encoding: xchunked\r\n", b"Transfer-Encoding: chunked\t\r\n"),
        b"Transfer-Encoding: chunked, gzip\r\n",
        b"Transfer-Encoding: identity\r\nContent-Length: 31\r\n",
        b'Transfer-Encoding: "chunked"\r\n',
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        b"Transfer-Encoding : chunked\r\nContent-Length: 31\r\n",
    ],
    ids=repr,
)
def test_a_body_with_ambiguous_framing_is_refused(
    statuses: Statuses, post: Head, head: Head, fields: bytes
) -> None:
    assert statuses(post(fields) + head()) == [400]


@pytest.mark.parametrize(
    "body",
    [
        *(
            size + b"\r\n" + BELLA + b"\r\n" + END
            for size in (b"-1", b"+1f", b"0x1f", b"g", b"", b" 1f", b"1f 1", b"f" * 17, b"1f\n")
        ),
        b"1f\r\n" + BELLA + END,
        b"1f\r\n" + BELLA + b"\n" + END,
        b"1f\n" + BELLA + b"\n0\n\n",
        b"1e\r\n" + BELLA + b"\r\n" + END,
        b"1f;" + b"x" * 200_000 + b"\r\n" + BELLA + b"\r\n" + END,
    ],
    ids=lambda body: repr(body)[:30],
)
def test_a_malformed_chunk_is_refused(
    statuses: Statuses, post: Head, head: Head, body: bytes
) -> None:
    assert statuses(post(CHUNKED, body=body) + head()) in ([400], [])


@pytest.mark.parametrize("other", [b"", b"X: y\r\n"])
def test_a_key_in_a_trailer_is_ignored(
    statuses: Statuses, short_timeout_token: str, other: bytes
) -> None:
    trailer = other + b"Authorization: Bearer " + short_timeout_token.encode() + b"\r\n"
    line = b"POST /v1/pets HTTP/1.1\r\nHost: petstore\r\nTrailer: Authorization\r\n"
    data = line + CHUNKED + b"\r\n" + chunk(BELLA) + b"0\r\n" + trailer + b"\r\n"
    assert statuses(data) == [401]


# Requests within requests


@pytest.mark.parametrize(
    "fields",
    [
        b"",
        b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n",
        b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n",
        b"Expect: 100-continue\r\n",
    ],
    ids=["plain", "h2c", "websocket", "expect"],
)
@pytest.mark.parametrize("method", [b"GET", b"POST", b"DELETE", b"HEAD"])
def test_a_body_that_looks_like_a_request_stays_a_body(
    exchange: Exchange, head: Head, method: bytes, fields: bytes
) -> None:
    inner = head(b"GET /v1/usage HTTP/1.1", b"X-Request-Id: inner\r\n")
    length = b"Content-Length: %d\r\n" % len(inner)
    responses = exchange(head(method + b" /v1/pets?limit=1 HTTP/1.1", length, fields) + inner)
    assert b"inner" not in responses
    (status,) = [int(status) for status in RESPONSE.findall(responses) if status != b"100"]
    assert status in {200, 400, 405}


@pytest.mark.parametrize(
    ("field", "body"),
    [(b"Content-Length: 70000\r\n", b"a" * 70_000), (CHUNKED, chunk(b"a" * 65_537) + END)],
    ids=["length", "chunks"],
)
def test_the_rest_of_a_body_that_is_too_large_is_not_read_as_a_request(
    exchange: Exchange, post: Head, head: Head, field: bytes, body: bytes
) -> None:
    inner = head(b"GET /v1/usage HTTP/1.1", b"X-Request-Id: inner\r\n")
    responses = exchange(post(field, body=body.replace(b"a" * len(inner), inner, 1)))
    assert b"inner" not in responses
    assert RESPONSE.findall(responses) in ([b"413"], [])


@pytest.mark.parametrize(
    ("field", "status"),
    [
        (b"Authorization: Bearer twice\r\n", 401),
        (b"Content-Length: 70000\r\n", 413),
        (b"Content-Type: text/plain\r\n", 415),
        (b"", 100),
    ],
)
def test_only_a_request_that_is_not_refused_gets_a_100_continue(
    short_timeout_server: ServerProcess, post: Head, field: bytes, status: int
) -> None:
    with RawSocket(short_timeout_server.port) as connection:
        connection.send(post(b"Expect: 100-continue\r\n", field).removesuffix(BELLA))
        assert connection.read_response().status == status
        if status == 100:
            connection.send(BELLA)
            assert connection.read_response().status == 201


# Pipelines


def test_garbage_after_a_request_is_refused_separately(statuses: Statuses, post: Head) -> None:
    assert statuses(post() + b"rubbish\r\n\r\n") == [201, 400]


def test_pipelined_requests_get_their_responses_in_order(
    short_timeout_server: ServerProcess, head: Head, post: Head
) -> None:
    count = 300
    with RawSocket(short_timeout_server.port) as connection:
        for n in range(count):
            line = GET if n % 3 else GET.replace(b"GET", b"HEAD")
            connection.send(head(line, b"X-Request-Id: %d\r\n" % n))
        for n in range(count):
            response = connection.read_response(to_head=n % 3 == 0)
            assert response.status == 200
            assert response.fields["x-request-id"] == str(n)
        connection.send(post() * 50)
        ids = [json.loads(connection.read_response().body)["id"] for _ in range(50)]
    assert ids == sorted(ids)
