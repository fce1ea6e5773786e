"""A caller's connection: requests in, answers out in the same order (RFC 9112)."""

import asyncio
import logging
from collections import deque
from http import HTTPStatus
from math import inf
from typing import Protocol, cast

from httptools import (
    HttpParserError,
    HttpParserUpgrade,
    HttpRequestParser,
    parse_url,
)

from petstore.api.messages import Answer, Request, Respond
from petstore.http.exchange import Exchange
from petstore.http.known_requests import LONGEST, KnownRequests

_LOG = logging.getLogger(__name__)

LARGEST_HEAD = 64 * 1024
"""Bytes of a request's head that are read before it is refused."""

_MOST_FIELDS = 100
_LARGEST_UNREAD = 64 * 1024
_LARGEST_FRAMING = LARGEST_HEAD + 64 * 1024  # its head may have come with it
_FRAMING_OF_A_BYTE = 6  # in a chunk of its own: itself, its length, two ends of lines
_LAST_SECONDS = 0.2  # in which a caller can take the last answer before a stop
_BAD_REQUEST = HTTPStatus.BAD_REQUEST
_FRAMING_FIELDS = (b"content-length", b"transfer-encoding")
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_STATUS_LINES = {
    status.value: b"HTTP/1.1 %d %s" % (status, status.phrase.encode("ascii"))
    for status in HTTPStatus
}


class Callers(Protocol):
    """All who are connected, as one of the connections sees them."""

    date: bytes
    """The field of an answer that tells the time (RFC 9110 section 6.6.1)."""

    known: KnownRequests

    def came(self, connection: "Connection") -> None:
        """Note a new connection."""
        ...

    def went(self, connection: "Connection") -> None:
        """Note the end of a connection."""
        ...


class Refused(Exception):
    """A message that is refused with a status, whoever sent it."""

    def __init__(self, status: HTTPStatus = _BAD_REQUEST) -> None:
        super().__init__(status)
        self.status = status


