"""The HTTP server: who is connected, how many may be, and for how long they may say nothing."""

import asyncio
import logging
import socket
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from email.utils import formatdate
from functools import partial

from petstore.api.messages import Respond
from petstore.http.buffers import BufferBudget
from petstore.http.connection import Connection
from petstore.http.known_requests import KnownRequests
from petstore.http.open_files import room_for
from petstore.http.turns import Turns

_ACCEPTED_AT_ONCE = 16
_READ_AT_ONCE = 16 * 1024
_WASTED_AT_ONCE = 256 * 1024
# The kernel's, of each connection; it doubles them.
_SEND_BUFFER = 64 * 1024
_RECEIVE_BUFFER = 32 * 1024
_LONGEST_TICK = 1.0  # s
_PAUSE = 1.0  # s
_LAST_REQUEST_SECONDS = 0.1  # in which a request that was sent before a stop is read
_WARNING_SECONDS = 60.0
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class ConnectionLimits:
    """What connections may take up.

    At most ``connections`` are open, and ``per_address`` of one client address, 0 for a quarter of
    them; others wait at the socket, or are closed. Together they buffer ``buffer_bytes``. One that
    is to send a head, or to read answers, and takes ``seconds``, is closed.
    """

    connections: int = 20_000
    per_address: int = 0
    buffer_bytes: int = 32 * 1024 * 1024
    seconds: float = 10


def by_address(address: str) -> str:
    """Return what a connection counts as: the address of its client."""
    return address


class HttpServer:
    """Has ``respond`` answer the clients of ``listener``, from ``serve`` to ``stop``.

    A connection counts against what ``counted_as`` says of its address, or if that is ``None``
    against no limit of an address.
    """

    def __init__(
        self,
        respond: Respond,
        listener: socket.socket,
        limits: ConnectionLimits,
        counted_as: Callable[[str], str | None] = by_address,
    ) -> None:
        self._respond = respond
        self._listener = listener
        self.max_connections = room_for(limits.connections)
        self._per_address = limits.per_address or max(1, self.max_connections // 4)
        self._seconds = limits.seconds
        self._counted_as = counted_as
        self._loop = asyncio.get_running_loop()
        self.known = KnownRequests()
        self.buffer = memoryview(bytearray(_READ_AT_ONCE))
        self.waste = memoryview(bytearray(_WASTED_AT_ONCE))
        self._turns = Turns()
        self.await_turn = self._turns.add
        self.buffer_bytes = BufferBudget(limits.buffer_bytes).note
        self._connections: set[Connection] = set()
        self._connecting: set[asyncio.Task[None]] = set()
        self._of_address: Counter[str] = Counter()
        self._warned_at = float("-inf")
        self._is_accepting = False
        self._is_stopped = False
        self._is_finishing = False
        self._all_gone = asyncio.Event()
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)
        self._accept_only_with_request(within=0)
        self._tick()

    @property
    def connections(self) -> int:
        """How many connections are open."""
        return len(self._connections) + len(self._connecting)

    async def serve(self) -> None:
        """Serve who connects until ``stop``, and return when the last is gone."""
        self._accept_if_room()
        try:
            await self._all_gone.wait()
        finally:
            self._ticking.cancel()

    def retire(self) -> None:
        """Leave to others who have connected and not sent anything."""
        self._accept_only_with_request(within=1)

    def stop(self) -> None:
        """Accept nobody but those who wait already, and finish what is under way.

        Connections are idle only if no request comes in the next moment: one that was sent before
        may not have been read yet.
        """
        while self._accept():
            pass
        self._is_stopped = True
        self._stop_accepting()
        self._listener.close()
        self._loop.call_later(_LAST_REQUEST_SECONDS, self._finish)

    # What connections tell

    def connection_opened(self, connection: Connection) -> None:
        """Note a new connection."""
        self._connections.add(connection)

    def connection_closed(self, connection: Connection) -> None:
        """Note the end of a connection."""
        self._connections.discard(connection)
        self._count(connection.client, -1)
        self.buffer_bytes(connection, 0)
        self._accept_if_room()
        self._note_end()

    def _count(self, client: str, difference: int) -> None:
        address = self._counted_as(client)
        if address is not None:
            self._of_address[address] += difference
            if not self._of_address[address]:
                del self._of_address[address]

    def _finish(self) -> None:
        self._is_finishing = True
        for connection in list(self._connections):
            connection.finish()
        self._note_end()

    def _tick(self) -> None:
        self.date = b"date: " + formatdate(usegmt=True).encode("ascii")
        for connection in [one for one in self._connections if one.is_stalled]:
            connection.note_progress()
        latest = self._loop.time() - self._seconds
        for connection in [one for one in self._connections if one.waiting_since <= latest]:
            connection.abort()
        self._ticking = self._loop.call_later(min(_LONGEST_TICK, self._seconds / 4), self._tick)

    def _accept(self) -> bool:
        """Accept a few, leave the rest to processes with less to do; tell whether more may wait."""
        for _ in range(_ACCEPTED_AT_ONCE):
            if not self._has_room():
                self._stop_accepting()
                return False
            try:
                client, address = self._listener.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return False
            except OSError:  # out of files or memory: there may be some later
                self._stop_accepting()
                self._loop.call_later(_PAUSE, self._accept_if_room)
                return False
            self._admit(client, address[0])
        return True

    def _admit(self, client: socket.socket, address: str) -> None:
        """Serve a client, unless its address has as many connections as it may."""
        counted_as = self._counted_as(address)
        if counted_as is not None and self._of_address[counted_as] >= self._per_address:
            client.close()
            self._warn_of(counted_as)
            return
        self._count(address, 1)
        task = self._loop.create_task(self._connect(client, address))
        self._connecting.add(task)
        task.add_done_callback(partial(self._note_connected, address))

    def _warn_of(self, address: str) -> None:
        now = self._loop.time()
        if now >= self._warned_at + _WARNING_SECONDS:
            self._warned_at = now
            count = self._of_address[address]
            _LOG.warning(
                "%s has %d connections, as many as it may: more are closed", address, count
            )

    async def _connect(self, client: socket.socket, address: str) -> None:
        _, connection = await self._loop.connect_accepted_socket(
            lambda: Connection(self._respond, self, address), client
        )
        if self._is_finishing:
            connection.finish()

    def _note_connected(self, address: str, task: asyncio.Task[None]) -> None:
        self._connecting.discard(task)
        if task.exception() is not None:  # pragma: no cover - for want of memory; no test has it
            self._count(address, -1)
        self._accept_if_room()
        self._note_end()

    def _accept_if_room(self) -> None:
        if not (self._is_accepting or self._is_stopped) and self._has_room():
            self._is_accepting = True
            self._loop.add_reader(self._listener, self._accept)

    def _has_room(self) -> bool:
        return self.connections < self.max_connections

    def _stop_accepting(self) -> None:
        if self._is_accepting:
            self._is_accepting = False
            self._loop.remove_reader(self._listener)

    def _note_end(self) -> None:
        if self._is_finishing and not self._connections and not self._connecting:
            self._all_gone.set()

    def _accept_only_with_request(self, *, within: int) -> None:
        """Give nobody before the first bytes come, or so many seconds are over; 0 for at once."""
        with suppress(AttributeError):  # only Linux can
            self._listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, within)
