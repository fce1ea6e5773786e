"""A client's connection: it takes requests and sends their responses, in order (RFC 9112)."""

import asyncio
import fcntl
import logging
import re
import struct
import termios
from collections import Counter
from collections.abc import Callable, Hashable
from enum import Enum, auto
from functools import partial
from http import HTTPStatus
from io import BytesIO
from math import inf
from typing import IO, cast

from msgspec.structs import replace

from petstore.http.messages import Overload, Receive, Refusal, Request, Respond, Response
from petstore.http.parser import MAX_HEAD, RequestParser
from petstore.time_slices import Rounds

_LOG = logging.getLogger(__name__)

_MAX_UNREAD = 64 * 1024  # bytes of a body that the application has not taken
_LARGE_BODY = 64 * 1024  # bytes that a client gets in pieces, as it does a file
_REJECTIONS = (HTTPStatus.UNAUTHORIZED, HTTPStatus.TOO_MANY_REQUESTS)
_READ_AT_ONCE = 16 * 1024
_SENT_AT_ONCE = 16  # responses
_IN_A_ROUND = 16  # connections that wait for their turn
_IGNORED_AT_ONCE = 256 * 1024
_ENDED_EARLY = partial(ConnectionError, "it ended early")
_ORIGIN = re.compile(rb"\r\norigin:[ \t]*+([!-~]+)[ \t]*+\r\n", re.IGNORECASE)
_NO_MEMORY = "unfinished requests and unread responses take up all of --buffer-bytes"


class Input(Enum):
    """What the bytes are that a client sends next."""

    HEAD = auto()  # the next request
    BODY = auto()  # the body of the request in progress
    PIPELINED = auto()  # a further request, which waits until the one in progress has its response
    IGNORED = auto()  # nothing: the last request has arrived, or the client sent something else


_HEAD, _BODY, _PIPELINED, _IGNORED = Input  # Python 3.11 looks members up slowly


class Shared:
    def __init__(self, max_buffered: int) -> None:
        self.connections: set[Connection] = set()
        self._loop = asyncio.get_running_loop()
        self.turns = Rounds(self._loop, _IN_A_ROUND)
        self.budget = BufferBudget(max_buffered)
        self.buffer = memoryview(bytearray(_READ_AT_ONCE))  # what one connection has just read
        self.waste = memoryview(bytearray(_IGNORED_AT_ONCE))  # input that is ignored
        self.date = b""  # the Date field of a response (RFC 9110 section 6.6.1)
        self.is_stopping = False  # each connection closes after the response in progress
        self.unanswered = 0  # requests in progress
        self._ready: list[tuple[Connection, Response]] = []

    def send(self, connection: "Connection", response: Response) -> None:
        """Send the responses of one turn of the event loop together.

        To wake the client is a good part of a write. The first one wakes it for all.
        """
        ready = self._ready
        ready.append((connection, response))
        if not self.unanswered or len(ready) == _SENT_AT_ONCE:
            self._send_ready()
        elif len(ready) == 1:
            self._loop.call_soon(self._send_ready)

    def _send_ready(self) -> None:
        ready, self._ready = self._ready, []
        for connection, response in ready:
            try:
                connection.send(response)
            except Exception:  # noqa: BLE001 - the other clients get theirs
                connection.fail()


