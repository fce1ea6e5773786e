"""Responses: to clients that read slowly or not at all, of files, and within the budget."""

import asyncio
import socket
import struct
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from threading import Event
from typing import IO, cast

import pytest
from msgspec.structs import replace

from petstore.http.connection import BufferBudget, Connection
from petstore.http.messages import Receive, Request, Response
from support.raw_socket import ConnectionEnded, RawSocket
from support.served import CLOSING, GET, Echo, Served, in_memory, served
from support.waiting import within

CONTENT = bytes(range(256)) * 8192  # 2 MiB


@pytest.fixture
def app() -> Echo:
    """An application that echoes its requests."""
    return Echo()


@contextmanager
def slow_caller(server: Served, room: int = 4096) -> Iterator[socket.socket]:
    """Connect with ``room`` for so many bytes that have come and not been read."""
    with socket.socket() as caller:
        caller.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
        caller.connect(("127.0.0.1", server.port))
        caller.settimeout(30)
        yield caller


def read_all(client: socket.socket) -> bytes:
    return b"".join(iter(lambda: client.recv(1 << 20), b""))


def test_a_client_that_does_not_read_responses_is_disconnected(app: Echo) -> None:
    app.size = 50_000
    with (
        served(app, seconds=0.2) as server,
        slow_caller(server) as caller,
        pytest.raises(ConnectionError),
    ):
        caller.sendall(GET * 1_000_000)


def test_a_connection_beyond_the_budget_of_unread_responses_is_closed(app: Echo) -> None:
    app.size = 60_000
    with served(app, buffer_bytes=10_000) as server, slow_caller(server) as caller:
        caller.sendall(GET * 100)
        assert within(30, lambda: app.seen and in_memory(Connection) == 0)
        received = read_all(caller)
    assert len(received) < 100 * app.size


@contextmanager
def slow_callers(
    server: Served, count: int = 10, room: int = 4096
) -> Iterator[list[socket.socket]]:
    """Clients of large responses, of which a connection holds one piece apart."""
    with ExitStack() as opened:
        callers = [opened.enter_context(slow_caller(server, room)) for _ in range(count)]
        for caller in callers:
            caller.sendall(CLOSING)
        yield callers


def test_large_responses_of_connections_count_as_a_whole(app: Echo) -> None:
    app.size = 2_000_000
    limits = {"buffer_bytes": 4_000_000, "seconds": 60}
    with served(app, **limits) as server, slow_callers(server):
        assert within(30, lambda: len(app.seen) == 10 and in_memory(Connection) <= 4)


def test_large_responses_to_clients_that_read_are_not_cut_off(app: Echo) -> None:
    app.size, app.is_free = 100_000, lambda: len(app.seen) == 20  # all at the same time
    with (
        served(app, buffer_bytes=1_000_000) as server,
        slow_callers(server, 20, 1 << 20) as callers,
        ThreadPoolExecutor(20) as pool,
    ):
        received = [*pool.map(read_all, callers)]
    assert min(map(len, received)) > app.size


def test_connections_hold_a_shared_response_together(app: Echo) -> None:
    app.size, app.is_shared = 2_000_000, True
    with served(app, buffer_bytes=4_000_000) as server, slow_callers(server) as callers:
        assert within(30, lambda: len(app.seen) == 10)
        received = [b"".join(iter(partial(each.recv, 65536), b"")) for each in callers]
    assert all(one.endswith(b"." * app.size) for one in received)


@pytest.mark.parametrize("size", [300_000, 5_000_000])
def test_a_response_larger_than_the_budget_arrives_completely(app: Echo, size: int) -> None:
    app.size = size
    with served(app, buffer_bytes=200_000) as server, slow_caller(server) as caller:
        caller.sendall(CLOSING)
        assert within(30, lambda: bool(app.seen))
        time.sleep(0.1)
        received = read_all(caller)
    assert received.endswith(b"GET /? " + b"." * app.size)


@pytest.mark.parametrize("size", [60_000, 300_000])
def test_a_refusal_is_sent_once_however_slowly_it_is_read(app: Echo, size: int) -> None:
    app.size = size
    with served(app) as server, slow_caller(server, 2048) as caller:
        caller.sendall(GET * 20 + b"\0bad")
        time.sleep(0.3)
        received = read_all(caller)
    assert received.count(b"HTTP/1.1 200") == 20
    assert received.count(b"HTTP/1.1 400") == 1


