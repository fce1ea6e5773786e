"""Requests that are wrong in some way, made from the table of operations."""

import json
from random import Random
from typing import Any

import msgspec

from petstore.interface.operation import Operation
from petstore.interface.operations import OPERATIONS

_PATH_IDS = ("1", "0", "-1", "007", "x", "9223372036854775807", "9223372036854775808", "1.0", "%31")
_MOSTLY = 0.8  # of the ids are of something that may exist
_FOREIGN_IDS = ("2", "0", "-1", "x", "9223372036854775808", "1e3")  # not of the key that asks
_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**63 - 1, 2**63, -(2**63) - 1, 1.5, 5.0, 1e300, "", " ", "x"),
    *("available", "sold", "\0", "ä\u2028", "x" * 300, [], {}, [1], {"a": 1}, [[[]]], "2026-01-01"),
    *("2026-12-24T10:00:00Z", "9" * 40, -0.0, [None] * 30, {"name": {"name": {}}}, "DROP TABLE"),
)
_TEXTS = (
    *(b"", b" ", b"null", b"[]", b"1", b'"x"', b"{", b"{}", b"{}x", b"\xef\xbb\xbf{}", b"\xff"),
    *(b'{"name":"\\ud800","categoryId":1}', b'{"name":"\xff","categoryId":1}', b"[" * 3_000),
    *(b'{"name":"x","categoryId":1,"x":"\xed\xa0\x80"}', b'{"name":"x","name":1,"categoryId":1}'),
    *(b'{"a":1e999}', b'{"name":"x","categoryId":01}', b"{'name':1}", b"NaN", b'{"a":\x00}'),
)
_QUERY_VALUES = (
    *("", "0", "1", "101", "-1", "5.0", "+5", "1_0", "%EF%BC%95", "%00", "%ff", "available"),
    *("AAAAAAAAAAA", "x" * 200, "%ED%A0%80", "1,2", "null", "true", "%", "%zz", "sold&status=sold"),
)
_LINES = (
    *("Content-Type: text/plain", "Content-Type: application/json; charset=utf-16", "If-Match: x"),
    *("Content-Encoding: gzip", "Idempotency-Key: ", 'Idempotency-Key: "a', "If-None-Match: *"),
    *("If-Match: " + "," * 500, "X-Request-Id: \t", "Accept: text/html;q=0", "Origin: null"),
    *("Authorization: Basic eA==", "X-Forwarded-For: ::1%x", "Expect: nothing", "Range: bytes=0-1"),
    *("Access-Control-Request-Method: GET", "X-HTTP-Method-Override: DELETE", "Cookie: a=b"),
)
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "QUERY")


def bad_request(random: Random, token: str) -> bytes:
    """Return a request of an operation with one to three things wrong with it."""
    operation = random.choice(OPERATIONS)
    method: str = operation.method
    path, query = _path(random, operation), ""
    body = None if operation.body is None else _encoded(operation.body_example)
    lines = [f"Authorization: Bearer {token}"]
    for _ in range(random.choice((1, 1, 2, 3))):
        what = random.randrange(6)
        if what == 0 and operation.query is not None:
            query = _query(random, operation)
        elif what == 1:
            lines.append(random.choice(_LINES))
        elif what == 2 and random.random() < 0.3:
            method = random.choice(_METHODS)
        elif what == 3 and random.random() < 0.2:
            path += random.choice(("/", "/x", "%2F", "//", ";a", "/../pets", "%00", "?%", "/1/2"))
        elif body is not None:
            body = _bad_body(random, operation)
        else:
            lines.append(random.choice(_LINES))
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    head = "\r\n".join((f"{method} {path}{query} HTTP/1.1", "Host: proof", *lines, "", ""))
    return head.encode() + (body or b"")


def _path(random: Random, operation: Operation) -> str:
    is_of_keys = operation.path.startswith("/keys")
    ids = _FOREIGN_IDS if is_of_keys else _PATH_IDS
    before, braced, rest = operation.path.partition("{")
    wanted = ids[0] if random.random() < _MOSTLY else random.choice(ids)
    return f"/v1{before}" + (wanted + rest.partition("}")[2] if braced else "")


def _query(random: Random, operation: Operation) -> str:
    assert operation.query is not None
    names = [*(field.encode_name for field in msgspec.structs.fields(operation.query)), "x", "id[]"]
    pairs = (
        f"{random.choice(names)}={random.choice(_QUERY_VALUES)}"
        for _ in range(random.choice((1, 1, 2, 3)))
    )
    return "?" + "&".join(pairs)


def _bad_body(random: Random, operation: Operation) -> bytes:
    how = random.random()
    if how < 0.15:
        return random.choice(_TEXTS)
    example = operation.body_example
    changed = dict(example[0] if operation.is_batch else example)
    name = random.choice([*changed, "status", "name", "x"])
    if how < 0.3 and name in changed:
        del changed[name]
    else:
        changed[name] = random.choice(_VALUES)
    text = _encoded([*example[1:], changed] if operation.is_batch else changed)
    if how > 0.85:
        at = random.randrange(len(text) + 1)
        return text[:at] + random.choice((b"", b"\xff", b"\0", b"{", b'"', b",")) + text[at + 1 :]
    return text


def _encoded(value: Any) -> bytes:
    return json.dumps(value).encode()