class Connection(asyncio.BufferedProtocol):
    """One connection of a client.

    It has one request in progress at a time. Further requests stay unparsed until the response is
    sent, and then wait for their turn: so a pipeline costs other clients no more than a client
    that waits for each response. New clients and rejected ones wait for their turn too.

    Since ``waiting_since``, by the loop's clock, the connection waits for the client to send a head
    or to read responses.
    """

    def __init__(
        self,
        respond: Respond,
        shared: Shared,
        client: str,
        on_closed: Callable[[], None],
        owner: Hashable = None,
    ) -> None:
        self._respond = respond
        self._shared = shared
        self._on_closed = on_closed
        self.client = client
        self._owner = owner
        self._loop = asyncio.get_running_loop()
        self._parser = RequestParser(client)
        self._input = _HEAD
        self._request: Request | None = None  # in progress: it has no response yet
        self._body: RequestBody | None = None
        self._task: asyncio.Task[None] | None = None  # the loop itself has only a weak reference
        self._buffered = 0  # bytes, as the budget knows them
        self._sending = 0  # bytes of the body that is sent in pieces, if it is this client's alone
        self._has_eof = False
        self._takes_turns = True  # the client is new, or was rejected
        self._is_paused = False  # we do not read what the client sends
        self.awaits_turn = False
        self.waiting_since = self._loop.time()

    # Called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._writer = ResponseWriter(self._transport)
        self._shared.connections.add(self)

    def get_buffer(self, _: int) -> memoryview:
        return self._shared.waste if self._input is _IGNORED else self._shared.buffer

    def buffer_updated(self, count: int) -> None:
        if self._input is _IGNORED:
            self._await_turn()
            self._regulate()
            return
        parser = self._parser
        is_first = self._input is _HEAD and not parser.unparsed
        parser.unparsed += bytes(self._shared.buffer[:count])
        if is_first and self._takes_turns:
            self._await_turn()
        elif not self.awaits_turn:
            self._advance()
        if parser.unparsed or self._buffered or self._input is not _PIPELINED:
            self._regulate()

    def eof_received(self) -> bool:
        """A client that ends its side during a long poll has left, like most who do so."""
        self._has_eof = True
        self._end_at_eof()
        if self._request is not None and self._request.on_lost is not None:
            return False
        return self._request is not None or self.awaits_turn

    def connection_lost(self, _: Exception | None) -> None:
        """Drop the request in progress: no client waits for its response."""
        self._ignore_input()
        if self._request is not None and self._request.on_lost is not None:
            self._request.on_lost()
        self._request = self._body = None
        self._writer.go_on()
        self._shared.connections.discard(self)
        self._shared.budget.note(self, 0)
        self._on_closed()

    def pause_writing(self) -> None:
        """Begin no more requests of a client that does not read its responses."""
        self._writer.stall()
        self.waiting_since = self._loop.time()
        self._regulate()

    def resume_writing(self) -> None:
        self._writer.resume()
        self.waiting_since = inf if self._request is not None else self._loop.time()
        if self._request is None and self._parser.unparsed:
            self._await_turn()
        self._regulate()

    # Called by the server

    @property
    def owner(self) -> Hashable:
        """Who is charged for what is buffered: the address of the client, if it is not shared."""
        return self if self._owner is None else self._owner

    @property
    def is_stalled(self) -> bool:
        return self._writer.is_stalled

    def resume(self) -> None:
        self.awaits_turn = False
        if self._transport.is_closing():
            return
        self._advance()
        if self._has_eof:
            self._end_at_eof()
        self._regulate()
        if self._has_eof and self._request is None and not self.awaits_turn:
            self._transport.close()

    def finish(self) -> None:
        """Close the connection, if need be after the response to what was read."""
        if self._request is None:
            self._advance()  # what waits for its turn has it now
        if self._request is not None:
            return
        if self._input is _IGNORED:
            self._writer.close_once_read()
        elif self._writer.is_stalled:
            self._end()
        else:
            self._transport.close()

    def abort(self) -> None:
        self.waiting_since = inf
        self._transport.abort()

    def give_up(self) -> None:
        """Drop what is buffered, if possible with a response that says so."""
        self._buffered = 0
        if self._writer.is_stalled or (self._input is _IGNORED and not self._sending):
            self.abort()
        elif self._input is _HEAD:
            self._refuse(Refusal(503, _NO_MEMORY))
        elif self._input is not _IGNORED:  # else the client reads, and counts again if it stops
            is_incomplete = self._input is _BODY
            self._ignore_input(partial(Overload, _NO_MEMORY))
            if self._body is not None and is_incomplete:
                self._body.drop()

    def note_progress(self) -> None:
        """Restart the timeout of a stalled client that has read something since the last call."""
        if self._writer.has_progressed():
            self.waiting_since = self._loop.time()
            self._shared.budget.note(self, self._buffered)

    # Input

    def _advance(self) -> None:
        if self._input is _BODY:
            self._read_body()
        elif self._input is _HEAD and self._parser.unparsed and not self._writer.is_stalled:
            try:
                self._begin_next()
            except Refusal as refusal:
                self._refuse(refusal.with_traceback(None))  # it would keep all that was read

    def _begin_next(self) -> None:
        parser = self._parser
        request = parser.next_request()
        if request is None:
            if parser.head_begins:
                self.waiting_since = self._loop.time()
        elif parser.is_whole:
            self._begin(request, receive_nothing)
            self._end_request()
        else:
            self._body = RequestBody(request, self._writer.write_continue, self._read_on)
            self._input = _BODY
            self._begin(request, self._body.receive)
            self._read_body()

    def _begin(self, request: Request, receive: Receive) -> None:
        self._request = request
        self.waiting_since = inf
        self._shared.unanswered += 1
        self._task = self._loop.create_task(self._serve(request, receive))

    def _refuse(self, refusal: Refusal) -> None:
        """Read nothing more. With its ``Origin``, if it arrived, the page can read the response."""
        origin = _ORIGIN.search(self._parser.unparsed)
        fields = {} if origin is None else {b"origin": origin[1]}
        self._ignore_input()
        request = Request("-", "-", b"", self.client, fields, refusal=refusal)
        self._begin(request, receive_nothing)

    def _read_body(self) -> None:
        body, parser = self._body, self._parser
        if body is None or body.unread > _MAX_UNREAD:
            return
        before = len(parser.unparsed)
        try:
            piece = parser.next_piece()
        except Refusal as refusal:
            self._ignore_input(partial(ConnectionError, refusal.message))
            return
        if piece or parser.is_whole:
            body.add(piece, is_last=parser.is_whole)
        if parser.is_whole:
            self._end_request()
        elif 0 < len(parser.unparsed) < before:
            self._await_turn()

    def _read_on(self) -> None:
        if not (self.awaits_turn or self._transport.is_closing()):
            self._advance()
        self._regulate()

    def _end_request(self) -> None:
        if self._parser.keeps_alive:
            self._input = _PIPELINED
        else:
            self._ignore_input()

    def _end_at_eof(self) -> None:
        """End what the client will not complete, once all that was read is parsed."""
        if not (self.awaits_turn or self._input is _PIPELINED):
            self._ignore_input()

    def _ignore_input(self, fault: Callable[[], ConnectionError] = _ENDED_EARLY) -> None:
        self._input = _IGNORED
        self._parser.unparsed = b""
        if self._body is not None:
            self._body.cut_off(fault)

    def _await_turn(self) -> None:
        self.awaits_turn = True
        self._shared.turns.add(self.resume)

    def _regulate(self) -> None:
        """Read more only if it can be used now, and note how much is buffered."""
        if self._transport.is_closing():
            return
        is_full = self._is_full()
        if is_full is not self._is_paused:
            self._is_paused = is_full
            if is_full:
                self._transport.pause_reading()
            else:
                self._transport.resume_reading()
        buffered = len(self._parser.unparsed)
        if self._body is not None and self._input is _BODY:
            buffered += self._body.held
        buffered += self._sending
        if self._writer.is_stalled:
            buffered += self._writer.measure_unsent()
        if buffered or self._buffered:
            self._buffered = buffered
            self._shared.budget.note(self, buffered)

    def _is_full(self) -> bool:
        if self._input is _IGNORED:
            return self.awaits_turn
        unparsed = self._parser.unparsed
        if self._input is _PIPELINED:
            return self._writer.is_stalled or unparsed != b""
        has_much = self.awaits_turn and len(unparsed) >= MAX_HEAD
        is_behind = self._body is not None and self._body.unread > _MAX_UNREAD
        return self._writer.is_stalled or has_much or is_behind

    # Output

    async def _serve(self, request: Request, receive: Receive) -> None:
        try:
            response = await self._respond(request, receive)
            if len(response.body) > _LARGE_BODY:
                response = self._in_pieces(response)
            if response.file is not None:
                await self._send_file(response, response.file)
                self._sending = 0
        except Exception:  # noqa: BLE001 - the application should have responded
            self.fail()
            return
        finally:
            self._shared.unanswered -= 1
        self._shared.send(self, response)

    def fail(self) -> None:
        _LOG.exception("a response was not sent")
        self._transport.abort()

    def send(self, response: Response) -> None:
        """Send a response, of which a file is sent already, and be ready for the next request."""
        if self._transport.is_closing():
            return
        self._request = self._body = None
        is_last = self._is_last(response)
        self._takes_turns = response.status in _REJECTIONS
        if response.file is None:
            self._writer.write(response, self._shared.date, is_last=is_last)
        if is_last:
            self._end()
        else:
            self._input = _HEAD
            if not self._writer.is_stalled:
                self.waiting_since = self._loop.time()
                if self._parser.unparsed:
                    self._await_turn()
        if self._is_paused or self._buffered:
            self._regulate()

    def _in_pieces(self, response: Response) -> Response:
        """Return a response whose large body is a file, and note what that holds in memory."""
        if not response.is_shared:
            self._sending = min(len(response.body), self._shared.budget.largest)
        return replace(response, body=b"", file=BytesIO(response.body))

    def _is_last(self, response: Response) -> bool:
        has_all = self._has_eof and not self._parser.unparsed
        can_stay = self._input is _PIPELINED and not (has_all or self._shared.is_stopping)
        return response.is_last or not can_stay

    async def _send_file(self, response: Response, file: IO[bytes]) -> None:
        with file:
            if not self._transport.is_closing():
                self._writer.write(response, self._shared.date, is_last=self._is_last(response))
                self._regulate()
            await self._writer.write_file(file)

    def _end(self) -> None:
        """Send no more, and close after the client."""
        self._ignore_input()
        self.waiting_since = self._loop.time()
        if self._has_eof:
            self._transport.close()
            return
        self._writer.end()
        if self._shared.is_stopping:
            self._writer.close_once_read()


