"""The HTTP server: who is connected, how many may be, and for how long they may say nothing."""

import asyncio
import socket
from contextlib import suppress
from email.utils import formatdate

from petstore.api.messages import Respond
from petstore.http.connection import Connection
from petstore.http.known_requests import KnownRequests
from petstore.http.open_files import room_for

_ACCEPTED_AT_ONCE = 16
_LONGEST_TICK = 1.0  # s
_PAUSE = 1.0  # s


class HttpServer:
    """Has ``respond`` answer the callers of ``listener``, from ``serve`` to ``stop``.

    At most ``connections`` are open; others wait at the socket. Who is to send a head, or to read
    answers, and takes ``seconds``, is hung up on.
    """

    def __init__(
        self, respond: Respond, listener: socket.socket, connections: int, seconds: float
    ) -> None:
        self._respond = respond
        self._listener = listener
        self._room = room_for(connections)
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self.known = KnownRequests()
        self._connections: set[Connection] = set()
        self._connecting: set[asyncio.Task[None]] = set()
        self._is_accepting = False
        self._is_stopped = False
        self._all_gone = asyncio.Event()
        self._accept_only_with_request(within=0)
        self._tick()

    async def serve(self) -> None:
        """Serve who comes until ``stop``, and return when the last is gone."""
        self._accept_if_room()
        try:
            await self._all_gone.wait()
        finally:
            self._ticking.cancel()

    def retire(self) -> None:
        """Leave to others who have connected and not sent anything: ``stop`` hangs up on them."""
        self._accept_only_with_request(within=1)

    def stop(self) -> None:
        """Accept nobody any more, and finish what is under way."""
        self._is_stopped = True
        self._stop_accepting()
        self._listener.close()
        for connection in self._connections:
            connection.finish()
        self._note_end()

    # What connections tell

    def came(self, connection: Connection) -> None:
        """Note a new connection."""
        self._connections.add(connection)

    def went(self, connection: Connection) -> None:
        """Note the end of a connection."""
        self._connections.discard(connection)
        self._accept_if_room()
        self._note_end()

    def _tick(self) -> None:
        self.date = b"date: " + formatdate(usegmt=True).encode("ascii")
        latest = self._loop.time() - self._seconds
        for connection in [one for one in self._connections if one.waits_since <= latest]:
            connection.give_up()
        self._ticking = self._loop.call_later(min(_LONGEST_TICK, self._seconds / 4), self._tick)

    def _accept(self) -> None:
        """Accept a few, and leave the rest to processes with less to do."""
        for _ in range(_ACCEPTED_AT_ONCE):
            if not self._has_room():
                self._stop_accepting()
                return
            try:
                caller, address = self._listener.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError:  # out of files or memory: there may be some later
                self._stop_accepting()
                self._loop.call_later(_PAUSE, self._accept_if_room)
                return
            task = self._loop.create_task(self._connect(caller, address[0]))
            self._connecting.add(task)
            task.add_done_callback(self._note_connected)

    async def _connect(self, caller: socket.socket, address: str) -> None:
        _, connection = await self._loop.connect_accepted_socket(
            lambda: Connection(self._respond, self, address), caller
        )
        if self._is_stopped:
            connection.finish()

    def _note_connected(self, task: asyncio.Task[None]) -> None:
        self._connecting.discard(task)
        self._accept_if_room()
        self._note_end()

    def _accept_if_room(self) -> None:
        if not (self._is_accepting or self._is_stopped) and self._has_room():
            self._is_accepting = True
            self._loop.add_reader(self._listener, self._accept)

    def _has_room(self) -> bool:
        return len(self._connections) + len(self._connecting) < self._room

    def _stop_accepting(self) -> None:
        if self._is_accepting:
            self._is_accepting = False
            self._loop.remove_reader(self._listener)

    def _note_end(self) -> None:
        if self._is_stopped and not self._connections and not self._connecting:
            self._all_gone.set()

    def _accept_only_with_request(self, *, within: int) -> None:
        """Give nobody before the first bytes come, or so many seconds are over; 0 for at once."""
        with suppress(AttributeError):  # only Linux can
            self._listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, within)