class Connection(asyncio.Protocol):
    """One connection of a caller.

    llhttp parses what comes, and calls the methods ``on_…`` with it. The oldest request without an
    answer is under way; those that came right behind it wait, and nothing is read meanwhile.
    ``waits_since``, by the clock of the loop, it waits for the caller to send a head or to read
    answers; ``give_up`` is for whoever takes too long.
    """

    __slots__ = (
        "_callers",
        "_client",
        "_coming",
        "_count",
        "_fields",
        "_framing_size",
        "_has_eof",
        "_head_size",
        "_is_ending",
        "_is_in_head",
        "_is_leaving",
        "_is_paused",
        "_is_stalled",
        "_known",
        "_latest",
        "_loop",
        "_parser",
        "_refusal",
        "_repeated",
        "_respond",
        "_room_for_fields",
        "_target",
        "_transport",
        "_unanswered",
        "_unsent",
        "waits_since",
    )

    def __init__(self, respond: Respond, callers: Callers, client: str) -> None:
        self._respond = respond
        self._callers = callers
        self._client = client
        self._loop = asyncio.get_running_loop()
        self._known = callers.known
        self._parser = HttpRequestParser(self)
        self._unanswered: deque[Exchange] = deque()
        self._coming: Exchange | None = None
        self._refusal: HTTPStatus | None = None
        self._count = 0  # of requests that are whole
        self._latest: Request | None = None  # that is whole, if it is a GET without a body
        self._unsent = 0  # bytes of answers, when we last looked
        self._has_eof = False  # nothing more comes
        self._is_ending = False  # nothing of what still comes is a request
        self._is_stalled = False  # the caller does not read its answers
        self._is_paused = False  # we do not read what it sends
        self._is_leaving = False  # the whole service stops
        self.waits_since = self._loop.time()
        self.on_message_begin()
        self._is_in_head = False

    # What the event loop tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Note who it is."""
        self._transport = cast("asyncio.Transport", transport)
        self._callers.came(self)

    def data_received(self, data: bytes) -> None:
        """Parse what came, unless it came before."""
        if len(data) > LONGEST or self._is_in_head or self._is_ending or self._coming:
            for start in range(0, len(data), LARGEST_HEAD):
                self._feed(data[start : start + LARGEST_HEAD])
        else:
            known = self._known.find(data, self._client)
            if known is not None:
                self._queue(Exchange(self, known, is_whole=True))
            else:
                self._feed_and_note(data)
        if len(self._unanswered) > 1 or self._coming:
            self.read_on()

    def eof_received(self) -> bool:
        """Return whether there is an answer to come; if not, the connection is closed."""
        self._has_eof = True
        self._end_requests()
        return bool(self._unanswered)

    def connection_lost(self, _: Exception | None) -> None:
        """Let go of what was under way: nobody is there to be answered."""
        self._end_requests()
        self._callers.went(self)

    def pause_writing(self) -> None:
        """Do no more for a caller who does not read its answers."""
        self._is_stalled = True
        self._await_reader()
        self.read_on()

    def resume_writing(self) -> None:
        """Go on, now that the caller reads."""
        self._is_stalled = False
        self._go_on()
        self.read_on()

    # What the parser tells

    def on_message_begin(self) -> None:
        """Begin a request."""
        self._target = b""
        self._fields: dict[bytes, bytes] = {}
        self._repeated: set[bytes] = set()
        self._room_for_fields = _MOST_FIELDS
        self._head_size = self._framing_size = 0
        self._is_in_head = True

    def on_url(self, piece: bytes) -> None:
        """Take in a piece of its target."""
        self._target += piece

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take in a field.

        Raises:
            Refused: there are too many.
        """
        if not self._is_in_head:
            return  # a field behind a body in chunks stands for nothing here
        name, value, fields = name.lower(), value.rstrip(b" \t"), self._fields
        if name in fields:
            self._repeated.add(name)
            fields[name] += b", " + value
            self._room_for_fields -= 1
        else:
            fields[name] = value
        if len(fields) > self._room_for_fields:
            raise Refused(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)

    def on_headers_complete(self) -> None:
        """Have the request answered, or queued.

        Raises:
            Refused: its head is none that is taken.
        """
        self._is_in_head = False
        if self._coming is not None:
            return  # an upgrade was declined
        fields, version = self._fields, self._parser.get_http_version()
        self._check_head(version)
        is_newest = version == "1.1"
        path, query = _path_and_query(self._target)
        method = self._parser.get_method().decode("ascii")
        request = Request(method, path, query, self._client, fields, self._repeated, version)
        expects = is_newest and fields.get(b"expect", b"").lower() == b"100-continue"
        stays = is_newest and self._parser.should_keep_alive()
        self._coming = Exchange(self, request, keeps_alive=stays, awaits_invitation=expects)
        self._queue(self._coming)

    def on_body(self, piece: bytes) -> None:
        """Take in a piece of a body."""
        assert self._coming is not None  # noqa: S101 - the parser tells of heads first
        self._framing_size -= len(piece) * _FRAMING_OF_A_BYTE
        self._coming.add(piece)

    def on_message_complete(self) -> None:
        """End a request."""
        if self._parser.should_upgrade():
            return  # its body is still to come
        assert self._coming is not None  # noqa: S101 - the parser tells of heads first
        self._count += 1
        # Also what stands behind the chunks of a body may say that this was the last request.
        self._coming.keeps_alive &= self._parser.should_keep_alive()
        asked = self._coming.request
        self._latest = asked if asked.method == "GET" and asked.body == "none" else None
        self._coming.complete()
        self._is_ending = not self._coming.keeps_alive
        self._coming = None

    # What is done

    def read_on(self) -> None:
        """Read more of the connection if there is room for it, and else not."""
        coming = self._coming
        is_full = (
            self._is_stalled
            or len(self._unanswered) > 1
            or (coming is not None and coming.unread > _LARGEST_UNREAD)
        )
        if is_full is not self._is_paused and not self._transport.is_closing():
            self._is_paused = is_full
            if is_full:
                self._transport.pause_reading()
            else:
                self._transport.resume_reading()

    def invite_body(self) -> None:
        """Tell the caller to go on and send the body."""
        if not self._transport.is_closing():
            self._transport.write(_CONTINUE)

    def finish(self) -> None:
        """Close the connection now, or once what is under way was answered."""
        self._is_leaving = True
        if not self._unanswered:
            self._transport.close()

    def give_up(self) -> None:
        """Close the connection at once, unless answers are being read."""
        unsent = self._transport.get_write_buffer_size()
        if 0 < unsent < self._unsent:
            self._await_reader()
        else:
            self.waits_since = inf
            self._transport.abort()

    def _await_reader(self) -> None:
        self._unsent = self._transport.get_write_buffer_size()
        self.waits_since = self._loop.time()

    def _feed_and_note(self, data: bytes) -> None:
        """Parse ``data``, and if it is one whole GET without a body, have that known.

        Between two requests the parser is in the same state each time.
        """
        before = self._count
        self._feed(data)
        latest = self._latest
        is_open = self._is_in_head or self._is_ending or self._coming is not None
        if latest is not None and self._count == before + 1 and not is_open:
            self._known.note(data, latest)

    def _feed(self, data: bytes) -> None:
        if self._is_ending:
            return
        self._parse(data)
        if self._is_in_head:
            # In the data that has its beginning, the most may be other requests before it.
            self._head_size += len(data) if self._head_size else 1
            if self._head_size > LARGEST_HEAD:
                self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        elif self._coming is not None:
            self._framing_size += len(data)
            if self._framing_size > _LARGEST_FRAMING:
                self._refuse()

    def _parse(self, data: bytes) -> None:
        while True:
            try:
                self._parser.feed_data(data)
            except HttpParserUpgrade as upgrade:
                data = self._decline_upgrade(data[upgrade.args[0] :])
            except HttpParserError as error:
                refused = error.__context__
                self._refuse(refused.status if isinstance(refused, Refused) else _BAD_REQUEST)
                return
            else:
                return

    def _decline_upgrade(self, rest: bytes) -> bytes:
        """Return what to parse instead of ``rest``, to go on with HTTP/1.1 (RFC 9110 section 7.8).

        The parser would take it for the other protocol: it has to be told of the body once more.
        """
        self._parser = HttpRequestParser(self)
        framing = (name for name in _FRAMING_FIELDS if name in self._fields)
        lines = b"".join(b"%b: %b\r\n" % (name, self._fields[name]) for name in framing)
        return b"POST / HTTP/1.1\r\n%b\r\n%b" % (lines, rest)

    def _check_head(self, version: str) -> None:
        """Refuse what the parser lets pass.

        Raises:
            Refused: it is no request of HTTP/1.1 or HTTP/1.0, or too large.
        """
        coding = self._fields.get(b"transfer-encoding")
        is_newest = version == "1.1"
        if (
            not (is_newest or version == "1.0")
            or (coding is not None and not (is_newest and coding.lower() == b"chunked"))
            or b"#" in self._target
        ):
            raise Refused
        if self._head_size:  # it came in pieces, and may be as large as two of them
            lines = sum(len(name) + len(value) + 4 for name, value in self._fields.items())
            if len(self._target) + lines > LARGEST_HEAD:
                raise Refused(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)

    def _refuse(self, status: HTTPStatus = _BAD_REQUEST) -> None:
        """Take nothing more for a request: what came is none, or no body."""
        if self._is_ending:
            return
        if self._coming is None:
            self._refusal = status
        self._end_requests()
        self._go_on()

    def _end_requests(self) -> None:
        self._is_ending = True
        self._is_in_head = False
        if self._coming is not None:
            self._coming.cut_off()
            self._coming = None

    def _queue(self, exchange: Exchange) -> None:
        self._unanswered.append(exchange)
        if len(self._unanswered) == 1:
            self._go_on()

    def _go_on(self) -> None:
        """Do what is next, if its time has come."""
        if self._unanswered:
            exchange = self._unanswered[0]
            if not self._is_stalled:
                self.waits_since = inf
                if exchange.task is None:
                    exchange.task = self._loop.create_task(self._serve(exchange))
        elif self._refusal is not None:
            status, self._refusal = self._refusal, None
            self._transport.write(
                b"%b\r\n%b\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
                % (_STATUS_LINES[status], self._callers.date)
            )
            self._end()
        elif self._is_ending:
            self._end()
        else:
            self.waits_since = self._loop.time()

    async def _serve(self, exchange: Exchange) -> None:
        try:
            answer = await self._respond(exchange.request, exchange.receive)
        except Exception:  # noqa: BLE001 - the application should have answered
            _LOG.exception("a request has no answer")
            self._transport.abort()
            return
        if self._transport.is_closing():
            return
        self._unanswered.popleft()
        can_stay = exchange.keeps_alive and exchange.is_whole and not self._is_leaving
        is_last = answer.is_last or not can_stay
        self._write(answer, is_last=is_last)
        if is_last:
            self._unanswered.clear()
            self._end()
        else:
            self._go_on()
        if self._is_paused:
            self.read_on()

    def _write(self, answer: Answer, *, is_last: bool) -> None:
        lines = [_STATUS_LINES[answer.status], self._callers.date, *answer.headers]
        if is_last:
            lines.append(b"connection: close")
        self._transport.write(b"\r\n".join((*lines, b"", answer.body)))

    def _end(self) -> None:
        """Send no more, and close once the caller does: what is unread would cut off the answer."""
        self._end_requests()
        self._await_reader()
        if self._has_eof:
            self._transport.close()
        else:
            self._transport.write_eof()
            if self._is_leaving:
                self._loop.call_later(_LAST_SECONDS, self._transport.close)


def _path_and_query(target: bytes) -> tuple[str, bytes]:
    if not target.startswith(b"/") and b"://" in target:  # RFC 9112 section 3.2.2
        url = parse_url(target)
        path, query = url.path or b"/", url.query or b""
    else:
        path, _, query = target.partition(b"?")
    return path.decode("latin-1"), query
