"""The requests that two HTTP parsers read from the same bytes: ours, piece by piece, and h11."""

import asyncio
import re
import socket
from collections.abc import Iterable
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import h11

from petstore.http.connection import Connection, Shared
from petstore.http.messages import Receive, Request, Response
from petstore.http.parser import MAX_HEAD

End: TypeAlias = Literal["whole", "unfinished", "refused"]

_BLANK: Final = b"\r\n"
_QUIET: Final = 3  # rounds of the event loop after which nothing more happens
_OWN_RESPONSE: Final = [b"content-length: 0"]


class Parsed(NamedTuple):
    """A request as the application sees it; fields are joined by name."""

    method: str
    path: str
    query: bytes
    fields: dict[bytes, bytes]
    body: bytes


class Verdict(NamedTuple):
    """The requests that a parser reads from some bytes, and how it ends.

    ``whole``: nothing is left over; ``unfinished``: more bytes are needed; ``refused``: what
    follows the requests is not HTTP, or is not accepted. ``why`` is the message of the parser.
    """

    requests: list[Parsed]
    end: End
    why: str = ""

    def agrees_with(self, other: "Verdict") -> bool:
        """Return whether both are the same except for their messages."""
        return (self.requests, self.end) == (other.requests, other.end)


STRICTER = {
    "a fragment in the target": "no fragment",
    "a method that no standard defines": "the method: expected one of HTTP",
    "a line that ends without CR LF": "lines that end with CR LF|Missing expected (CR|LF) after"
    "|Invalid header field char",
    "bytes that cannot become a request line, a request line without CR LF, or a version other than"
    " HTTP/1": "the request line: expected",
    "control characters in a field value": "Invalid header value char",
    "a field folded over several lines": "Unexpected whitespace after header value",
    "invalid characters in a target": "(start char|char|characters) in url",
    "a URL as target with an invalid host or port": "the target: expected a path or a URL",
    "`Content-Length` more than once, or with a list": "Content-Length",
    "`Transfer-Encoding` beside `Content-Length`, in a trailer too": "Transfer-Encoding can't be",
    "an invalid chunk extension": "its framing is broken",
    "HTTP/1.2 and later without `Host`, as HTTP/1.1": "Host: expected exactly once",
    "a tab after `chunked`": "Request has invalid `Transfer-Encoding`",
    "chunks in HTTP/1.0, or an unknown transfer coding": "chunks as the last transfer coding",
}
"""What we refuse and h11 accepts, each with a pattern of our message for it."""

_STRICTER = re.compile("|".join(STRICTER.values()))


def disagreement(ours: Verdict, theirs: Verdict) -> str:
    """Describe how the verdicts differ, unless we are stricter in a documented way.

    Requests that both have are the same. We may stop earlier for a documented reason. Where h11
    refuses, we may still wait for more, as long as nothing of it becomes a request; and we ignore
    bare line ends where a request would begin.
    """
    common = min(len(ours.requests), len(theirs.requests))
    for our_request, their_request in zip(ours.requests, theirs.requests, strict=False):
        if our_request != their_request:
            return f"we read {our_request}, h11 {their_request}"
    if len(ours.requests) > common and theirs.why != _NO_LINE:
        return f"we read {ours.requests[common]}, and h11 refuses: {theirs.why}"
    if ours.end == "refused":
        is_the_same = len(theirs.requests) == common and theirs.end == "refused"
        if is_the_same or _STRICTER.search(ours.why):
            return ""
        return f"we refuse ({ours.why}), and h11 is {theirs.end} after {theirs.requests[common:]}"
    if len(theirs.requests) > common:
        return f"we are {ours.end}, and h11 reads {theirs.requests[common]}"
    is_known = ours.end in (theirs.end, "unfinished") or theirs.why == _NO_LINE
    return "" if is_known else f"we are {ours.end}, and h11 is {theirs.end}: {theirs.why}"


_NO_LINE = "no request line received"


class _Transport(asyncio.Transport):
    """Drops what a connection writes, and knows whether it was closed."""

    def __init__(self, peer: socket.socket) -> None:
        super().__init__({"socket": peer})
        self.was_closed = self.was_finished = False

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return 0

    def write(self, data: Any) -> None:
        pass

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        pass

    def write_eof(self) -> None:
        self.was_finished = True

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def is_closing(self) -> bool:
        return self.was_closed

    def close(self) -> None:
        self.was_closed = True

    def abort(self) -> None:
        self.was_closed = True


