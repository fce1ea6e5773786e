"""A pooler in transaction mode, as PgBouncer is: its clients share a few connections.

It is a strict one: no two transactions of a client in a row get the same connection. So whatever a
client leaves on a connection for later is missing then. As PgBouncer does, it refuses clients that
ask for what would hold for a whole connection.
"""

import asyncio
import struct
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TypeAlias

from anyio.from_thread import start_blocking_portal

from support.silent_server import listening

Peer: TypeAlias = tuple[StreamReader, StreamWriter]

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


def _message(kind: bytes, content: bytes) -> bytes:
    return kind + struct.pack("!I", len(content) + 4) + content


_IDLE = _message(b"Z", b"I")
_WELCOME = b"".join(
    [
        _message(b"R", struct.pack("!I", 0)),
        *(_message(b"S", f"{name}\0{value}\0".encode()) for name, value in _PARAMETERS.items()),
        _message(b"K", struct.pack("!II", 1, 1)),
        _IDLE,
    ]
)


@contextmanager
def pooler(url: str) -> Iterator[str]:
    """Run a pooler before the database ``url``; give the address of its own."""
    server, _, database = url.rpartition("/")
    user, _, port = server.removeprefix("postgresql://").partition("@127.0.0.1:")
    running = _running(int(port), user, database)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(running) as own:
        yield f"postgresql://{user}@127.0.0.1:{own}/{database}"


@asynccontextmanager
async def _running(port: int, user: str, database: str) -> AsyncIterator[int]:
    idle: asyncio.Queue[Peer] = asyncio.Queue()
    names = f"user\0{user}\0database\0{database}\0\0".encode()
    opened = [await asyncio.open_connection("127.0.0.1", port) for _ in range(_CONNECTIONS)]
    for reader, writer in opened:
        writer.write(struct.pack("!II", len(names) + 8, _PROTOCOL) + names)
        while await _receive(reader) != _IDLE:
            pass
        idle.put_nowait((reader, writer))
    async with listening(lambda *client: _serve(client, idle)) as own:
        yield own
    for _, writer in opened:
        writer.transport.abort()


async def _receive(reader: StreamReader) -> bytes:
    head = await reader.readexactly(5)
    return head + await reader.readexactly(int.from_bytes(head[1:]) - 4)


async def _serve(client: Peer, idle: "asyncio.Queue[Peer]") -> None:
    reader, writer = client
    if refused := await _asked(client) - _TAKEN:
        words = f"unsupported startup parameter: {refused.pop()}"
        writer.write(_message(b"E", f"SFATAL\0VFATAL\0C08P01\0M{words}\0\0".encode()))
        return
    writer.write(_WELCOME)
    # It waits for work first: an idle client holds no connection.
    while not (first := await _receive(reader)).startswith(b"X"):
        server = await idle.get()
        await _serve_transaction(client, server, first)
        idle.put_nowait(server)


async def _serve_transaction(client: Peer, server: Peer, message: bytes) -> None:
    while True:
        server[1].write(message)
        if ends := _END_OF_RESPONSE.get(message[:1]):
            while True:
                client[1].write(response := await _receive(server[0]))
                if response[:1] in ends:
                    break
            if response == _IDLE:
                return
        message = await _receive(client[0])


async def _asked(client: Peer) -> set[str]:
    reader, writer = client
    length, code = struct.unpack("!II", await reader.readexactly(8))
    while code == _ENCRYPTION_REQUEST:
        writer.write(b"N")
        length, code = struct.unpack("!II", await reader.readexactly(8))
    assert code == _PROTOCOL
    asked = await reader.readexactly(length - 8)
    return set(asked.decode().rstrip("\0").split("\0")[::2])
