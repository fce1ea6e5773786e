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
from itertools import count, cycle
from multiprocessing import get_context
from typing import Any, NamedTuple, TypeAlias, cast

import uvloop

from petstore.keys.model import new_token
from works import get, page_path, request

Kind: TypeAlias = Callable[["Caller"], Coroutine[Any, Any, None]]

_PIPELINE_BYTES = 256 * 1024
_CHUNKS = 65_000
_HEAD_BYTES = 60_000
_HOPS = 6_000
_PAGES = 100
_SLOW_BYTES_PER_SECOND = 60_000
_NICE = 10
_NO_KEY = b"GET /v1/pets HTTP/1.1\r\nHost: petstore\r\n"
_TOKENS = 1_000
_FILE_BYTES = 8 * 2**20 - 100
_COMMAS = b"name,categoryId\n" + b"," * _FILE_BYTES
_BLANK_LINES = b"name,categoryId\n" + b"\n" * _FILE_BYTES
_UPLOAD = (
    b"--edge\r\nContent-Disposition: form-data; name=file; filename=pets.csv\r\n\r\n"
    b"%b\r\n--edge--\r\n"
)


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

    def __init__(
        self, target: Target, number: int, seen: Counter[str], addresses: int, seconds: float
    ) -> None:
        self.target = target
        self.number = number
        self.seen = seen
        self.seconds = seconds
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
        assert self._transport is not None  # noqa: S101 - set once it is connected
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
    kind: Kind,
    target: Target,
    callers: int,
    addresses: int,
    seconds: float,
    after: float = 0,
    niceness: int = _NICE,
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
        told.send(uvloop.run(attack(kind, target, callers, addresses, seconds, after)))

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
    kind: Kind, target: Target, callers: int, addresses: int, seconds: float, after: float = 0
) -> Counter[str]:
    """Let so many callers do their worst for ``seconds``, and return what they saw.

    What takes longer is cut off ``after`` seconds later.
    """
    seen: Counter[str] = Counter()
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds + after), asyncio.TaskGroup() as group:
            for number in range(callers):
                group.create_task(
                    _until_cut(kind, Caller(target, number, seen, addresses, seconds))
                )
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


