"""What our parser reads from any bytes, another parser reads too, wherever the bytes are split.

A request that only one of two parsers sees can be hidden behind another one. So whatever we accept,
h11 must accept and read in the same way. It accepts more.
"""

from collections.abc import Iterable

import h11
from hypothesis import given
from hypothesis import strategies as st

from petstore.http.messages import Refusal, Request
from petstore.http.parser import MAX_HEAD, RequestParser
from support.exploration import explored

LINES = st.sampled_from(
    [
        *(b"GET / HTTP/1.1", b"POST /a?b=c HTTP/1.1", b"DELETE /x;y=1 HTTP/1.0"),
        *(
            b"HEAD * HTTP/1.1",
            b"PUT /a%20b?c?d HTTP/1.1",
            b"POST //a HTTP/1.9",
            b"OPTIONS /# HTTP/1.1",
        ),
    ]
)
FIELDS = st.sampled_from(
    [
        *(b"A: 1", b"A: 2", b"X-Empty:", b"X-Tab:\tvalue\t", b"X-Text: \xe4\xff", b" folded: 1"),
        *(b"Connection: close", b"Connection: x, close", b"Proxy-Connection: close", b"X : 1"),
        *(b"Upgrade: h2c", b"Connection: upgrade", b"Expect: 100-continue", b"X: a\x01b"),
        *(b"Content-Length: 5", b"Content-Length: 05", b"Content-Length: 5, 5", b"Host: other"),
        *(b"Transfer-Encoding: Chunked", b"Transfer-Encoding: gzip, chunked", b"nocolon"),
    ]
)
BODIES = st.sampled_from(
    [
        *(b"\r\n", b"Content-Length: 5\r\n\r\nhello", b"Content-Length: 0\r\n\r\n"),
        b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        b'Transfer-Encoding: chunked\r\n\r\n02;a;b="c;d"\r\nhe\r\n3\r\nllo\r\n000\r\nX: y\r\n\r\n',
    ]
)
MESSAGES = st.builds(
    lambda line, fields, body: b"".join((line, b"\r\nHost: a\r\n", *fields, body)),
    LINES,
    st.lists(FIELDS.map(lambda field: field + b"\r\n"), max_size=2),
    BODIES,
)
PIECES = st.sampled_from(
    [b"\r\n", b"\n", b"\r", b"\t", b" ", b":", b";", b"0", b"5", b"\0", b"\xff"]
)
CHANGES = st.lists(st.tuples(st.floats(0, 1), PIECES, st.integers(0, 3)), max_size=2)


@given(st.lists(MESSAGES, min_size=1, max_size=3), CHANGES)
@explored(100)
def test_what_we_read_h11_reads_too_wherever_it_is_split(
    messages: list[bytes], changes: list[tuple[float, bytes, int]]
) -> None:
    data = b"".join(messages)
    for place, piece, length in changes:
        at = int(place * len(data))
        data = data[:at] + piece + data[at + length :]
    read = ours([data])
    for at in range(1, len(data), 3):
        assert ours([data[:at], data[at:]]) == read
    theirs = by_h11(data.lstrip(b"\r\n"))
    assert read == theirs[: len(read)]


def ours(pieces: Iterable[bytes]) -> list[tuple[str, bytes, bytes]]:
    parser, request = RequestParser("192.0.2.1"), None
    read: list[tuple[str, bytes, bytes]] = []
    try:
        for piece in pieces:
            parser.unparsed += piece
            while parser.keeps_alive or request:
                if request is None:
                    request, body = parser.next_request(), b""
                if request is None or not _has_host(request):
                    break
                while not parser.is_whole and parser.unparsed:
                    left = len(parser.unparsed)
                    body += parser.next_piece()
                    if left == len(parser.unparsed):
                        break
                if not parser.is_whole:
                    break
                read.append((request.method, _text(request.fields), body))
                request = None
    except Refusal:
        pass
    return read


def _has_host(request: Request) -> bool:
    """Return what the application looks at before all else."""
    is_missing = b"host" not in request.fields and request.version == "1.1"
    return not is_missing and b"host" not in request.repeated


def _text(fields: dict[bytes, bytes]) -> bytes:
    return b"\n".join(b"%b: %b" % field for field in sorted(fields.items())).lower()


def by_h11(data: bytes) -> list[tuple[str, bytes, bytes]]:
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD)
    connection.receive_data(data)
    read: list[tuple[str, bytes, bytes]] = []
    try:
        while True:
            event = connection.next_event()
            if event in (h11.NEED_DATA, h11.PAUSED):
                return read
            if isinstance(event, h11.Request):
                fields: dict[bytes, bytes] = {}
                for name, value in event.headers:
                    fields[name] = fields[name] + b", " + value if name in fields else value
                method, body = event.method.decode(), b""
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                read.append((method, _text(fields), body))
                connection.send(h11.Response(status_code=200, headers=[("content-length", "0")]))
                connection.send(h11.EndOfMessage())
                if connection.our_state is h11.MUST_CLOSE:
                    return read
                connection.start_next_cycle()
    except h11.RemoteProtocolError:
        return read
