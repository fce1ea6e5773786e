"""The responses of a connection, on their way to the client."""

import asyncio
import fcntl
import struct
import termios
from http import HTTPStatus
from math import inf
from typing import IO

from petstore.http.messages import Response

_SMALL_BODY = 16 * 1024  # bytes that cost less to copy than to send on their own
_PIECE_OF_FILE = 32 * 1024
_LAST_SECONDS = 0.2  # in which a client can take some of its last response during a stop
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_STATUS_LINES = {
    status.value: b"HTTP/1.1 %d %s" % (status, status.phrase.encode("ascii"))
    for status in HTTPStatus
}
# Python 3.13 has these phrases of RFC 9110; 3.11 has those of RFC 7231.
_STATUS_LINES[413] = b"HTTP/1.1 413 Content Too Large"
_STATUS_LINES[414] = b"HTTP/1.1 414 URI Too Long"
_STATUS_LINES[422] = b"HTTP/1.1 422 Unprocessable Content"


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
        """Return how many bytes of responses the client has not taken.

        The kernel's count too: without them a slow reader would seem to read nothing for a while.
        """
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
