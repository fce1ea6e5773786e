"""Requests and bodies out of bytes, without a connection."""

import pytest

from petstore.http.messages import Refusal
from petstore.http.parser import MAX_HEAD, RequestParser

HOST = b"Host: a\r\n"
GET = b"GET / HTTP/1.1\r\n" + HOST + b"\r\n"
CHUNKED = b"POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"


def parser_with(data: bytes) -> RequestParser:
    parser = RequestParser("192.0.2.1")
    parser.unparsed = data
    return parser


def read_body(data: bytes) -> tuple[bytes, RequestParser]:
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


REQUEST_LINE = "the request line: expected a method, a target and HTTP/1.1"
TOO_LARGE = "the head: expected at most 16384 bytes"


@pytest.mark.parametrize(
    ("head", "status", "message"),
    [
        (b"GET / HTTP/1.1\r\nX: ".ljust(16_385, b"y"), 431, TOO_LARGE),
        (b"GET / HTTP/1.1\r\nX: ".ljust(16_381, b"y") + b"\r\n\r\n", 431, TOO_LARGE),
        (b"GET /" + b"y" * MAX_HEAD, 414, "the target: expected at most 8192 bytes"),
        (b"GET /".ljust(8_183, b"y") + b" HTTP/1.1\r\nX:".ljust(MAX_HEAD), 431, TOO_LARGE),
        (b"GET /\nHost: a", 400, "the head: expected lines that end with CR LF"),
        (b"<", 400, REQUEST_LINE),
        (b"\r\r\n", 400, REQUEST_LINE),
        (b"\r\n\nGET", 400, REQUEST_LINE),
        (b"\nGET", 400, REQUEST_LINE),
        (b"GET x:// HTTP/1.1\r\n\r\n", 400, "the target: expected a path or a URL"),
        (
            CHUNKED + b"Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 1\r\n\r\n",
            400,
            "the head: expected an HTTP/1.1 request; Content-Length can't be present with ",
        ),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_malformed_or_oversized_headers_are_refused(head: bytes, status: int, message: str) -> None:
    assert refusal(head)[0] == status
    assert refusal(head)[1].startswith(message)


@pytest.mark.parametrize(
    "head",
    [
        b"GET / HTTP/1.1\r\nX: ".ljust(16_380, b"y") + b"\r\n\r\n",
        b"GET /" + b"y" * 8_191 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 100 + b"\r\n",
    ],
    ids=["head", "target", "fields"],
)
def test_headers_at_a_limit_are_accepted(head: bytes) -> None:
    assert parser_with(head).next_request() is not None
    assert parser_with(head[:-2].ljust(len(head), b"\r")[:16_384]).next_request() is None


def test_a_request_may_arrive_byte_by_byte() -> None:
    parser = RequestParser("192.0.2.1")
    assert (parser.head_begins, parser.keeps_alive) == (False, True)
    for number in b"\r\n\r\n" + GET[:-1]:
        parser.unparsed += bytes([number])
        assert parser.next_request() is None
    parser.unparsed += b"\n" + GET
    for _ in range(2):
        request = parser.next_request()
        assert request is not None
        assert (request.method, request.path, request.query) == ("GET", "/", b"")
        assert (request.fields, request.repeated) == ({b"host": b"a"}, frozenset())
        assert request.body == "none"
    assert (parser.unparsed, parser.is_whole, parser.keeps_alive) == (b"", True, True)


@pytest.mark.parametrize(
    ("head", "length"),
    [
        *((b"H\nA\r\nBC", length) for length in range(1, 8)),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: y\n", 24),  # between CR and LF
    ],
)
def test_a_bare_lf_is_refused_wherever_a_piece_ends(head: bytes, length: int) -> None:
    parser = parser_with(head[:length])
    with pytest.raises(Refusal, match="CR LF"):  # noqa: PT012 - with the first or the second piece
        parser.next_request()
        parser.unparsed += head[length:]
        parser.next_request()


@pytest.mark.parametrize(
    ("target", "path", "query", "host"),
    [
        (b"http://me@b:8/x://y?q", "/x://y", b"q", b"b:8"),
        (b"http://b", "/", b"", b"b"),
        (b"http://b?q", "/", b"q", b"b"),
        (b"/a?b=c?d", "/a", b"b=c?d", b"a"),
        (b"/a//b%2F..", "/a//b%2F..", b"", b"a"),
        (b"*", "*", b"", b"a"),
        (b"/http://b", "/http://b", b"", b"a"),
    ],
)
def test_the_host_of_an_absolute_target_is_used(
    target: bytes, path: str, query: bytes, host: bytes
) -> None:
    head = b"OPTIONS %b HTTP/1.1\r\n" % target
    request = parser_with(head + HOST + b"\r\n").next_request()
    assert request is not None
    assert (request.path, request.query, request.fields) == (path, query, {b"host": host})
    request = parser_with(head + b"\r\n").next_request()
    assert request is not None
    assert (request.path, request.fields) == (path, {})


def test_fields_with_the_same_name_are_joined() -> None:
    fields = b"A: 1\r\na: 2 \t\r\nCookie: b\r\nCookie: c\r\n"
    parser = parser_with(b"GET / HTTP/1.1\r\n" + fields + b"\r\n" + GET)
    request, following = parser.next_request(), parser.next_request()
    assert request is not None
    assert request.fields == {b"a": b"1, 2", b"cookie": b"b; c"}
    assert request.repeated == {b"a", b"cookie"}
    assert following is not None
    assert following.repeated == set()


@pytest.mark.parametrize(
    ("connection", "is_kept"),
    [
        (b"", True),
        (b"Connection: keep-alive\r\n", True),
        (b"Connection: closed\r\n", True),
        (b"Connection: Upgrade\r\nUpgrade: x\r\n", True),
        (b"Proxy-Connection: close\r\n", True),
        (b"Connection: Close\r\n", False),
        (b"Connection: x , close\r\n", False),
        (b"Connection: x\r\nConnection: close\r\n", False),
    ],
)
def test_a_connection_is_persistent_unless_the_client_says_close(
    connection: bytes, *, is_kept: bool
) -> None:
    for version, keeps in [(b"1.1", is_kept), (b"1.0", False)]:
        parser = parser_with(b"GET / HTTP/%b\r\n%b%b\r\n" % (version, HOST, connection) + GET)
        assert parser.next_request() is not None
        assert parser.keeps_alive is keeps
        assert not keeps or parser.next_request() is not None


@pytest.mark.parametrize(
    ("length", "content"), [(b"0", b""), (b"1", b"h"), (b"2", b"hi"), (b"%05000d" % 2, b"hi")]
)
def test_a_request_can_follow_a_body_with_a_content_length(length: bytes, content: bytes) -> None:
    data = b"POST /x HTTP/1.1\r\nContent-Length: %b\r\n\r\n%b" % (length, content) + GET
    request = parser_with(data).next_request()
    assert request is not None
    assert request.body == ("waiting" if content else "none")
    body, parser = read_body(data)
    assert (body, parser.unparsed) == (content, GET)
    assert parser.next_request() is not None


def test_chunks_may_arrive_byte_by_byte_which_is_no_framing() -> None:
    data = b'a;b="c"\r\nhellohello\r\n1388\r\n' + b"!" * 5_000 + b"\r\n0\r\nX: close\r\n\r\n"
    parser = parser_with(CHUNKED + b"\r\n")
    assert parser.next_request() is not None
    body = b""
    for number in data:
        assert not parser.is_whole
        parser.unparsed += bytes([number])
        body += parser.next_piece()
    assert (body, parser.is_whole, parser.unparsed) == (b"hellohello" + b"!" * 5_000, True, b"")
    assert parser.keeps_alive


def test_a_piece_of_a_chunked_body_ends_at_the_first_chunk_after_2_kib() -> None:
    content = b"x" * (2_048 - len(b"7fb\r\n"))
    parser = parser_with(CHUNKED + b"\r\n7fb\r\n" + content + b"\r\n1\r\ny\r\n0\r\n\r\n")
    assert parser.next_request() is not None
    assert (parser.next_piece(), parser.unparsed) == (content, b"\r\n1\r\ny\r\n0\r\n\r\n")
    assert (parser.next_piece(), parser.is_whole) == (b"y", True)


def test_the_framing_of_each_chunked_body_has_up_to_4096_bytes() -> None:
    end = b"\r\nx\r\n0\r\n\r\n"
    message = CHUNKED + b"\r\n" + b"1;".ljust(4_097 - len(end), b"a") + end
    body, parser = read_body(message + message)
    assert (body, parser.unparsed) == (b"x", message)
    assert parser.next_request() is not None
    assert [parser.next_piece(), parser.next_piece()] == [b"", b"x"]
    assert refusal(message.replace(b";", b";a")) == (
        400,
        "its chunks are too small: their framing has over 4096 bytes",
    )


def test_the_size_line_of_a_chunk_has_up_to_4096_bytes() -> None:
    parser = parser_with(CHUNKED + b"\r\n0\r\n" + b"X:".ljust(4_093, b"a"))
    assert parser.next_request() is not None
    assert (parser.next_piece(), parser.is_whole) == (b"", False)
    parser.unparsed += b"a"
    with pytest.raises(Refusal, match="its chunks are too small"):
        parser.next_piece()
    parser = parser_with(CHUNKED + b"\r\n7d0\r\n" + b"x" * 2_000 + b"\r\n1;".ljust(100, b"a"))
    assert parser.next_request() is not None
    assert parser.next_piece() == b"x" * 2_000


@pytest.mark.parametrize(
    ("body", "keeps_alive"),
    [
        (b"5\r\nhello\r\n0\r\n\r\n", True),
        (b'5;a;b=c;d="e;\\"f"\r\nhello\r\n0;a\r\nX: y\r\n\r\n', True),
        (b"005\r\nhello\r\n000\r\n\r\n", True),
        (b"2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n", True),
        (b"5\r\nhello\r\n0\r\nConnection: close\r\n\r\n", False),
        (b"5\r\nhello\r\n0\r\nX: y\r\nconnection: a, close\r\n\r\n", False),
    ],
)
def test_chunks_are_joined_later_data_is_left_unparsed_and_a_trailer_may_say_close(
    body: bytes, *, keeps_alive: bool
) -> None:
    joined, parser = read_body(CHUNKED + b"\r\n" + body + GET)
    assert (joined, parser.unparsed, parser.keeps_alive) == (b"hello", GET, keeps_alive)


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


def test_the_first_byte_of_a_request_is_reported_once() -> None:
    parser = parser_with(b"\r\n")
    seen = []
    for piece in (b"", b"\r", b"\n", b"GE", b"T / HTTP/1.1\r\n\r\n", b"", b"G", b"E"):
        parser.unparsed += piece
        if parser.next_request() is None:
            seen.append(parser.head_begins)
    assert seen == [False, False, False, True, False, True, False]
