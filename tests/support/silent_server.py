"""Servers that are not Redis: silent, with odd responses, or a proxy to Redis that can be cut."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass
class FakeServer:
    """The bytes received so far, and the server's address."""

    url: str
    heard: list[bytes] = field(default_factory=list)


@asynccontextmanager
async def fake_server(response: bytes = b"") -> AsyncIterator[FakeServer]:
    """Run a server that sends ``response`` to everything, or nothing if it is empty."""
    writers = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        while heard := await reader.read(2**20):
            fake.heard.append(heard)
            writer.write(response)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    fake = FakeServer(f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    try:
        yield fake
    finally:
        server.close()
        for writer in writers:
            writer.close()
            await writer.wait_closed()


@dataclass
class Way(FakeServer):
    """A proxy to the server at ``port``, and its connections."""

    port: int = 0
    callers: list[asyncio.StreamWriter] = field(default_factory=list)
    forgotten: int = 0  # how many of the connections, the oldest

    def forget(self) -> None:
        """Drop whatever is sent on the connections of now, as a firewall does with idle ones."""
        self.forgotten = len(self.callers)

    def cut(self) -> None:
        for caller in self.callers:
            caller.close()
        self.callers.clear()
        self.forgotten = 0


@asynccontextmanager
async def way_to(port: int, delay: float = 0) -> AsyncIterator[Way]:
    """Run a server that hands everything on to the one at ``port``, and back after ``delay``."""
    serving: list[asyncio.Future[tuple[None, None]]] = []

    async def hand_on(
        caller: asyncio.StreamWriter, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        while heard := await reader.read(2**20):
            way.heard.append(heard)
            await asyncio.sleep(delay)
            if caller not in way.callers[: way.forgotten]:
                writer.write(heard)
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        way.callers.append(writer)
        there, back = await asyncio.open_connection("127.0.0.1", way.port)
        serving.append(
            asyncio.gather(hand_on(writer, reader, back), hand_on(writer, there, writer))
        )
        await serving[-1]

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    way = Way(f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}", port=port)
    try:
        yield way
    finally:
        server.close()
        way.cut()
        await asyncio.gather(*serving, return_exceptions=True)