_SMALL_BODY = 16 * 1024  # bytes that cost less to copy than to send on their own
_PIECE_OF_FILE = 32 * 1024
_LAST_SECONDS = 0.2  # in which a client can take some of its last response during a stop
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_STATUS_LINES = {
    status.value: b"HTTP/1.1 %d %s" % (status, status.phrase.encode("ascii"))
    for status in HTTPStatus
}


class ResponseWriter:
    """Writes responses. While it ``is_stalled``, the client does not read them."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._unsent = 0  # bytes, when we last looked
        self._drained: asyncio.Future[None] | None = None  # a file waits until the client has read
        self.is_stalled = False
        transport.set_write_buffer_limits(0)

    def write(self, response: Response, date: bytes, *, is_last: bool) -> None:
        """Write a response with the field ``date``, but not its file."""
        lines = [_STATUS_LINES[response.status], date, *response.headers]
        if is_last:
            lines.append(b"connection: close")
        if len(response.body) <= _SMALL_BODY:
            lines += (b"", response.body)
            self._transport.write(b"\r\n".join(lines))
        else:
            lines += (b"", b"")
            self._transport.writelines((b"\r\n".join(lines), response.body))

    async def write_file(self, file: IO[bytes]) -> None:
        while not self._transport.is_closing() and (piece := file.read(_PIECE_OF_FILE)):
            self._transport.write(piece)
            self._drained = self._loop.create_future()
            if not self.is_stalled:
                self._loop.call_soon(self.go_on)
            await self._drained

    def write_continue(self) -> None:
        if not self._transport.is_closing():
            self._transport.write(_CONTINUE)

    def stall(self) -> None:
        self.is_stalled = True
        self._unsent = self.measure_unsent()

    def resume(self) -> None:
        self.is_stalled = False
        self.go_on()

    def go_on(self) -> None:
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)

    def has_progressed(self) -> bool:
        before, self._unsent = self._unsent, self.measure_unsent()
        return self._unsent < before

    def measure_unsent(self) -> int:
        """The kernel's count too: without it a slow reader would seem to read nothing."""
        number = self._transport.get_extra_info("socket").fileno()
        (in_kernel,) = struct.unpack("i", fcntl.ioctl(number, termios.TIOCOUTQ, b"\0" * 4))
        return int(in_kernel) + self._transport.get_write_buffer_size()

    def end(self) -> None:
        """Write no more. The client closes first: a reset would take its response from it."""
        self._unsent = self.measure_unsent()
        self._transport.write_eof()

    def close_once_read(self, before: float = inf) -> None:
        """Close when the client reads nothing more; ``before`` is how much was unread last time."""
        if self._transport.is_closing():
            return
        unsent = self.measure_unsent()
        if unsent < before:
            self._loop.call_later(_LAST_SECONDS, self.close_once_read, unsent)
        else:
            self._transport.close()


