"""Hostile clients: each kind is a coroutine for one client.

The callers run in a process of their own, which yields to the good client beside them on the core.
"""

import asyncio
import os
import secrets
import signal
import socket
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import cache
from itertools import cycle
from multiprocessing import get_context
from typing import Any, NamedTuple, TypeAlias, cast

import uvloop

from petstore.keys.model import new_token
from works import get, request

Kind: TypeAlias = Callable[["Caller"], Coroutine[Any, Any, None]]

_PIPELINE_BYTES = 256 * 1024
_CHUNKS = 65_000
_NO_KEY = b"GET /v1/pets HTTP/1.1\r\nHost: petstore\r\n"
_TOKENS = 1_000


class Target(NamedTuple):
    """A server under attack: port, first process, and tokens of two keys.

    ``unlimited`` is of a key without limits, ``limited`` of one with few requests a minute.
    """

    port: int
    pid: int
    unlimited: str
    limited: str


class Caller:
    """One hostile caller: whom it calls, which one it is, and from where; all count into ``seen``.

    Callers have ``addresses`` addresses between them.
    """

    def __init__(self, target: Target, number: int, seen: Counter[str], addresses: int) -> None:
        self.target = target
        self.number = number
        self.seen = seen
        self._address = address(number % addresses)

    @asynccontextmanager
    async def connection(self) -> AsyncIterator["Wire"]:
        """Connect until the block ends.

        Raises:
            OSError: nobody takes the connection.
        """
        with socket.socket() as caller:
            caller.settimeout(0)
            caller.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            caller.bind((self._address, 0))
            service = ("127.0.0.1", self.target.port)
            await asyncio.get_running_loop().sock_connect(caller, service)
            self.seen["connections"] += 1
            yield Wire(caller)

    async def ask(self, requests: Iterator[bytes]) -> None:
        """Send one request after the other on one connection, as fast as responses come.

        Raises:
            OSError: the connection was reset.
            EOFError: the connection was closed.
        """
        loop = asyncio.get_running_loop()
        ended = loop.create_future()
        asking = _Asking(requests, self.seen, ended)
        try:
            await loop.create_connection(
                lambda: asking, *("127.0.0.1", self.target.port), local_addr=(self._address, 0)
            )
            raise await ended or EOFError
        finally:
            asking.abort()


class _Asking(asyncio.Protocol):
    """A connection on which the next request goes out as soon as a response is whole.

    ``ended`` gets what the connection was lost to, if anything.
    """

    def __init__(
        self, requests: Iterator[bytes], seen: Counter[str], ended: asyncio.Future[Exception | None]
    ) -> None:
        self._requests = requests
        self._seen = seen
        self._ended = ended
        self._received = b""
        self._transport: asyncio.WriteTransport | None = None

    def abort(self) -> None:
        """Close the connection at once, even one that is cut off while it is being made."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the first request."""
        self._transport = cast("asyncio.WriteTransport", transport)
        self._seen["connections"] += 1
        self._send()

    def data_received(self, data: bytes) -> None:
        """Send the next request if the response is whole."""
        self._received += data
        size = _response_size(self._received)
        if size and len(self._received) >= size:
            self._seen[_status(self._received)] += 1
            self._received = b""
            self._send()

    def connection_lost(self, error: Exception | None) -> None:
        """Tell that it ended."""
        if not self._ended.done():
            self._ended.set_result(error)

    def _send(self) -> None:
        assert self._transport is not None
        self._transport.write(next(self._requests))


