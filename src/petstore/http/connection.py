"""A client's connection: requests in, answers out in the same order (RFC 9112)."""

import asyncio
import fcntl
import logging
import re
import struct
import termios
from http import HTTPStatus
from math import inf
from typing import Protocol, cast

from httptools import (
    HttpParserError,
    HttpParserInvalidMethodError,
    HttpParserInvalidURLError,
    HttpParserUpgrade,
    HttpRequestParser,
    parse_url,
)

from petstore.api.messages import Request, Respond, Response
from petstore.errors import (
    HeaderFieldsTooLarge,
    InvalidRequest,
    PetstoreError,
    Unimplemented,
    UriTooLong,
)
from petstore.http.exchange import Exchange
from petstore.http.known_requests import LONGEST, KnownRequests

_LOG = logging.getLogger(__name__)

MAX_HEAD = 16 * 1024
"""Bytes of a request's head, its request line included."""

MAX_TARGET = 8 * 1024
"""Bytes of a request's target."""

_MAX_FIELDS = 100
_MAX_UNREAD = 64 * 1024
_MAX_FRAMING = 4096  # bytes of a body in chunks that are not the body
_PIECE = 2048  # bytes of a body in chunks that are parsed in one turn, but for the rest of a chunk
_SMALL_BODY = 16 * 1024  # bytes that cost less to copy than to send on their own
_LAST_SECONDS = 0.2  # in which a client can take the last answer before a stop
_LINE_END = b"\r\n"
_BLANK_LINE = b"\r\n\r\n"
_BLANK = len(_BLANK_LINE)
_EMPTY_LINES = re.compile(rb"(?:\r\n)*")
_REFUSALS = (HTTPStatus.UNAUTHORIZED, HTTPStatus.TOO_MANY_REQUESTS)
_TCHAR = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]"  # RFC 9110 section 5.6.2
_REQUEST_LINE = re.compile(rb"(%b+) ([^ \r\n]+) HTTP/1\.([0-9])\r\n" % _TCHAR)
_CHUNK_SIZE = re.compile(rb"[0-9A-Fa-f]{1,16}(?![0-9A-Fa-f])")
_TOKEN_START = re.compile(_TCHAR)
_FRAMING_FIELDS = (b"content-length", b"transfer-encoding")
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_STATUS_LINES = {
    status.value: b"HTTP/1.1 %d %s" % (status, status.phrase.encode("ascii"))
    for status in HTTPStatus
}
_NO_REQUEST_LINE = "the request line: expected a method, a target and HTTP/1.1"
_ENDED_EARLY = "it ended early"
_BROKEN = "its framing is broken"
_TOO_MUCH_FRAMING = f"its chunks are too small: their framing has over {_MAX_FRAMING} bytes"
# Python 3.13 has these phrases of RFC 9110; 3.11 has those of RFC 7231.
_STATUS_LINES[413] = b"HTTP/1.1 413 Content Too Large"
_STATUS_LINES[414] = b"HTTP/1.1 414 URI Too Long"
_STATUS_LINES[422] = b"HTTP/1.1 422 Unprocessable Content"


class Peers(Protocol):
    """All connections of a server, as one of them sees them."""

    date: bytes
    """The field of an answer that tells the time (RFC 9110 section 6.6.1)."""

    known: KnownRequests

    buffer: memoryview
    """What was read last, of any connection."""

    waste: memoryview
    """Where to put what nobody looks at."""

    def connection_opened(self, connection: "Connection") -> None:
        """Note a new connection."""
        ...

    def connection_closed(self, connection: "Connection") -> None:
        """Note the end of a connection."""
        ...

    def await_turn(self, connection: "Connection") -> None:
        """Call its ``take_turn`` soon, after those that wait already."""
        ...

    def buffer_bytes(self, connection: "Connection", size: int) -> None:
        """Note how many bytes the connection buffers; at this moment it is not silent."""
        ...