class BufferBudget:
    """Bounds what all connections buffer: unfinished requests and unread responses.

    Beyond ``max_bytes`` connections give up what they buffer: first, of the owner that has
    most, the one with most; of equal ones the one that has been silent for longest.
    """

    def __init__(self, max_bytes: int) -> None:
        self.largest = max_bytes // 4
        """The most bytes that a response counts, so that none ends itself."""
        self._max = max_bytes
        self._total = 0
        self._totals: Counter[Hashable] = Counter()
        # A connection that is not silent moves to the end.
        self._sizes: dict[Hashable, dict[Connection, int]] = {}

    def note(self, member: Connection, size: int) -> None:
        """Note that a connection buffers ``size`` bytes, and is not silent now."""
        self._drop(member)
        if size:
            self._sizes.setdefault(member.owner, {})[member] = size
            self._totals[member.owner] += size
            self._total += size
        while self._total > self._max:
            sizes = self._sizes[max(self._totals, key=self._totals.__getitem__)]
            most = max(sizes, key=sizes.__getitem__)
            self._drop(most)
            most.give_up()

    def _drop(self, member: Connection) -> None:
        sizes = self._sizes.get(member.owner, {})
        size = sizes.pop(member, 0)
        if size:
            self._total -= size
            self._totals[member.owner] -= size
            if not sizes:
                del self._sizes[member.owner], self._totals[member.owner]


