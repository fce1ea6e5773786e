"""A small balancer over HTTP, as one stands before several instances of the service.

It asks each instance every few milliseconds whether it is ready, and sends requests in turn to
those that are, over connections that it keeps. It tries another only where the connection is
refused: what has been sent once is never sent again.
"""

import asyncio
import re
from asyncio import StreamReader, StreamWriter
from contextlib import ExitStack, closing, suppress
from itertools import count
from threading import Event, Thread
from typing import NamedTuple, Self

_CHECK_SECONDS = 0.05
_CLOSE = re.compile(rb"\r\nconnection: close\r\n", re.IGNORECASE)
_CHECK = b"GET /readyz HTTP/1.1\r\nHost: balancer\r\nConnection: close\r\n\r\n"


class _Message(NamedTuple):
    head: bytes
    body: bytes

    @property
    def closes(self) -> bool:
        return _CLOSE.search(self.head) is not None


class _Instance:
    """One service at a port: whether it is ready, and connections to it that are free."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.is_ready = False
        self._idle: list[tuple[StreamReader, StreamWriter]] = []

    async def check(self) -> None:
        """Ask whether it is ready; if not, drop the connections to it."""
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
            with closing(writer):
                writer.write(_CHECK)
                self.is_ready = (await _message(reader)).head.startswith(b"HTTP/1.1 200 ")
        except (OSError, EOFError):
            self.is_ready = False
        if not self.is_ready:
            self.drop()

    async def ask(self, request: _Message) -> _Message:
        """Send a request and return the response.

        Raises:
            ConnectionRefusedError: nothing was sent.
        """
        if self._idle:
            reader, writer = self._idle.pop()
        else:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        with ExitStack() as unless_kept:
            unless_kept.enter_context(closing(writer))
            writer.write(_for_next(request))
            response = await _message(reader)
            if not response.closes:
                unless_kept.pop_all()
                self._idle.append((reader, writer))
        return response

    def drop(self) -> None:
        while self._idle:
            self._idle.pop()[1].close()


class Balancer:
    """Listens on ``port`` until the block ends; ``failures`` says which requests it lost."""

    def __init__(self) -> None:
        self.port = 0
        self.failures: list[str] = []
        self._instances: dict[int, _Instance] = {}
        self._turn = count()
        self._loop = asyncio.new_event_loop()
        self._is_listening = Event()
        self._thread = Thread(target=self._loop.run_until_complete, args=(self._run(),))

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._is_listening.wait(30)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()
        self._loop.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def add(self, port: int) -> None:
        """Send requests to the instance at ``port`` too, once it is ready."""
        self._instances = {**self._instances, port: _Instance(port)}

    def remove(self, port: int) -> None:
        self._instances = {kept: one for kept, one in self._instances.items() if kept != port}

    def ready(self) -> int:
        return sum(instance.is_ready for instance in self._instances.values())

    async def _run(self) -> None:
        self._over = asyncio.Event()
        self._callers: set[asyncio.Task[None]] = set()
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._is_listening.set()
        checking = asyncio.create_task(self._check())
        await self._over.wait()
        checking.cancel()
        server.close()
        for caller in self._callers:
            caller.cancel()
        await asyncio.gather(checking, *self._callers, return_exceptions=True)
        for instance in self._instances.values():
            instance.drop()
        await asyncio.sleep(0)  # for the connections to close

    async def _check(self) -> None:
        while True:
            await asyncio.gather(*(one.check() for one in self._instances.values()))
            await asyncio.sleep(_CHECK_SECONDS)

    async def _serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._callers.add(task)
        try:
            with suppress(EOFError, ConnectionError, asyncio.CancelledError):
                while True:
                    writer.write(await self._forward(await _message(reader)))
        finally:
            self._callers.discard(task)
            writer.close()

    async def _forward(self, request: _Message) -> bytes:
        instances = [one for one in self._instances.values() if one.is_ready]
        first = next(self._turn)
        for turn in range(len(instances)):
            instance = instances[(first + turn) % len(instances)]
            try:
                response = await instance.ask(request)
            except ConnectionRefusedError:
                instance.is_ready = False
            except (OSError, EOFError) as error:
                self.failures.append(f"{instance.port}: {error!r}")
                break
            else:
                return _for_next(response)
        else:
            self.failures.append("no instance is ready")
        return b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n"


def _for_next(message: _Message) -> bytes:
    """Return a message without its hop-by-hop fields."""
    return _CLOSE.sub(b"\r\n", message.head) + message.body


async def _message(reader: StreamReader) -> _Message:
    head = await reader.readuntil(b"\r\n\r\n")
    lengths = [
        int(line.partition(b":")[2])
        for line in head.lower().split(b"\r\n")
        if line.startswith(b"content-length:")
    ]
    return _Message(head, await reader.readexactly(sum(lengths)))