class OurParser:
    """Our connections without a network: bytes in, requests out."""

    def __init__(self) -> None:
        self._shared = Shared(1024 * 1024)
        self._socket, self._other = socket.socketpair()
        self._requests: list[Parsed] = []
        self._refusal: str | None = None

    def close(self) -> None:
        """Close the sockets."""
        self._socket.close()
        self._other.close()

    async def parse(self, pieces: list[bytes]) -> Verdict:
        """Return the verdict on pieces that arrive one after the other."""
        self._requests, self._refusal = [], None
        connection = Connection(self._respond, self._shared, "127.0.0.1", lambda: None)
        transport = _Transport(self._socket)
        connection.connection_made(transport)
        for piece in pieces:
            if transport.was_closed:
                break
            buffer = connection.get_buffer(len(piece))
            buffer[: len(piece)] = piece
            connection.buffer_updated(len(piece))
            await self._settle(connection)
        verdict = self._verdict(connection)
        connection.connection_lost(None)
        await asyncio.sleep(0)
        return verdict

    def _verdict(self, connection: Connection) -> Verdict:
        if self._refusal is not None:
            return Verdict(self._requests, "refused", self._refusal)
        is_unfinished = connection._request is not None or connection._parser.unparsed  # noqa: SLF001
        return Verdict(self._requests, "unfinished" if is_unfinished else "whole")

    async def _settle(self, connection: Connection) -> None:
        """Wait until the connection can do nothing more."""
        quiet = 0
        while quiet < _QUIET:
            await asyncio.sleep(0)
            quiet = 0 if connection.awaits_turn else quiet + 1

    async def _respond(self, request: Request, receive: Receive) -> Response:
        """Note a request once its body has arrived; called by the connection."""
        if request.refusal is not None:
            self._refusal = f"{request.refusal.status} {request.refusal.message}"
            return Response(request.refusal.status, b"", _OWN_RESPONSE, is_last=True)
        host = request.fields.get(b"host")
        if b"host" in request.repeated or (host is None and request.version == "1.1"):
            self._refusal = "Host: expected exactly once"  # as the application does
            return Response(400, b"", _OWN_RESPONSE, is_last=True)
        body = request.content or b""
        try:
            while request.content is None and (piece := await receive()):
                body += piece
        except ConnectionError as error:
            self._refusal = f"the body: {error}"
            return Response(400, b"", _OWN_RESPONSE, is_last=True)
        fields = dict(request.fields)
        if coding := fields.get(b"transfer-encoding"):
            fields[b"transfer-encoding"] = coding.lower()  # as h11 tells it
        parsed = Parsed(request.method, request.path, request.query, fields, body)
        self._requests.append(parsed)
        return Response(200, b"", _OWN_RESPONSE)


def parse_with_h11(data: bytes) -> Verdict:
    """Return the verdict of h11 on the bytes."""
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD)
    connection.receive_data(data)
    requests: list[Parsed] = []
    head: h11.Request | None = None
    body = b""
    try:
        while True:
            event = connection.next_event()
            if event is h11.NEED_DATA:
                left = connection.trailing_data[0]
                is_whole = head is None and not left.strip(_BLANK)
                return Verdict(requests, "whole" if is_whole else "unfinished")
            if isinstance(event, h11.Request):
                head, body = event, b""
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                assert head is not None
                requests.append(_parsed(head, body))
                head = None
                _respond_to(connection)
                if connection.our_state is h11.MUST_CLOSE:
                    return Verdict(requests, "whole")
                connection.start_next_cycle()
    except h11.RemoteProtocolError as error:
        return Verdict(requests, "refused", str(error))


def _respond_to(connection: h11.Connection) -> None:
    connection.send(h11.Response(status_code=200, headers=[("content-length", "0")]))
    connection.send(h11.EndOfMessage())


def _parsed(head: h11.Request, body: bytes) -> Parsed:
    fields: dict[bytes, bytes] = {}
    for name, value in head.headers:
        fields[name] = fields[name] + b", " + value if name in fields else value
    target = head.target
    if not target.startswith(b"/") and b"://" in target:
        rest = target.partition(b"://")[2]
        slash = min((at for at in (rest.find(b"/"), rest.find(b"?")) if at >= 0), default=len(rest))
        target, authority = rest[slash:], rest[:slash]
        if b"host" in fields:
            fields[b"host"] = authority.rpartition(b"@")[2]  # RFC 9112 section 3.2.2
        target = target if target.startswith(b"/") else b"/" + target
    path, _, query = target.partition(b"?")
    return Parsed(head.method.decode("ascii"), path.decode("latin-1"), query, fields, body)


def segmentations(data: bytes) -> Iterable[list[bytes]]:
    """Yield the bytes whole, split in two at every position, and byte by byte."""
    yield [data]
    for at in range(1, len(data)):
        yield [data[:at], data[at:]]
    yield [data[at : at + 1] for at in range(len(data))]
