"""A pooler in transaction mode, as PgBouncer is: its clients share a few connections.

It is a strict one: no two transactions of a client in a row get the same connection. So whatever a
client leaves on a connection for later is missing then. As PgBouncer does, it refuses clients that
ask for what would hold for a whole connection.
"""

import asyncio
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from support.process import free_port

_CONNECTIONS = 3
_ENCRYPTION_REQUEST = 80877103
_PROTOCOL = 196608
# Messages that the client waits on, and how their responses end. A client flushes after Describe.
_END_OF_RESPONSE = {b"Q": b"Z", b"S": b"Z", b"H": b"TnE"}
_TAKEN = {"user", "database", "application_name", "client_encoding"}
_PARAMETERS = {
    "client_encoding": "UTF8",
    "integer_datetimes": "on",
    "server_version": "18.0",
    "standard_conforming_strings": "on",
}


class _Message(NamedTuple):
    kind: bytes
    content: bytes

    @property
    def packed(self) -> bytes:
        return self.kind + struct.pack("!I", len(self.content) + 4) + self.content


_IDLE = _Message(b"Z", b"I")
_WELCOME = (
    _Message(b"R", struct.pack("!I", 0)),
    *(_Message(b"S", f"{name}\0{value}\0".encode()) for name, value in _PARAMETERS.items()),
    _Message(b"K", struct.pack("!II", 1, 1)),
    _IDLE,
)


class _Peer(NamedTuple):
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def receive(self) -> _Message:
        head = await self.reader.readexactly(5)
        return _Message(head[:1], await self.reader.readexactly(int.from_bytes(head[1:]) - 4))

    async def send(self, *messages: _Message) -> None:
        self.writer.write(b"".join(message.packed for message in messages))
        await self.writer.drain()


@contextmanager
def pooler(url: str, ignored: str = "") -> Iterator[str]:
    """Run a pooler before the database ``url``; give the address of its own.

    It ignores the parameter ``ignored`` instead of refusing it.
    """
    server, _, database = url.rpartition("/")
    user, _, server_port = server.removeprefix("postgresql://").partition("@127.0.0.1:")
    port, ready = free_port(), threading.Event()
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()

    async def run() -> None:
        idle: asyncio.Queue[_Peer] = asyncio.Queue()
        opened = [await _connect(int(server_port), user, database) for _ in range(_CONNECTIONS)]
        for peer in opened:
            idle.put_nowait(peer)
        listener = await asyncio.start_server(
            lambda reader, writer: _serve(_Peer(reader, writer), idle, {*_TAKEN, ignored}),
            *("127.0.0.1", port),
        )
        ready.set()
        await stop.wait()
        listener.close()
        for peer in opened:
            peer.writer.transport.abort()

    thread = threading.Thread(target=loop.run_until_complete, args=(run(),))
    thread.start()
    try:
        assert ready.wait(30)
        yield f"postgresql://{user}@127.0.0.1:{port}/{database}"
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()


async def _connect(port: int, user: str, database: str) -> _Peer:
    peer = _Peer(*await asyncio.open_connection("127.0.0.1", port))
    names = f"user\0{user}\0database\0{database}\0\0".encode()
    peer.writer.write(struct.pack("!II", len(names) + 8, _PROTOCOL) + names)
    while (await peer.receive()).kind != b"Z":
        pass
    return peer


async def _serve(client: _Peer, idle: "asyncio.Queue[_Peer]", taken: set[str]) -> None:
    try:
        if refused := await _greet(client) - taken:
            words = f"unsupported startup parameter: {refused.pop()}"
            await client.send(_Message(b"E", f"SFATAL\0VFATAL\0C08P01\0M{words}\0\0".encode()))
            return
        await client.send(*_WELCOME)
        while True:
            # Wait for work first: an idle client holds no connection.
            first = await client.receive()
            if first.kind == b"X":
                return
            server = await idle.get()
            await _serve_transaction(client, server, first)
            idle.put_nowait(server)
    except (asyncio.IncompleteReadError, ConnectionError):
        pass  # the client has left
    finally:
        client.writer.close()


async def _serve_transaction(client: _Peer, server: _Peer, message: _Message) -> None:
    while True:
        await server.send(message)
        if message.kind in _END_OF_RESPONSE:
            response = await server.receive()
            while response.kind not in _END_OF_RESPONSE[message.kind]:
                await client.send(response)
                response = await server.receive()
            await client.send(response)
            if response == _IDLE:
                return
        message = await client.receive()


async def _greet(client: _Peer) -> set[str]:
    """Return the names of what a client asks for."""
    length, code = struct.unpack("!II", await client.reader.readexactly(8))
    while code == _ENCRYPTION_REQUEST:
        client.writer.write(b"N")
        length, code = struct.unpack("!II", await client.reader.readexactly(8))
    assert code == _PROTOCOL
    asked = await client.reader.readexactly(length - 8)
    return set(asked.decode().rstrip("\0").split("\0")[::2])
