"""Servers that are not Redis: silent, with odd responses, or a proxy that can be cut."""

import asyncio
import ssl
from asyncio import StreamReader, StreamWriter
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field


@asynccontextmanager
async def listening(
    serve: Callable[[StreamReader, StreamWriter], Awaitable[object]],
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[int]:
    """Run a server in this loop until the block ends, and give its port."""
    tasks = set()

    async def connected(reader: StreamReader, writer: StreamWriter) -> None:
        tasks.add(asyncio.current_task())
        with suppress(OSError, EOFError, asyncio.CancelledError):  # one side has left
            await serve(reader, writer)
        tasks.discard(asyncio.current_task())
        writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in filter(None, tasks):
            task.cancel()
        await asyncio.gather(*filter(None, tasks))


@dataclass
class FakeServer:
    """The last bytes it has received, and its address."""

    url: str = ""
    heard: deque[bytes] = field(default_factory=lambda: deque(maxlen=1000))


@asynccontextmanager
async def fake_server(response: bytes = b"") -> AsyncIterator[FakeServer]:
    """Run a server that sends ``response`` to everything, or nothing if it is empty."""
    fake = FakeServer()

    async def serve(reader: StreamReader, writer: StreamWriter) -> None:
        while heard := await reader.read(2**20):
            fake.heard.append(heard)
            writer.write(response)

    async with listening(serve) as port:
        fake.url = f"redis://127.0.0.1:{port}"
        yield fake


@dataclass
class Way(FakeServer):
    """A proxy at ``entrance`` to the server at ``port``, and its connections."""

    port: int = 0
    entrance: int = 0
    callers: list[StreamWriter] = field(default_factory=list)
    _age: int = 0  # a connection is of one, and what is sent on connections of another is dropped
    _is_swallowing: bool = False

    def forget(self) -> None:
        """Drop whatever is sent on the connections of now, as a firewall does with idle ones."""
        self._age += 1

    @contextmanager
    def swallowing(self) -> Iterator[None]:
        """Drop whatever is sent; connections until the end of the block stay silent for ever."""
        self._is_swallowing = True
        self.forget()
        yield
        self._is_swallowing = False
        self.forget()

    def cut(self) -> None:
        for caller in self.callers:
            caller.close()
        self.callers.clear()

    async def hand_on(
        self, reader: StreamReader, writer: StreamWriter, delay: float, age: int
    ) -> None:
        while heard := await reader.read(2**20):
            self.heard.append(heard)
            await asyncio.sleep(delay)
            if age == self._age and not self._is_swallowing:
                writer.write(heard)
        if age == self._age:
            writer.close()

    async def serve(self, reader: StreamReader, writer: StreamWriter, delay: float) -> None:
        self.callers.append(writer)
        there, back = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            await asyncio.gather(
                self.hand_on(reader, back, delay, self._age),
                self.hand_on(there, writer, delay, self._age),
            )
        finally:
            back.close()


@asynccontextmanager
async def way_to(
    port: int, delay: float = 0, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Way]:
    """Run a server that hands everything on to the one at ``port``, and back after ``delay``."""
    way = Way(port=port)
    async with listening(lambda reader, writer: way.serve(reader, writer, delay), tls) as entrance:
        way.entrance = entrance
        way.url = f"redis://127.0.0.1:{entrance}"
        yield way