def test_the_last_response_before_a_stop_is_not_cut_off(app: Echo) -> None:
    free = Event()
    app.size, app.is_free = 300_000, free.is_set
    with served(app) as server, RawSocket(server.port) as connection:
        connection.send(GET * 3_000)
        assert within(30, lambda: len(app.seen) == 1)
        server.stop()
        free.set()
        assert len(connection.read_response().body) > 300_000


def test_a_slow_reader_gets_the_responses_it_has_begun_to_read_during_a_stop(app: Echo) -> None:
    app.size = 60_000
    received = b""
    with (
        served(app, seconds=5) as server,
        RawSocket(server.port) as idle,
        slow_caller(server) as caller,
    ):
        caller.settimeout(0.3)
        with suppress(TimeoutError):
            caller.sendall(GET * 20_000)
        server.stop()
        assert idle.rest() == b""  # the server has ended what it could end at once
        caller.settimeout(30)
        while piece := caller.recv(65536):
            received += piece
            time.sleep(0.005)
    assert received.count(b"HTTP/1.1 200") == received.count(b"." * 60_000) > 0


@pytest.mark.parametrize(
    ("size", "requests", "seconds", "room", "of_kernel"),
    [
        (20_000_000, 1, 0.6, 65_536, 0),
        # The first bytes so slowly that the kernel takes nothing more from us for over 0.4 s.
        (100_000, 3, 0.4, 4096, 60_000),
    ],
)
def test_a_client_that_reads_slowly_but_steadily_is_not_disconnected(
    app: Echo, size: int, requests: int, seconds: float, room: int, of_kernel: int
) -> None:
    app.size = size
    with served(app, seconds=seconds) as server, slow_caller(server, room) as caller:
        caller.sendall(GET * requests)
        count = 0
        while count < requests * size:
            piece = caller.recv(600 if count < of_kernel else size // 16)
            assert piece
            count += len(piece)
            time.sleep(0.01)


# Files


class Files(Echo):
    """Responds with a file each time, and remembers the files."""

    def __init__(self, make: Callable[[], IO[bytes]]) -> None:
        super().__init__()
        self._make = make
        self.files: list[IO[bytes]] = []

    async def __call__(self, request: Request, receive: Receive) -> Response:
        echoed = await super().__call__(request, receive)
        file = self._make()
        response = Response(echoed.status, b"", [], file=file)
        response.headers.append(b"content-length: %d" % response.size)
        self.files.append(file)
        return response

    def has_closed_all(self) -> bool:
        return bool(self.files) and all(file.closed for file in self.files)


def test_a_file_larger_than_the_budget_is_read_only_as_the_client_reads(files: Files) -> None:
    with served(files, buffer_bytes=1 << 19) as server, slow_caller(server) as client:
        client.sendall(CLOSING)
        assert within(30, lambda: bool(files.files))
        assert not within(0.3, lambda: files.files[0].tell() > 512 * 1024)
        assert read_all(client).endswith(CONTENT)
    assert within(30, files.has_closed_all)


@pytest.mark.parametrize("has_begun", [True, False])
def test_the_file_of_a_client_that_has_disconnected_is_closed(
    files: Files, *, has_begun: bool
) -> None:
    is_free = Event()
    if not has_begun:
        files.is_free = is_free.is_set
    with served(files) as server, slow_caller(server) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.sendall(GET)
        assert within(30, lambda: bool(files.seen))
        assert not has_begun or client.recv(1) == b"H"
        client.close()
        assert within(30, lambda: server.connections == 0)
        is_free.set()
        assert within(30, files.has_closed_all)


def test_a_client_that_reads_nothing_of_a_file_is_disconnected(files: Files) -> None:
    with served(files, seconds=0.3) as server, slow_caller(server) as client:
        client.sendall(GET)
        assert within(30, files.has_closed_all)
        assert within(30, lambda: server.connections == 0)


def test_a_stop_waits_for_a_file_and_then_closes_its_connection(files: Files) -> None:
    with served(files) as server, slow_caller(server) as client:
        client.sendall(GET)
        assert within(30, lambda: bool(files.files))
        server.stop()
        server.thread.join(0.3)
        assert read_all(client).endswith(CONTENT)
    assert files.has_closed_all()


def test_a_file_that_cannot_be_read_ends_its_connection(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "file"
    path.write_bytes(CONTENT)
    files = Files(lambda: path.open("ab"))
    with served(files) as server, RawSocket(server.port) as connection:
        connection.send(GET)
        with pytest.raises(ConnectionEnded):
            connection.read_response()
        assert within(30, files.has_closed_all)
    assert "a response was not sent" in caplog.text


class Meeting(Echo):
    """Responds once two requests have met: to /bad with a status that cannot be written."""

    async def __call__(self, request: Request, receive: Receive) -> Response:
        response = await super().__call__(request, receive)
        while len(self.seen) < 2:  # noqa: ASYNC110 - the other one comes in a moment
            await asyncio.sleep(0.001)
        return replace(response, status=999) if request.path == "/bad" else response


def test_a_response_that_fails_ends_its_connection_and_none_that_is_sent_with_it() -> None:
    bad = GET.replace(b"/", b"/bad", 1)
    with (
        served(Meeting()) as server,
        RawSocket(server.port) as first,
        RawSocket(server.port) as second,
    ):
        first.send(bad)
        second.send(GET)
        assert second.read_response().status == 200
        assert first.rest() == b""


def test_responses_that_are_ready_together_go_each_to_its_own_client_in_order(app: Echo) -> None:
    app.is_free = lambda: len(app.seen) >= 40
    with served(app) as server, ExitStack() as opened:
        clients = [opened.enter_context(RawSocket(server.port)) for _ in range(40)]
        for number, client in enumerate(clients):
            client.send(b"".join(GET.replace(b"/", b"/%d-%d" % (number, n), 1) for n in range(3)))
        for number, client in enumerate(clients):
            bodies = [client.read_response().body for _ in range(3)]
            assert bodies == [b"GET /%d-%d? " % (number, n) for n in range(3)]


def file_with(content: bytes) -> IO[bytes]:
    file = TemporaryFile()  # noqa: SIM115 - the server closes it
    file.write(content)
    return file


@pytest.fixture
def files() -> Files:
    """An application that responds with large files."""
    return Files(lambda: file_with(CONTENT))


@pytest.mark.parametrize("content", [CONTENT, b""], ids=["large", "empty"])
def test_a_file_is_sent_from_its_beginning_and_closed(content: bytes) -> None:
    files = Files(lambda: file_with(content))
    with served(files) as server, RawSocket(server.port) as connection:
        connection.send(GET + GET)
        assert connection.read_response().body == content
        connection.finish_sending()  # such a client still gets all of a file
        assert connection.read_response().body == content
        assert within(30, files.has_closed_all)
    assert len(files.files) == 2


# Which connections close when all together buffer too much


class Waiter:
    """Notes when it has to give up what it buffers."""

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self.has_given_up = False

    def give_up(self) -> None:
        self.has_given_up = True


@pytest.mark.parametrize(
    ("owners", "notes", "given_up"),
    [
        ("ab", [(0, 50), (1, 50)], []),
        ("abc", [(0, 90), (0, 0), (1, 90), (2, 10)], []),  # released bytes do not count
        ("abcd", [(0, 20), (1, 50), (2, 10), (3, 21)], [1]),
        # Of equal ones it is the one that has been idle for longest.
        ("abcd", [(0, 30), (1, 30), (2, 30), (0, 30), (3, 30)], [1]),
        # Many small buffers of one owner count together.
        ("abbbbbbbb", [(0, 30), *((number, 10) for number in range(1, 9))], [1]),
        ("aaab", [(0, 30), (1, 30), (2, 30), (3, 50)], [0, 1]),  # only as much as needed
        ("a", [(0, 101), (0, 0)], [0]),
    ],
)
def test_beyond_the_budget_the_largest_buffer_of_the_largest_owner_is_dropped(
    owners: str, notes: list[tuple[int, int]], given_up: list[int]
) -> None:
    budget, waiters = BufferBudget(100), [Waiter(owner) for owner in owners]
    for number, size in notes:
        budget.note(cast("Connection", waiters[number]), size)
    assert [number for number, each in enumerate(waiters) if each.has_given_up] == given_up
