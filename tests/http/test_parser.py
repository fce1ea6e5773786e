"""Requests and bodies out of bytes, without a connection."""

import pytest

from petstore.http.messages import Refusal
from petstore.http.parser import MAX_HEAD, MAX_TARGET, RequestParser

HOST = b"Host: a\r\n"
GET = b"GET / HTTP/1.1\r\n" + HOST + b"\r\n"
CHUNKED = b"POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"


def parser_with(data: bytes) -> RequestParser:
    parser = RequestParser("192.0.2.1")
    parser.unparsed = data
    return parser


def read_body(data: bytes) -> tuple[bytes, RequestParser]:
    """Return the body of the one request in ``data``, and the parser behind it."""
    parser = parser_with(data)
    assert parser.next_request() is not None
    body = b""
    while not parser.is_whole:
        body += parser.next_piece()
    return body, parser


def refusal(data: bytes) -> tuple[int, str]:
    with pytest.raises(Refusal) as caught:
        read_body(data)
    return caught.value.status, caught.value.message


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET / HTTP/1.1\r\nX: " + b"y" * MAX_HEAD, 431),
        (b"GET / HTTP/1.1\r\nX: " + b"y" * MAX_HEAD + b"\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 101 + b"\r\n", 431),
        (b"GET /" + b"y" * MAX_TARGET + b" HTTP/1.1\r\n\r\n", 414),
        (b"GET /" + b"y" * MAX_HEAD, 414),
        (b"GET /a?b#c HTTP/1.1\r\n\r\n", 400),
        (b"GET /\nHost: a", 400),
        (b"FETCH / HTTP/1.1\r\n\r\n", 501),
        (CHUNKED.replace(b"1.1", b"1.0") + b"\r\n", 400),
        (CHUNKED.replace(b"chunked", b"gzip, chunked") + b"\r\n", 501),
        (CHUNKED + b"Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 1\r\n\r\n", 400),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_a_head_that_is_malformed_or_too_large_is_refused(head: bytes, status: int) -> None:
    assert refusal(head)[0] == status


@pytest.mark.parametrize(
    ("connection", "is_kept"),
    [
        (b"", True),
        (b"Connection: keep-alive\r\n", True),
        (b"Connection: closed\r\n", True),
        (b"Connection: Close\r\n", False),
        (b"Connection: x , close\r\n", False),
        (b"Connection: x\r\nConnection: close\r\n", False),
    ],
)
def test_a_connection_is_kept_unless_the_client_says_close(
    connection: bytes, *, is_kept: bool
) -> None:
    for version, keeps in [(b"1.1", is_kept), (b"1.0", False)]:
        parser = parser_with(b"GET / HTTP/%b\r\n%b%b\r\n" % (version, HOST, connection))
        assert parser.next_request() is not None
        assert parser.keeps_alive is keeps


def test_a_length_may_have_leading_zeros() -> None:
    body, parser = read_body(
        b"POST /x HTTP/1.1\r\n" + HOST + b"Content-Length: %05000d\r\n\r\nhi" % 2
    )
    assert (body, parser.unparsed) == (b"hi", b"")


@pytest.mark.parametrize("trailer", [b"Connection: close\r\n", b"X: y\r\nconnection: a, close\r\n"])
def test_a_trailer_may_say_close(trailer: bytes) -> None:
    body, parser = read_body(CHUNKED + b"\r\n2\r\nhi\r\n0\r\n" + trailer + b"\r\n")
    assert (body, parser.keeps_alive, parser.unparsed) == (b"hi", False, b"")


@pytest.mark.parametrize(
    "body",
    [
        b"5\r\nhello\r\n0\r\n\r\n",
        b'5;a;b=c;d="e;\\"f"\r\nhello\r\n0;a\r\nX: y\r\n\r\n',
        b"005\r\nhello\r\n000\r\n\r\n",
        b"2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
    ],
)
def test_chunks_are_joined_and_what_is_behind_them_is_left(body: bytes) -> None:
    joined, parser = read_body(CHUNKED + b"\r\n" + body + GET)
    assert (joined, parser.unparsed) == (b"hello", GET)


@pytest.mark.parametrize(
    "body",
    [
        b"5;=x\r\nhello\r\n0\r\n\r\n",
        b"5;a=\r\nhello\r\n0\r\n\r\n",
        b'5;a="b\r\nhello\r\n0\r\n\r\n',
        b"5 ;a\r\nhello\r\n0\r\n\r\n",
        b"5\nhello\r\n0\r\n\r\n",
        b"5\r\nhelloX\r\n0\r\n\r\n",
        b"5\r\nhello\n0\r\n\r\n",
        b"5\r\nhello0\r\n\r\n",
        b"0\r\nX: a\r\n b\r\n\r\n",
        b"0\r\nX: a\nY: b\r\n\r\n",
        b"0\r\nTransfer-Encoding: chunked\r\n\r\n",
    ],
)
def test_malformed_chunks_are_refused(body: bytes) -> None:
    assert refusal(CHUNKED + b"\r\n" + body) == (400, "its framing is broken")


def test_an_offer_to_upgrade_changes_nothing() -> None:
    offer = b"Connection: Upgrade\r\nUpgrade: websocket\r\n"
    body, parser = read_body(CHUNKED + offer + b"\r\n2\r\nhi\r\n0\r\n\r\n" + GET)
    assert body == b"hi"
    request = parser.next_request()
    assert request is not None
    assert (request.method, request.fields) == ("GET", {b"host": b"a"})


def test_the_beginning_of_a_head_is_reported_once() -> None:
    parser = parser_with(b"\r\n")
    seen = []
    for piece in (b"", b"\r", b"\n", b"GE", b"T / HTTP/1.1\r\n"):
        parser.unparsed += piece
        assert parser.next_request() is None
        seen.append(parser.head_begins)
    assert seen == [False, False, False, True, False]
