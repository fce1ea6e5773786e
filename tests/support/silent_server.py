"""Servers that are none of Redis: one that never answers, one that answers what it likes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass
class FakeServer:
    """What was heard so far, and where to say it."""

    url: str
    heard: list[bytes] = field(default_factory=list)


@asynccontextmanager
async def fake_server(answer: bytes = b"") -> AsyncIterator[FakeServer]:
    """Run a server that answers whatever it hears with ``answer``, or not at all."""
    writers = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        while heard := await reader.read(2**20):
            fake.heard.append(heard)
            writer.write(answer)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    fake = FakeServer(f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    try:
        yield fake
    finally:
        server.close()
        for writer in writers:
            writer.close()
            await writer.wait_closed()
