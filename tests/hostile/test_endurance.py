"""Thousands of hostile requests leave no trace: no fault, no traceback, no memory, no stall."""

from pathlib import Path

import pytest

from petstore.keys.model import new_token
from support.process import ServerProcess
from support.raw_socket import RawSocket

MEGABYTES_OF_GROWTH = 30


@pytest.fixture(scope="module")
def token(short_timeout_token: str) -> bytes:
    return short_timeout_token.encode()


def resident_megabytes(server: ServerProcess) -> float:
    status = Path(f"/proc/{server.worker}/status").read_text()
    (kilobytes,) = [line.split()[1] for line in status.splitlines() if line.startswith("VmRSS:")]
    return int(kilobytes) / 1024


def request(token: bytes, line: bytes, body: bytes = b"", *fields: bytes) -> bytes:
    length = b"Content-Length: %d" % len(body) if body else b"X: y"
    head = [line, b"Host: petstore", b"Authorization: Bearer " + token, length, *fields]
    return b"\r\n".join(head) + b"\r\n\r\n" + body


def ask(server: ServerProcess, data: bytes, responses: int) -> set[int]:
    with RawSocket(server.port, seconds=30) as connection:
        seen = set()
        connection.send(data)
        for _ in range(responses):
            seen.add(connection.read_response().status)
        return seen


def test_malicious_json_does_no_harm(short_timeout_server: ServerProcess, token: bytes) -> None:
    traps = [
        b"[" * 65_536,
        b'{"a":' * 10_000,
        b"9" * 60_000,
        b'{"name":"x","categoryId":' + b"9" * 60_000 + b"}",
        b'{"name":"x","categoryId":1e' + b"9" * 60_000 + b"}",
        b'{"name":"' + b"x" * 60_000 + b'\\u0000","categoryId":1}',
        b'{"name":"' + b" " * 60_000 + b'","categoryId":1}',
        b"\xff" * 65_536,
        b'"' + b"\\" * 65_535,
        b"{" + b",".join(b'"k%d":0' % n for n in range(6_000)) + b"}",
    ]
    ask(
        short_timeout_server,
        b"".join(request(token, b"POST /v1/pets HTTP/1.1", t) for t in traps),
        10,
    )
    before = resident_megabytes(short_timeout_server)
    for _ in range(20):
        for trap in traps:
            data = request(token, b"POST /v1/pets HTTP/1.1", trap)
            assert ask(short_timeout_server, data, 1) == {400}
    assert resident_megabytes(short_timeout_server) - before < MEGABYTES_OF_GROWTH


def test_values_that_an_attacker_chooses_are_not_cached_forever(
    short_timeout_server: ServerProcess, token: bytes
) -> None:
    before = resident_megabytes(short_timeout_server)
    for start in range(0, 4_000, 500):
        data = b""
        for n in range(start, start + 500):
            data += request(token, b"GET /v1/pets?limit=1&x=%d%s HTTP/1.1" % (n, b"y" * 400))
            data += request(new_token("production").encode(), b"GET /v1/pets/%d HTTP/1.1" % n)
        assert ask(short_timeout_server, data, 1_000) == {200, 401}
    assert resident_megabytes(short_timeout_server) - before < MEGABYTES_OF_GROWTH


def test_headers_and_methods_of_any_size_are_not_cached(
    short_timeout_server: ServerProcess, token: bytes
) -> None:
    before = resident_megabytes(short_timeout_server)
    for n in range(300):
        fields = b"Z%d: %s" % (n, b"z" * 7_000)
        data = request(token, b"PURGE /v1/%s HTTP/1.1" % (b"p" * 7_000), b"", fields)
        assert ask(short_timeout_server, data, 1) == {404}
        data = request(token, b"X%d%s /v1/ HTTP/1.1" % (n, b"M" * 5_000), b"", fields)
        assert ask(short_timeout_server, data, 1) == {501}
    assert resident_megabytes(short_timeout_server) - before < MEGABYTES_OF_GROWTH


def test_clients_that_disconnect_during_a_request_do_no_harm(
    short_timeout_server: ServerProcess, token: bytes
) -> None:
    data = request(token, b"POST /v1/pets HTTP/1.1", b'{"name":"x","categoryId":1}')
    for end in range(0, len(data), 2):
        with RawSocket(short_timeout_server.port) as connection:
            connection.send(data[:end])
    for _ in range(200):
        with RawSocket(short_timeout_server.port) as connection:
            connection.send(data)