def pipeline(*lines: str) -> Kind:
    """Return callers that send 256 KiB of small requests at once and read nothing."""
    one = "\r\n".join((*lines, "", "")).encode()
    requests = one * (_PIPELINE_BYTES // len(one))

    async def pipelining(caller: Caller) -> None:
        async with caller.connection() as wire:
            await wire.send(requests)
            caller.seen["sent"] += 1
            await asyncio.Event().wait()

    return pipelining


@again
async def pipeline_and_read(caller: Caller) -> None:
    """Send requests without a key without a pause, and read the responses as fast as they come."""
    await _pipeline_and_read(caller, _NO_KEY + b"\r\n")


async def _pipeline_and_read(caller: Caller, one: bytes) -> None:
    requests = one * (_PIPELINE_BYTES // len(one))
    async with caller.connection() as wire, wire.sending(requests):
        while True:
            caller.seen[await wire.status()] += 1


@again
async def chunks(caller: Caller) -> None:
    """Send a pet without a key, in chunks of one byte."""
    async with caller.connection() as wire:
        await wire.send(CHUNKED)
        caller.seen[await wire.status()] += 1


CHUNKED = (
    b"POST /v1/pets HTTP/1.1\r\nHost: petstore\r\nContent-Type: application/json\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\n \r\n" * _CHUNKS + b"0\r\n\r\n"
)


async def head(caller: Caller) -> None:
    """Send a large head without an end."""
    async with caller.connection() as wire:
        await wire.send(_NO_KEY + b"Padding: ".ljust(_HEAD_BYTES - len(_NO_KEY), b"x"))
        caller.seen["sent"] += 1
        await wire.until_closed()


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
    await _pipeline_and_read(caller, get("/v1/pets/7", caller.target.limited))


@again
async def make_up_tokens(caller: Caller) -> None:
    """Send made-up tokens with a valid checksum."""
    await caller.ask(_gets(made_up_tokens()))


@again
async def mistype_tokens(caller: Caller) -> None:
    """Send made-up tokens with an invalid checksum."""
    await caller.ask(_gets([token[:-1] + "_" for token in made_up_tokens()]))


def _gets(tokens: list[str]) -> Iterator[bytes]:
    while True:
        yield get("/v1/pets/7", secrets.choice(tokens))


@cache
def made_up_tokens() -> list[str]:
    """Return tokens with a valid checksum."""
    return [new_token("production") for _ in range(_TOKENS)]


@again
async def forward_hops(caller: Caller) -> None:
    """Claim that a request passed thousands of trusted proxies."""
    await caller.ask(cycle([_forwarded(b"192.0.2.7" + b",127.0.0.1" * _HOPS)]))


@again
async def forward_zones(caller: Caller) -> None:
    """Claim that each request is from another address, with a zone of 60 kB."""
    begun, zone = secrets.token_hex(4).encode(), b"x" * _HEAD_BYTES
    await caller.ask(_forwarded(b"fe80::1%%%b%d%b" % (begun, n, zone)) for n in count())


def _forwarded(addresses: bytes) -> bytes:
    return _NO_KEY + b"X-Forwarded-For: " + addresses + b"\r\n\r\n"


def costly(method: str, path: str, body: str = "", line: str = "") -> Kind:
    """Return callers that ask with a key for what may take long to understand."""

    @again
    async def asking(caller: Caller) -> None:
        one = request(method, path, caller.target.unlimited, body)
        await caller.ask(cycle([_with_line(one, line) if line else one]))

    return asking


def _with_line(one: bytes, line: str) -> bytes:
    return one.replace(b"\r\n", f"\r\n{line}\r\n".encode(), 1)


# Files of the console


@again
async def work_on_files(caller: Caller) -> None:
    """Upload, export and download refused rows in the console, as large as they may be."""
    console = _Console(await _signed_in(caller))
    if caller.number % 3 == 0:
        await caller.ask(cycle([console.upload(_COMMAS), console.upload(_BLANK_LINES)]))
    elif caller.number % 3 == 1:
        await caller.ask(cycle([console.get("/export/pets.csv")]))
    else:
        head = await _asked(caller, console.upload(_COMMAS))
        path = head.partition(b"location: /console")[2].partition(b"\r\n")[0].decode()
        if not path:
            raise EOFError
        await caller.ask(cycle([console.get(f"{path}/refused.csv")]))


class _Console(NamedTuple):
    """The requests of a browser that is signed in."""

    cookie: str

    def get(self, path: str) -> bytes:
        """Return the request for a page."""
        return _browsed("GET", path, f"Cookie: {self.cookie}")

    def upload(self, content: bytes) -> bytes:
        """Return the form that imports a file."""
        body = _UPLOAD % content
        lines = f"Cookie: {self.cookie}\r\nContent-Type: multipart/form-data; boundary=edge"
        return _browsed("POST", "/import", lines, body)


async def _signed_in(caller: Caller) -> str:
    """Return the cookie of a new session."""
    form = f"key={caller.target.limited}".encode()
    lines = "Content-Type: application/x-www-form-urlencoded"
    head = await _asked(caller, _browsed("POST", "/sign-in", lines, form))
    return head.partition(b"set-cookie: ")[2].partition(b";")[0].decode()


async def _asked(caller: Caller, one: bytes) -> bytes:
    """Return the response to a request; its body may be cut off."""
    async with caller.connection() as wire:
        await wire.send(one)
        return await wire.receive()


def _browsed(method: str, path: str, lines: str, body: bytes = b"") -> bytes:
    head = (
        f"{method} /console{path} HTTP/1.1\r\nHost: petstore\r\nSec-Fetch-Site: same-origin\r\n"
        f"{lines}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


# Callers that do nothing wrong


async def read_slowly(caller: Caller) -> None:
    """Ask for large pages without an end, and read them slowly and steadily."""
    pages = get(page_path("available", 100), caller.target.unlimited) * _PAGES
    loop = asyncio.get_running_loop()
    async with caller.connection() as wire, wire.sending(pages):
        started = loop.time()
        while loop.time() < started + caller.seconds:
            due = (loop.time() - started) * _SLOW_BYTES_PER_SECOND - caller.seen["bytes read"]
            if due >= 1:
                caller.seen["bytes read"] += len(await wire.receive(int(due)))
            await asyncio.sleep(0.05)


async def stop(caller: Caller) -> None:
    """Ask on a new connection each time, while the first caller stops the service.

    Counts what had no response though it was sent.
    """
    if caller.number == 0:
        await asyncio.sleep(caller.seconds)
        os.kill(caller.target.pid, signal.SIGTERM)
        return
    one = _with_line(get("/v1/pets/7", caller.target.unlimited), "Connection: close")
    while True:
        async with caller.connection() as wire:
            try:
                await wire.send(one)
            except OSError:
                caller.seen["reset before sent"] += 1
                continue
            try:
                caller.seen[await wire.status()] += 1
            except (OSError, EOFError):
                caller.seen["reset when sent"] += 1
