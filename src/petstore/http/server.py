"""The HTTP server: how many connections are open, and how long they may be silent."""

import asyncio
import logging
import math
import resource
import socket
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from email.utils import formatdate
from functools import partial

from petstore.http.connection import Connection, Shared
from petstore.http.messages import Respond

_ACCEPTED_AT_ONCE = 16
# The kernel's buffers of each connection; the kernel doubles them.
_SEND_BUFFER = 64 * 1024
_RECEIVE_BUFFER = 32 * 1024
_MAX_TICK = 1.0  # s
_PAUSE = 1.0  # s
_LAST_REQUEST_SECONDS = 0.1  # in which a request that was sent before a stop is read
_WARNING_SECONDS = 60.0
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class ConnectionLimits:
    """What connections may take up.

    At most ``connections`` are open; more wait at the socket. One client address has at most
    ``per_address`` of them, or a quarter if that is 0; more are closed. Together they buffer
    ``buffer_bytes``; beyond that the address that buffers most has to give up some. A connection
    that takes ``seconds`` to send a head or to read responses is closed.
    """

    connections: int = 20_000
    per_address: int = 0
    buffer_bytes: int = 32 * 1024 * 1024
    seconds: float = 10


class HttpServer:
    """Serves the clients of ``listener`` with ``respond``, from ``serve`` to ``stop``."""

    def __init__(
        self,
        respond: Respond,
        listener: socket.socket,
        limits: ConnectionLimits,
        counted_as: Callable[[str], str | None] = lambda address: address,
    ) -> None:
        self._respond = respond
        self._listener = listener
        self.max_connections = room_for(limits.connections)
        self._per_address = limits.per_address or max(1, self.max_connections // 4)
        self._seconds = limits.seconds
        self._counted_as = counted_as
        self._loop = asyncio.get_running_loop()
        self._shared = Shared(limits.buffer_bytes)
        self._connecting: set[asyncio.Task[None]] = set()
        self._by_address: Counter[str] = Counter()
        self._warned_at = float("-inf")
        self._is_accepting = False
        self._is_stopped = False
        self._all_closed = asyncio.Event()
        self._listener.settimeout(0)  # another process may accept a client before us
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)
        self._accept_only_with_request(within=0)
        self._tick()

    @property
    def connections(self) -> int:
        return len(self._shared.connections) + len(self._connecting)

    async def serve(self) -> None:
        self._accept_if_room()
        try:
            await self._all_closed.wait()
        finally:
            self._ticking.cancel()

    def shut_down(self, drain_seconds: float) -> None:
        """Leave new clients that send nothing for so long to other processes."""
        self._accept_only_with_request(within=math.ceil(drain_seconds) + 1)

    def stop(self, *, leaves_waiting: bool = False) -> None:
        """Accept only the clients that wait already, and finish the requests in progress.

        If it ``leaves_waiting``, it leaves those clients to another process with the socket. A
        connection is idle only if no request arrives in the next moment: one that was sent before
        may not have been read yet.
        """
        while not leaves_waiting and self._accept():
            pass
        self._is_stopped = True
        self._stop_accepting()
        self._listener.close()
        self._loop.call_later(_LAST_REQUEST_SECONDS, self._finish)

    def _note_closed(self, client: str) -> None:
        self._count(client, -1)
        self._accept_if_room()
        self._note_end()

    def _count(self, client: str, difference: int) -> None:
        address = self._counted_as(client)
        if address is not None:
            self._by_address[address] += difference
            if not self._by_address[address]:
                del self._by_address[address]

    def _finish(self) -> None:
        self._shared.is_stopping = True
        for connection in list(self._shared.connections):
            connection.finish()
        self._note_end()

    def _tick(self) -> None:
        self._shared.date = b"date: " + formatdate(usegmt=True).encode("ascii")
        for connection in [one for one in self._shared.connections if one.is_stalled]:
            connection.note_progress()
        latest = self._loop.time() - self._seconds
        for connection in [one for one in self._shared.connections if one.waiting_since <= latest]:
            connection.abort()
        self._ticking = self._loop.call_later(min(_MAX_TICK, self._seconds / 4), self._tick)

    def _accept(self) -> bool:
        """Accept a few clients and leave others to other processes; return if more may wait."""
        # One more for each 16 connections, which make a turn of the event loop longer.
        for _ in range(min(1 + self.connections // 16, _ACCEPTED_AT_ONCE)):
            if self.connections >= self.max_connections:
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
        counted_as = self._counted_as(address)
        if counted_as is not None and self._by_address[counted_as] >= self._per_address:
            client.close()
            now = self._loop.time()
            if now >= self._warned_at + _WARNING_SECONDS:
                self._warned_at = now
                _LOG.warning(
                    "%s has %d connections, the maximum; further ones are closed",
                    counted_as,
                    self._by_address[counted_as],
                )
            return
        self._count(address, 1)
        task = self._loop.create_task(self._connect(client, address))
        self._connecting.add(task)
        task.add_done_callback(partial(self._note_connected, address))

    async def _connect(self, client: socket.socket, address: str) -> None:
        closed, owner = partial(self._note_closed, address), self._counted_as(address)
        _, connection = await self._loop.connect_accepted_socket(
            lambda: Connection(self._respond, self._shared, address, closed, owner), client
        )
        if self._shared.is_stopping:
            connection.finish()

    def _note_connected(self, address: str, task: asyncio.Task[None]) -> None:
        self._connecting.discard(task)
        if task.exception() is not None:  # pragma: no cover - for want of memory; no test has it
            self._count(address, -1)
        self._accept_if_room()
        self._note_end()

    def _accept_if_room(self) -> None:
        has_room = self.connections < self.max_connections
        if has_room and not (self._is_accepting or self._is_stopped):
            self._is_accepting = True
            self._loop.add_reader(self._listener, self._accept)

    def _stop_accepting(self) -> None:
        if self._is_accepting:
            self._is_accepting = False
            self._loop.remove_reader(self._listener)

    def _note_end(self) -> None:
        if self._shared.is_stopping and not self._shared.connections and not self._connecting:
            self._all_closed.set()

    def _accept_only_with_request(self, *, within: int) -> None:
        """Accept a client when its first bytes arrive, or after ``within`` seconds; 0: at once."""
        with suppress(AttributeError):  # only Linux has it
            self._listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, within)


_OTHER_FILES = 100
_MIN_CONNECTIONS = 100


def room_for(connections: int) -> int:
    """Raise the limit of open files to what ``connections`` need; return how many it has room for.

    With too few, it raises ``OSError``. At the limit new clients wait; so a few that never read
    their responses could keep all out.
    """
    needed = connections + _OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    least = _OTHER_FILES + min(connections, _MIN_CONNECTIONS)
    if soft < least:
        raise OSError(f"the limit of open files is {soft}; expected at least {least} (ulimit -Hn)")
    return min(connections, soft - _OTHER_FILES)
