"""One request on its way to its answer, and what has come of its body."""

import asyncio
from typing import Protocol

from msgspec import Struct

from petstore.api.messages import Request


class Line(Protocol):
    """What an exchange needs of its connection."""

    def invite_body(self) -> None:
        """Tell the caller to go on and send the body (RFC 9110 section 15.2.1)."""
        ...

    def read_on(self) -> None:
        """Read more of the connection, now that what had come of a body was taken."""
        ...


class Exchange(Struct, eq=False):
    """A request whose head is there.

    Of its body ``size`` bytes have come, of which ``unread`` were not taken yet. A body of which
    nothing was asked for by the time it is whole becomes the request's ``content``.
    """

    line: Line
    request: Request
    keeps_alive: bool = True
    awaits_invitation: bool = False
    is_asked_for: bool = False
    is_whole: bool = False
    ended_by: str = ""
    size: int = 0
    unread: int = 0
    pieces: list[bytes] = []
    progress: asyncio.Future[None] | None = None
    # The loop itself has only a weak reference to it.
    task: asyncio.Task[None] | None = None

    def add(self, piece: bytes) -> None:
        """Take in a piece of the body."""
        self.pieces.append(piece)
        self.size += len(piece)
        self.unread += len(piece)
        self._wake()

    def complete(self) -> None:
        """Note that the whole body has come."""
        self.is_whole = True
        if not self.is_asked_for and self.request.body == "waiting":
            self.request.content, self.request.body = self._take(), "read"
        self._wake()

    def cut_off(self, reason: str) -> None:
        """Note that the rest of the body will not come, and why."""
        self.ended_by = reason
        self._wake()

    async def receive(self) -> bytes:
        """Return the next piece of the body, or nothing if that was all.

        Raises:
            ConnectionError: the rest will not come.
        """
        self.is_asked_for = True
        if self.awaits_invitation:
            self.awaits_invitation = False
            if not self.pieces and not self.is_whole:
                self.line.invite_body()
        while not self.pieces:
            if self.is_whole:
                return b""
            if self.ended_by:
                raise ConnectionError(self.ended_by)
            self.progress = asyncio.get_running_loop().create_future()
            await self.progress
        piece = self._take()
        self.line.read_on()
        return piece

    def _take(self) -> bytes:
        pieces, self.pieces, self.unread = self.pieces, [], 0
        return b"".join(pieces)

    def _wake(self) -> None:
        if self.progress is not None and not self.progress.done():
            self.progress.set_result(None)