class Connection(asyncio.BufferedProtocol):
    """One connection of a client.

    One request is under way at a time. What comes behind it stays ``_unparsed`` until it was
    answered, and then waits for its turn: so a pipeline costs other clients no more than a client
    that waits for each answer. A client that is new or was refused waits for its turn, too.

    llhttp parses a head once it is there, up to its blank line, and a body as it comes; it calls
    the methods ``on_…``. ``waiting_since``, by the clock of the loop, the connection waits for the
    client to send a head or to read answers.
    """

    __slots__ = (
        "_buffered",
        "_chunk_left",
        "_exchange",
        "_field_count",
        "_fields",
        "_framing",
        "_has_eof",
        "_is_ending",
        "_is_in_head",
        "_is_paused",
        "_is_stopping",
        "_is_whole",
        "_keeps_alive",
        "_length_left",
        "_loop",
        "_parser",
        "_peers",
        "_repeated",
        "_respond",
        "_searched",
        "_takes_turns",
        "_transport",
        "_unparsed",
        "_unsent",
        "awaits_turn",
        "client",
        "is_stalled",
        "waiting_since",
    )

    def __init__(self, respond: Respond, peers: Peers, client: str) -> None:
        self._respond = respond
        self._peers = peers
        self.client = client
        self._loop = asyncio.get_running_loop()
        self._renew_parser()
        self._exchange: Exchange | None = None  # without an answer yet
        self._unparsed = b""
        self._searched = 0  # bytes of it that hold no end of a head
        self._fields: dict[bytes, bytes] = {}
        self._repeated: set[bytes] = set()
        self._is_in_head = self._is_whole = self._keeps_alive = False
        self._length_left: int | None = 0  # of a body; None if it comes in chunks
        self._chunk_left = 0  # bytes of a chunk that was begun, its end of line included
        self._framing = self._field_count = 0
        self._buffered = 0
        self._unsent = 0  # bytes of answers, when we last looked
        self._has_eof = False  # nothing more comes
        self._is_ending = False  # nothing of what still comes is a request
        self._takes_turns = True  # it is new, or was refused
        self._is_paused = False  # we do not read what the client sends
        self._is_stopping = False  # the whole service stops
        self.is_stalled = False  # the client does not read its answers
        self.awaits_turn = False
        self.waiting_since = self._loop.time()

    # What the event loop tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Note who it is."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(0)
        self._peers.connection_opened(self)

    def get_buffer(self, _: int) -> memoryview:
        """Return where to put what is read next."""
        return self._peers.waste if self._is_ending else self._peers.buffer

    def buffer_updated(self, count: int) -> None:
        """Go on with what was read, unless it has to wait."""
        if self._is_ending:
            self._await_turn()
            self._regulate()
            return
        is_next = self._exchange is None and not self._unparsed
        self._unparsed += bytes(self._peers.buffer[:count])
        if is_next and self._takes_turns:
            self._await_turn()
        elif not self.awaits_turn:
            self._advance()
        exchange = self._exchange
        if self._unparsed or self._buffered or exchange is None or not exchange.is_whole:
            self._regulate()

    def eof_received(self) -> bool:
        """Return whether there is an answer to come; if not, the connection is closed."""
        self._has_eof = True
        self._end_at_eof()
        return self._exchange is not None or self.awaits_turn

    def connection_lost(self, _: Exception | None) -> None:
        """Let go of what was under way: nobody is there to be answered."""
        self._end_requests()
        self._exchange = None
        del self._parser  # it has references to us: without it nothing waits for the collector
        self._peers.connection_closed(self)

    def pause_writing(self) -> None:
        """Do no more for a client that does not read its answers."""
        self.is_stalled = True
        self._unsent = self._measure_unsent()
        self.waiting_since = self._loop.time()
        self._regulate()

    def resume_writing(self) -> None:
        """Go on, now that the client reads."""
        self.is_stalled = False
        self.waiting_since = inf if self._exchange is not None else self._loop.time()
        if self._exchange is None and self._unparsed:
            self._await_turn()
        self._regulate()

    # What the parser tells

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take in a field.

        Raises:
            HeaderFieldsTooLarge: there are too many.
        """
        if not self._is_in_head:
            return  # a field behind a body in chunks stands for nothing here
        name, value, fields = name.lower(), value.rstrip(b" \t"), self._fields
        if name in fields:
            self._repeated.add(name)
            fields[name] += b", " + value
        else:
            fields[name] = value
        self._field_count += 1
        if self._field_count > _MAX_FIELDS:
            msg = f"the head: expected at most {_MAX_FIELDS} fields"
            raise HeaderFieldsTooLarge(msg)

    def on_body(self, piece: bytes) -> None:
        """Take in a piece of a body."""
        assert self._exchange is not None  # noqa: S101 - we parse bodies of requests under way
        self._framing -= len(piece)
        self._exchange.add(piece)

    def on_message_complete(self) -> None:
        """Note the end of a request."""
        # What stands behind the chunks of a body may say, too, that this was the last request.
        self._keeps_alive = self._keeps_alive and self._parser.should_keep_alive()
        self._is_whole = True

    # What is done

    def take_turn(self) -> None:
        """Go on with what was read."""
        self.awaits_turn = False
        if self._transport.is_closing():
            return
        self._advance()
        if self._has_eof:
            self._end_at_eof()
        self._regulate()
        if self._has_eof and self._exchange is None and not self.awaits_turn:
            self._transport.close()

    def read_on(self) -> None:
        """Go on with a body, of which a part was taken."""
        if not (self.awaits_turn or self._transport.is_closing()):
            self._advance()
        self._regulate()

    def invite_body(self) -> None:
        """Tell the client to go on and send the body."""
        if not self._transport.is_closing():
            self._transport.write(_CONTINUE)

    def finish(self) -> None:
        """Close the connection now, or once what was read is answered."""
        self._is_stopping = True
        if self._exchange is None:
            self._advance()  # what waits for its turn has it now
        if self._exchange is not None:
            return
        if self._is_ending:
            self._close_once_read(inf)
        elif self.is_stalled:
            self._end()
        else:
            self._transport.close()

    def abort(self) -> None:
        """Close the connection at once."""
        self.waiting_since = inf
        self._transport.abort()

    def note_progress(self) -> None:
        """See whether a client that is behind with its answers has read any since the last time."""
        unsent = self._measure_unsent()
        if unsent < self._unsent:
            self.waiting_since = self._loop.time()
            self._peers.buffer_bytes(self, self._buffered)
        self._unsent = unsent

    def _advance(self) -> None:
        """Begin the next request, and take in its body as far as it is there."""
        exchange = self._exchange
        if exchange is None and self._unparsed and not (self._is_ending or self.is_stalled):
            exchange = self._begin_known() or self._parse_head()
        if exchange is not None and not exchange.is_whole:
            self._parse_body(exchange)

    def _begin_known(self) -> Exchange | None:
        """Begin the next request without parsing it, if it is known."""
        data = self._unparsed
        known = self._peers.known.find(data, self.client) if len(data) <= LONGEST else None
        if known is None:
            return None
        self._unparsed, self._searched = b"", 0
        exchange = Exchange(self, known, is_whole=True)
        self._begin(exchange)
        return exchange

    def _regulate(self) -> None:
        """Read more only if it can be used now, and tell how much is buffered."""
        if self._transport.is_closing():
            return
        is_full = self._is_full()
        if is_full is not self._is_paused:
            self._is_paused = is_full
            if is_full:
                self._transport.pause_reading()
            else:
                self._transport.resume_reading()
        exchange, buffered = self._exchange, len(self._unparsed)
        if exchange is not None and not exchange.is_whole:
            buffered += exchange.size
        if self.is_stalled:
            buffered += self._measure_unsent()
        if buffered or self._buffered:
            self._buffered = buffered
            self._peers.buffer_bytes(self, buffered)

    def _is_full(self) -> bool:
        if self._is_ending:
            return self.awaits_turn
        exchange = self._exchange
        if exchange is None or not exchange.is_whole:
            has_much = self.awaits_turn and len(self._unparsed) > MAX_HEAD
            is_behind = exchange is not None and exchange.unread > _MAX_UNREAD
            return self.is_stalled or has_much or is_behind
        return self.is_stalled or self._unparsed != b""

    def _await_turn(self) -> None:
        self.awaits_turn = True
        self._peers.await_turn(self)

    def _measure_unsent(self) -> int:
        """Return how many bytes of answers the client has not taken, the kernel's included.

        Without the kernel's, a client that reads slowly would seem to read nothing for a while.
        """
        number = self._transport.get_extra_info("socket").fileno()
        (in_kernel,) = struct.unpack("i", fcntl.ioctl(number, termios.TIOCOUTQ, b"\0" * 4))
        return int(in_kernel) + self._transport.get_write_buffer_size()

    def _parse_head(self) -> Exchange | None:
        """Begin the next request, if its head is there."""
        data = self._unparsed
        try:
            if data[0] in b"\r\n":
                data = _behind_empty_lines(data)
            end = data.find(_BLANK_LINE, self._searched) + _BLANK
            if end < _BLANK:
                self._unparsed = data
                self._check_beginning(data)
                return None
            self._unparsed, self._searched = data[end:], 0
            request = self._read_head(data[:end])
        except PetstoreError as error:
            self._refuse(error)
            return None
        exchange = Exchange(self, request, self._keeps_alive, self._awaits_invitation(request))
        self._begin(exchange)
        if self._is_whole:
            exchange.is_whole = True
            self._is_ending = not self._keeps_alive
            if end == len(data) <= LONGEST and request.method == "GET" and not self._is_ending:
                self._peers.known.note(data, request)
        return exchange

    def _awaits_invitation(self, request: Request) -> bool:
        expected = request.fields.get(b"expect")
        return (
            expected is not None
            and expected.lower() == b"100-continue"
            and request.version == "1.1"
        )

    def _check_beginning(self, data: bytes) -> None:
        """Refuse what cannot become a head any more, so that its sender need not wait.

        Raises:
            PetstoreError: it is too large, or no HTTP.
        """
        if data in (b"", b"\r"):
            return
        if not self._searched:
            self.waiting_since = self._loop.time()
        if not _TOKEN_START.match(data):
            raise InvalidRequest(_NO_REQUEST_LINE)
        if len(data) > MAX_HEAD:
            raise _too_large(data)
        new = data[self._searched :]
        if new.count(b"\n") > new.count(b"\r\n") + new.startswith(b"\n"):
            msg = "the head: expected lines that end with CR LF"
            raise InvalidRequest(msg)
        self._searched = max(1, len(data) - _BLANK + 1)

    def _read_head(self, head: bytes) -> Request:
        """Return the request that ``head`` begins.

        Raises:
            PetstoreError: it is refused.
        """
        if len(head) > MAX_HEAD:
            raise _too_large(head)
        line = _REQUEST_LINE.match(head)
        if line is None:
            raise InvalidRequest(_NO_REQUEST_LINE)
        method, target, minor = line.groups()
        if len(target) > MAX_TARGET:
            raise _too_large(head)
        if b"#" in target:
            msg = "the target: expected no fragment"
            raise InvalidRequest(msg)
        version = "1.0" if minor == b"0" else "1.1"  # a later one is treated as 1.1
        self._fields, self._repeated, self._field_count = {}, set(), 0
        self._is_whole, self._keeps_alive = False, version == "1.1"
        is_upgrade = self._feed_head(head)
        fields = self._fields
        has_body = not self._is_whole or (is_upgrade and any(f in fields for f in _FRAMING_FIELDS))
        if has_body:
            self._expect_body(version)
            if is_upgrade:
                self._decline_upgrade()
        path, query = _path_and_query(target)
        return Request(
            method.decode("ascii"), path, query, self.client, fields, self._repeated, version
        )

    def _feed_head(self, head: bytes) -> bool:
        """Have a head parsed; return whether it offers to go on with another protocol.

        Raises:
            PetstoreError: it is refused.
        """
        self._is_in_head = True
        try:
            self._parser.feed_data(head)
        except HttpParserUpgrade:
            self._renew_parser()
            return True
        except HttpParserInvalidMethodError:
            msg = "the method: expected one of HTTP, such as GET"
            raise Unimplemented(msg) from None
        except HttpParserError as error:
            if isinstance(error.__context__, PetstoreError):
                raise error.__context__ from None
            msg = f"the head: expected that of an HTTP/1.1 request; {error}"
            raise InvalidRequest(msg) from None
        finally:
            self._is_in_head = False
        return False

    def _expect_body(self, version: str) -> None:
        """Prepare for a body (RFC 9112 section 6).

        Raises:
            InvalidRequest: where it ends cannot be told.
            Unimplemented: it is coded in another way than in chunks.
        """
        coding = self._fields.get(b"transfer-encoding")
        length = self._fields.get(b"content-length")
        if coding is None and length is not None and length.isdigit():
            self._length_left = int(length)
            return
        codings = [one.strip() for one in (coding or b"").lower().split(b",")]
        if version != "1.1" or codings[-1] != b"chunked" or length is not None:
            msg = "the body: expected a Content-Length, or chunks as the last transfer coding"
            raise InvalidRequest(msg)
        if len(codings) > 1:
            msg = "Transfer-Encoding: expected chunked and nothing else"
            raise Unimplemented(msg)
        self._length_left = None
        self._chunk_left = self._framing = 0

    def _decline_upgrade(self) -> None:
        """Go on with HTTP/1.1 (RFC 9110 section 7.8).

        The parser would take the body for the other protocol. So another one is told of it, by a
        head such as ``POST / HTTP/1.1`` with ``content-length: 5`` alone.
        """
        self._is_whole = False
        framing = (name for name in _FRAMING_FIELDS if name in self._fields)
        lines = b"".join(b"%b: %b\r\n" % (name, self._fields[name]) for name in framing)
        self._parser.feed_data(b"POST / HTTP/1.1\r\n%b\r\n" % lines)

    def _parse_body(self, exchange: Exchange) -> None:
        """Take in what was read of a body, of one in chunks as much as is parsed in a turn."""
        if self._is_ending or exchange.unread > _MAX_UNREAD:
            return
        try:
            self._feed_body()
        except HttpParserError:
            self._end_requests(_BROKEN)
            return
        except InvalidRequest as error:
            self._end_requests(error.message)
            return
        if self._is_whole:
            exchange.keeps_alive = self._keeps_alive
            self._is_ending = not self._keeps_alive
            exchange.complete()

    def _feed_body(self) -> None:
        """Have the parser read on in a body.

        Raises:
            HttpParserError: its framing is broken.
            InvalidRequest: so it is, or there is too much of it.
        """
        is_in_chunks = self._length_left is None
        piece = self._next_chunks() if is_in_chunks else self._unparsed[: self._length_left]
        if not piece:
            return
        self._unparsed = self._unparsed[len(piece) :]
        if self._length_left is not None:
            self._length_left -= len(piece)
        self._framing += len(piece)
        self._parser.feed_data(piece)
        if is_in_chunks and self._framing > _MAX_FRAMING:
            raise InvalidRequest(_TOO_MUCH_FRAMING)
        if is_in_chunks and self._unparsed and not self._is_whole:
            self._await_turn()

    def _next_chunks(self) -> bytes:
        """Return what to parse next of a body in chunks, and nothing of what is behind it.

        Size lines and trailers are parsed once they are whole.

        Raises:
            InvalidRequest: there is no size where one is due, or what is not whole is too long.
        """
        data, end = self._unparsed, self._chunk_left
        while end < min(len(data), _PIECE):
            begun, size = end, _CHUNK_SIZE.match(data, end)
            line_end = data.find(_LINE_END, end)
            if line_end < 0:
                break
            if size is None:
                raise InvalidRequest(_BROKEN)
            length = int(size[0], 16)
            if not length:
                end = data.find(_BLANK_LINE, line_end) + _BLANK
                end = begun if end < _BLANK else end
                break
            end = line_end + length + 2 * len(_LINE_END)
        if not end and len(data) > _MAX_FRAMING:
            raise InvalidRequest(_TOO_MUCH_FRAMING)
        self._chunk_left = max(0, end - len(data))
        return data[:end]

    def _renew_parser(self) -> None:
        self._parser = HttpRequestParser(self)
        self._parser.set_dangerous_leniencies(lenient_version=True)  # the request line is ours

    def _refuse(self, error: PetstoreError) -> None:
        """Have what is no request answered, and take nothing more."""
        self._is_ending = True
        self._unparsed = b""
        request = Request("-", "-", b"", self.client, {}, set())
        request.refusal = error.with_traceback(None)  # it would keep all that was read
        self._begin(Exchange(self, request, keeps_alive=False, is_whole=True))

    def _end_at_eof(self) -> None:
        """End what the client will not complete, once all that was read is parsed."""
        exchange = self._exchange
        if not (self.awaits_turn or (exchange is not None and exchange.is_whole)):
            self._end_requests()

    def _end_requests(self, reason: str = _ENDED_EARLY) -> None:
        self._is_ending = True
        self._unparsed = b""
        if self._exchange is not None:
            self._exchange.cut_off(reason)

    def _begin(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self.waiting_since = inf
        exchange.task = self._loop.create_task(self._serve(exchange))

    async def _serve(self, exchange: Exchange) -> None:
        try:
            answer = await self._respond(exchange.request, exchange.receive)
        except Exception:  # noqa: BLE001 - the application should have answered
            _LOG.exception("a request has no answer")
            self._transport.abort()
            return
        if self._transport.is_closing():
            return
        self._exchange = None
        can_stay = exchange.keeps_alive and exchange.is_whole and not self._is_ending
        has_all = self._has_eof and not self._unparsed
        is_last = answer.is_last or self._is_stopping or has_all or not can_stay
        self._takes_turns = answer.status in _REFUSALS
        self._write(answer, is_last=is_last)
        if is_last:
            self._end()
        elif not self.is_stalled:
            self.waiting_since = self._loop.time()
            if self._unparsed:
                self._await_turn()
        if self._is_paused or self._buffered:
            self._regulate()

    def _write(self, answer: Response, *, is_last: bool) -> None:
        lines = [_STATUS_LINES[answer.status], self._peers.date, *answer.headers]
        if is_last:
            lines.append(b"connection: close")
        if len(answer.body) <= _SMALL_BODY:
            self._transport.write(b"\r\n".join((*lines, b"", answer.body)))
        else:
            self._transport.writelines((b"\r\n".join((*lines, b"", b"")), answer.body))

    def _end(self) -> None:
        """Send no more, and close once the client does: what is unread would cut off the answer."""
        self._end_requests()
        self._unsent = self._measure_unsent()
        self.waiting_since = self._loop.time()
        if self._has_eof:
            self._transport.close()
        else:
            self._transport.write_eof()
            if self._is_stopping:
                self._close_once_read(inf)

    def _close_once_read(self, before: float) -> None:
        """Close when the client takes no more of what it was sent; ``before`` it was so much."""
        if self._transport.is_closing():
            return
        unsent = self._measure_unsent()
        if unsent < before:
            self._loop.call_later(_LAST_SECONDS, self._close_once_read, unsent)
        else:
            self._transport.close()


def _behind_empty_lines(data: bytes) -> bytes:
    """Return what follows the empty lines that may precede a request (RFC 9112 section 2.2).

    Raises:
        InvalidRequest: a CR or an LF stands alone.
    """
    rest = _EMPTY_LINES.sub(b"", data, 1)
    if rest[:1] in (b"\r", b"\n") and rest != b"\r":
        raise InvalidRequest(_NO_REQUEST_LINE)
    return rest


def _too_large(head: bytes) -> PetstoreError:
    """Return what refuses a head that is too large as a whole, or has too large a target."""
    line = head.partition(b"\r\n")[0]
    if len(line) > MAX_TARGET:
        return UriTooLong(f"the target: expected at most {MAX_TARGET} bytes")
    return HeaderFieldsTooLarge(f"the head: expected at most {MAX_HEAD} bytes")


def _path_and_query(target: bytes) -> tuple[str, bytes]:
    """Return the path and the query of a target.

    Raises:
        InvalidRequest: it is absolute (RFC 9112 section 3.2.2), and no URL.
    """
    if not target.startswith(b"/") and b"://" in target:
        try:
            url = parse_url(target)
        except HttpParserInvalidURLError:
            msg = "the target: expected a path or a URL"
            raise InvalidRequest(msg) from None
        path, query = url.path or b"/", url.query or b""
    else:
        path, _, query = target.partition(b"?")
    return path.decode("latin-1"), query
