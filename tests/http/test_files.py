"""Responses with a file: sent as the client reads, and closed whatever happens."""

import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

import pytest

from petstore.http.messages import Receive, Request, Response
from support.raw_socket import ConnectionEnded, RawSocket
from support.served import Echo, Served, served
from support.waiting import within

GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
CLOSE = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
CONTENT = bytes(range(256)) * 8192  # 2 MiB


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


def large_file() -> IO[bytes]:
    file = TemporaryFile()  # noqa: SIM115 - the server closes it
    file.write(CONTENT)
    return file


@pytest.fixture
def app() -> Files:
    return Files(large_file)


@pytest.fixture
def server(app: Files) -> Iterator[Served]:
    with served(app) as server:
        yield server


@contextmanager
def slow_client(server: Served) -> Iterator[socket.socket]:
    """Connect, with little room for what has arrived."""
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", server.port))
        client.settimeout(30)
        yield client


def read_all(client: socket.socket) -> bytes:
    return b"".join(iter(lambda: client.recv(1 << 20), b""))


def test_a_file_is_sent_from_its_beginning_and_closed(server: Served, app: Files) -> None:
    with RawSocket(server.port) as connection:
        connection.send(GET + GET)
        assert connection.read_response().body == CONTENT
        assert connection.read_response().body == CONTENT
    assert within(30, app.has_closed_all)
    assert len(app.files) == 2


def test_an_empty_file_is_an_empty_body() -> None:
    app = Files(BytesIO)
    with served(app) as server, RawSocket(server.port) as connection:
        connection.send(GET + GET)
        for _ in range(2):
            response = connection.read_response()
            assert (response.status, response.body) == (200, b"")


def test_a_file_is_read_only_as_the_client_reads(server: Served, app: Files) -> None:
    with slow_client(server) as client:
        client.sendall(CLOSE)
        assert within(30, lambda: bool(app.files))
        assert not within(0.3, lambda: app.files[0].tell() > 512 * 1024)
        assert read_all(client).endswith(CONTENT)
    assert within(30, app.has_closed_all)


def test_a_file_larger_than_the_budget_arrives_completely(app: Files) -> None:
    with served(app, buffer_bytes=1 << 19) as server, slow_client(server) as client:
        client.sendall(CLOSE)
        assert within(30, lambda: bool(app.files))
        assert not within(0.1, app.has_closed_all)
        assert read_all(client).endswith(CONTENT)


def test_a_client_that_half_closes_still_gets_all_of_a_file(server: Served) -> None:
    with slow_client(server) as client:
        client.sendall(GET)
        client.shutdown(socket.SHUT_WR)
        assert read_all(client).endswith(CONTENT)


def test_the_file_of_a_client_that_has_disconnected_is_closed(server: Served, app: Files) -> None:
    with slow_client(server) as client:
        client.sendall(GET)
        assert client.recv(1) == b"H"
    assert within(30, app.has_closed_all)
    assert within(30, lambda: server.connections == 0)


def test_the_file_of_a_client_that_disconnected_before_its_response_is_closed(
    server: Served, app: Files
) -> None:
    is_free = list[bool]()
    app.is_free = lambda: bool(is_free)
    with slow_client(server) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.sendall(GET)
        assert within(30, lambda: bool(app.seen))
    assert within(30, lambda: server.connections == 0)
    is_free.append(True)
    assert within(30, app.has_closed_all)


def test_a_client_that_reads_nothing_of_a_file_is_disconnected(app: Files) -> None:
    with served(app, seconds=0.3) as server, slow_client(server) as client:
        client.sendall(GET)
        assert within(30, app.has_closed_all)
        assert within(30, lambda: server.connections == 0)


def test_a_stop_waits_for_a_file_and_then_closes_its_connection(app: Files) -> None:
    with served(app) as server, slow_client(server) as client:
        client.sendall(GET)
        assert within(30, lambda: bool(app.files))
        server.stop()
        server.thread.join(0.3)
        assert read_all(client).endswith(CONTENT)
    assert app.has_closed_all()


def test_a_file_that_cannot_be_read_ends_its_connection(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "file"
    path.write_bytes(CONTENT)
    app = Files(lambda: path.open("ab"))
    with served(app) as server, RawSocket(server.port) as connection:
        connection.send(GET)
        with pytest.raises(ConnectionEnded):
            connection.read_response()
        assert within(30, app.has_closed_all)
    assert "a response was not sent" in caplog.text