class RequestBody:
    """A body that is complete before the application asks for it becomes ``Request.content``."""

    def __init__(
        self, request: Request, send_continue: Callable[[], None], on_taken: Callable[[], None]
    ) -> None:
        self._request = request
        self._send_continue = send_continue  # tells the client to send it
        self._on_taken = on_taken
        expected = request.fields.get(b"expect", b"").lower()
        self._awaits_continue = expected == b"100-continue" and request.version == "1.1"
        self._was_asked_for = self._is_whole = False
        self._fault: Callable[[], ConnectionError] | None = None
        self._pieces: list[bytes] = []
        self._progress: asyncio.Future[None] | None = None
        self.size = self.unread = 0

    @property
    def held(self) -> int:
        """How many bytes of its request are in memory, here or at the application."""
        fields = self._request.fields
        head = sum(map(len, fields)) + sum(map(len, fields.values()))
        return head + (self.size if self._request.keeps_body else self.unread)

    def add(self, piece: bytes, *, is_last: bool) -> None:
        self._pieces.append(piece)
        self.size += len(piece)
        self.unread += len(piece)
        self._is_whole = is_last
        if is_last and not self._was_asked_for:
            self._request.content, self._request.body = self._take(), "read"
        self._wake()

    def cut_off(self, fault: Callable[[], ConnectionError]) -> None:
        """Note the error to make if the rest is asked for: it cannot arrive. The first counts."""
        self._fault = self._fault or fault
        self._wake()

    def drop(self) -> None:
        self._take()

    async def receive(self) -> bytes:
        self._was_asked_for = True
        if self._awaits_continue and not self.size and not self._is_whole:
            self._send_continue()
        self._awaits_continue = False
        while not self.unread:
            if self._is_whole:
                return b""
            if self._fault is not None:
                raise self._fault()
            self._progress = asyncio.get_running_loop().create_future()
            await self._progress
        piece = self._take()
        self._on_taken()
        return piece

    def _take(self) -> bytes:
        pieces, self._pieces, self.unread = self._pieces, [], 0
        return b"".join(pieces)

    def _wake(self) -> None:
        if self._progress is not None and not self._progress.done():
            self._progress.set_result(None)


async def receive_nothing() -> bytes:
    return b""