class Wire:
    """A connection as raw as its socket."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._loop = asyncio.get_running_loop()
        self._received = b""

    async def send(self, data: bytes) -> None:
        """Send bytes.

        Raises:
            OSError: the connection was reset.
        """
        await self._loop.sock_sendall(self._socket, data)

    @asynccontextmanager
    async def sending(self, data: bytes, pause: float = 0) -> AsyncIterator[None]:
        """Send bytes, again and again, ``pause`` seconds apart, while the block runs."""

        async def send() -> None:
            with suppress(OSError):
                while True:
                    await self.send(data)
                    await asyncio.sleep(pause)

        task = self._loop.create_task(send())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])

    async def status(self) -> str:
        """Read one response and return its status.

        Raises:
            OSError: the connection was reset.
            EOFError: the connection was closed.
        """
        while not (size := _response_size(self._received)) or len(self._received) < size:
            self._received += await self.receive()
        status, self._received = _status(self._received), self._received[size:]
        return status

    async def receive(self, size: int = 2**18) -> bytes:
        """Read what has come.

        Raises:
            OSError: the connection was reset.
            EOFError: the connection was closed.
        """
        data = await self._loop.sock_recv(self._socket, size)
        if not data:
            raise EOFError
        return data

    async def until_closed(self) -> None:
        """Read and forget, until the service closes the connection.

        Raises:
            OSError: the connection was reset.
            EOFError: the connection was closed.
        """
        while True:
            await self.receive()


def _response_size(received: bytes) -> int:
    """Return the bytes of the first response, or 0 if its head is not whole."""
    head, end, _ = received.partition(b"\r\n\r\n")
    if not end:
        return 0
    length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
    return len(head) + len(end) + int(length)


def _status(response: bytes) -> str:
    return response[9:12].decode()


@contextmanager
def attacking(
    kind: Kind, target: Target, callers: int, addresses: int, seconds: float, niceness: int
) -> Iterator[Counter[str]]:
    """Attack from a separate process; its results are available after the block.

    Raises:
        EOFError: the attack itself failed; standard error has said why.
    """
    fork = get_context("fork")
    outcome, told = fork.Pipe(duplex=False)

    def run() -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.nice(niceness)
        told.send(uvloop.run(attack(kind, target, callers, addresses, seconds)))

    process = fork.Process(target=run, daemon=True)
    process.start()
    told.close()
    seen: Counter[str] = Counter()
    try:
        yield seen
        seen.update(outcome.recv())
    finally:
        process.terminate()
        process.join()


async def attack(
    kind: Kind, target: Target, callers: int, addresses: int, seconds: float
) -> Counter[str]:
    """Let so many callers do their worst for ``seconds``, and return what they saw."""
    seen: Counter[str] = Counter()
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds), asyncio.TaskGroup() as group:
            for number in range(callers):
                group.create_task(_until_cut(kind, Caller(target, number, seen, addresses)))
    return seen


async def _until_cut(kind: Kind, caller: Caller) -> None:
    try:
        await kind(caller)
    except (OSError, EOFError):
        caller.seen["cut"] += 1


def again(kind: Kind) -> Kind:
    """Return the kind whose clients reconnect whenever their connection ends."""

    async def persistent(caller: Caller) -> None:
        while True:
            with suppress(OSError, EOFError):
                await kind(caller)
            await asyncio.sleep(0)

    return persistent


def address(number: int) -> str:
    """Return an address of the loopback network; the first is 127.0.0.1."""
    if number == 0:
        return "127.0.0.1"
    return f"127.1.{number // 250}.{number % 250 + 1}"


# Messages that are too many or too large, without a key


async def pipeline(caller: Caller) -> None:
    """Send 256 KiB of small requests at once, and read nothing."""
    one = b"GET / HTTP/1.1\r\nHost: petstore\r\n\r\n"
    async with caller.connection() as wire:
        await wire.send(one * (_PIPELINE_BYTES // len(one)))
        caller.seen["sent"] += 1
        await asyncio.Event().wait()


@again
async def chunks(caller: Caller) -> None:
    """Send a pet without a key, in chunks of one byte."""
    async with caller.connection() as wire:
        await wire.send(_CHUNKED)
        caller.seen[await wire.status()] += 1


_CHUNKED = (
    b"POST /v1/pets HTTP/1.1\r\nHost: petstore\r\nContent-Type: application/json\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\n \r\n" * _CHUNKS + b"0\r\n\r\n"
)


async def idle(caller: Caller) -> None:
    """Connect and say nothing."""
    async with caller.connection() as wire:
        await wire.until_closed()


async def drip_head(caller: Caller) -> None:
    """Send a head, a byte a second."""
    await _drip(caller, _NO_KEY + b"Padding: ")


async def drip_body(caller: Caller) -> None:
    """Send a body, a byte a second, with a key that has no limits."""
    whole = request("POST", "/v1/pets", caller.target.unlimited, " " * 1000)
    await _drip(caller, whole.rstrip(b" "))


async def _drip(caller: Caller, begun: bytes) -> None:
    async with caller.connection() as wire:
        await wire.send(begun)
        async with wire.sending(b" ", pause=1):
            await wire.until_closed()


# Requests that follow each other at full speed


@again
async def limited(caller: Caller) -> None:
    """Ask with a key that is at its limit."""
    await caller.ask(cycle([get("/v1/pets/7", caller.target.limited)]))


@again
async def limited_pipeline(caller: Caller) -> None:
    """Ask with a key that is at its limit, without waiting for the responses."""
    one = get("/v1/pets/7", caller.target.limited)
    requests = one * (_PIPELINE_BYTES // len(one))
    async with caller.connection() as wire, wire.sending(requests):
        while True:
            caller.seen[await wire.status()] += 1


@again
async def make_up_tokens(caller: Caller) -> None:
    """Send made-up tokens with a valid checksum."""
    await caller.ask(_gets_with_made_up_tokens())


def _gets_with_made_up_tokens() -> Iterator[bytes]:
    while True:
        yield get("/v1/pets/7", secrets.choice(_made_up_tokens()))


@cache
def _made_up_tokens() -> list[str]:
    return [new_token("production") for _ in range(_TOKENS)]


def costly(method: str, path: str, body: str = "") -> Kind:
    """Return callers that ask with a key for what may take long to understand."""

    @again
    async def asking(caller: Caller) -> None:
        await caller.ask(cycle([request(method, path, caller.target.unlimited, body)]))

    return asking
