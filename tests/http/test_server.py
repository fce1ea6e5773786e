"""How many connections are open, and how long they may be silent."""

import asyncio
import gc
import os
import resource
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from petstore.http.messages import Receive, Request, Response
from petstore.http.server import ConnectionLimits, HttpServer
from petstore.server.listeners import listen
from support.process import free_port, is_ready
from support.raw_socket import ConnectionEnded, RawSocket
from support.served import CLOSING, GET, Echo, served
from support.waiting import within


@contextmanager
def files_used_up() -> Iterator[None]:
    """Leave this process no number for another file, until the block ends."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    gc.collect()  # what earlier tests left would be closed meanwhile
    with ExitStack() as opened:
        numbers = [int(file.name) for file in Path("/proc/self/fd").iterdir()]
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(numbers), limits[1]))
        try:
            with suppress(OSError):
                while True:
                    opened.enter_context(socket.socket())
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_a_client_waits_until_a_connection_is_free() -> None:
    with served(Echo(), connections=2) as server, ExitStack() as stack:
        first, second, third, fourth = (
            stack.enter_context(RawSocket(server.port)) for _ in range(4)
        )
        for connection in (first, second, third, fourth):
            connection.send(GET)
        assert first.read_response().status == second.read_response().status == 200
        assert third.is_silent()
        first.close()
        assert third.read_response().status == 200
        third.close()
        assert fourth.read_response().status == 200


def test_a_running_request_can_take_longer_than_the_header_timeout() -> None:
    app, free = Echo(), list[bool]()
    app.is_free = lambda: bool(free)
    with served(app, seconds=0.1) as server, RawSocket(server.port) as connection:
        connection.send(GET)
        time.sleep(0.4)
        free.append(True)
        assert connection.read_response().status == 200


def test_clients_wait_while_there_are_no_free_file_descriptors() -> None:
    with served(Echo()) as server, socket.socket() as caller:
        caller.settimeout(30)
        with files_used_up():
            caller.connect(("127.0.0.1", server.port))
            caller.sendall(GET)
            time.sleep(0.3)
        assert caller.recv(15) == b"HTTP/1.1 200 OK"


@pytest.mark.anyio
async def test_a_client_that_is_being_accepted_during_a_stop_is_disconnected() -> None:
    listener = listen("127.0.0.1", 0)
    server = HttpServer(Echo(), listener, ConnectionLimits(seconds=60))
    serving = asyncio.create_task(server.serve())
    await asyncio.sleep(0)
    with socket.create_connection(listener.getsockname(), 30) as caller:
        server.stop()  # accepts it
        time.sleep(0.15)  # noqa: ASYNC251 - a busy loop, which accepts it later than it is to
        await asyncio.wait_for(serving, 30)
        assert caller.recv(1) == b""


@pytest.mark.anyio
async def test_clients_waiting_to_be_accepted_at_a_stop_get_their_responses() -> None:
    listener = listen("127.0.0.1", 0)
    server = HttpServer(Echo(), listener, ConnectionLimits())
    serving = asyncio.create_task(server.serve())
    await asyncio.sleep(0)
    with ExitStack() as stack:
        # The loop accepts none of them before the stop.
        callers = [
            stack.enter_context(socket.create_connection(listener.getsockname(), 30))
            for _ in range(40)
        ]
        for caller in callers:
            caller.sendall(GET)
        server.stop()
        await asyncio.wait_for(serving, 30)
        assert {caller.recv(15) for caller in callers} == {b"HTTP/1.1 200 OK"}


@pytest.mark.anyio
async def test_processes_share_the_clients_that_connect_at_once() -> None:
    with listen("127.0.0.1", 0) as shared, ExitStack() as stack:
        servers = [HttpServer(Echo(), shared.dup(), ConnectionLimits()) for _ in range(2)]
        for _ in range(24):
            stack.enter_context(socket.create_connection(shared.getsockname(), 30))
        serving = [asyncio.create_task(server.serve()) for server in servers]
        while sum(one.connections for one in servers) < 24:  # noqa: ASYNC110 - turns, not time
            await asyncio.sleep(0)
        assert [one.connections for one in servers] == [12, 12]
        for server in servers:
            server.stop()
        await asyncio.wait_for(asyncio.gather(*serving), 30)


@pytest.mark.anyio
async def test_clients_that_wait_at_a_shared_socket_are_left_to_the_next_server() -> None:
    with listen("127.0.0.1", 0) as shared:
        first, second = (HttpServer(Echo(), shared.dup(), ConnectionLimits()) for _ in range(2))
        serving = asyncio.create_task(first.serve())
        await asyncio.sleep(0)
        with socket.create_connection(shared.getsockname(), 30) as caller:
            caller.sendall(GET)
            first.stop(leaves_waiting=True)
            await asyncio.wait_for(serving, 30)
            serving = asyncio.create_task(second.serve())
            response = await asyncio.to_thread(caller.recv, 15)
            assert response == b"HTTP/1.1 200 OK"
        second.stop()
        await asyncio.wait_for(serving, 30)


@pytest.mark.parametrize(
    "limits", [{"per_address": 2}, {"connections": 8, "per_address": 0}], ids=["two", "a quarter"]
)
def test_the_connections_of_an_address_are_limited(
    caplog: pytest.LogCaptureFixture, limits: dict[str, int]
) -> None:
    def responds() -> bool:
        with RawSocket(server.port) as caller:
            caller.send(GET)
            try:
                return caller.read_response().status == 200
            except (ConnectionEnded, ConnectionError):
                return False

    with served(Echo(), **limits) as server, ExitStack() as stack:
        for _ in range(2):
            caller = stack.enter_context(RawSocket(server.port))
            caller.send(GET)
            assert caller.read_response().status == 200
        for _ in range(2):
            assert stack.enter_context(RawSocket(server.port)).rest() == b""
        caller.close()
        assert within(30, responds)
    assert caplog.text.count("127.0.0.1 has 2 connections, the maximum") == 1


def test_beyond_the_budget_for_unfinished_headers_the_largest_are_refused() -> None:
    with served(Echo(), buffer_bytes=30_000) as server, ExitStack() as stack:
        callers = [stack.enter_context(RawSocket(server.port)) for _ in range(3)]
        for caller, size in zip(callers, (10_000, 12_000, 9_000), strict=True):
            caller.send(GET[:-2] + b"X: " + b"y" * size)
            time.sleep(0.05)
        refused = callers[1].read_response()
        assert (refused.status, refused.fields["connection"]) == (503, "close")
        for caller in (callers[0], callers[2]):
            caller.send(b"\r\n\r\n")
            assert caller.read_response().status == 200


def test_a_client_that_does_not_close_after_its_last_response_does_not_delay_a_stop() -> None:
    with served(Echo(), seconds=60) as server, ExitStack() as stack:
        first, second = (stack.enter_context(RawSocket(server.port)) for _ in range(2))
        for caller in (first, second):
            caller.send(CLOSING)
            assert caller.read_response().status == 200
        server.stop()
        time.sleep(0.15)
        first.close()
        server.thread.join(30)
        assert not server.thread.is_alive()


def test_a_request_that_was_sent_as_the_stop_began_gets_its_response() -> None:
    with served(Echo()) as server, ExitStack() as stack:
        callers = [stack.enter_context(RawSocket(server.port)) for _ in range(60)]
        server.stop()
        for caller in callers:
            caller.send(GET)
        assert [caller.read_response().status for caller in callers] == [200] * 60


def test_of_what_waits_at_a_stop_a_request_is_served_and_an_incomplete_one_is_dropped() -> None:
    app, free = Echo(), list[bool]()
    app.is_free = lambda: bool(free)
    with (
        served(app) as server,
        RawSocket(server.port) as caller,
        RawSocket(server.port) as half_closed,
    ):
        caller.send(GET + GET[:10])
        half_closed.send(GET * 40)
        assert within(30, lambda: len(app.seen) == 2)
        server.stop()
        half_closed.finish_sending()
        time.sleep(0.2)
        free.append(True)
        assert half_closed.read_response().status == 200
        assert caller.read_response().fields["connection"] == "close"
        assert caller.rest() == b""


@pytest.mark.parametrize("leaves", ["closes", "ends its side", "resets"])
def test_a_disconnect_during_a_long_poll_is_noticed(leaves: str) -> None:
    lost = list[str]()

    class LongPoll(Echo):
        async def __call__(self, request: Request, receive: Receive) -> Response:
            request.on_lost = lambda: lost.append(request.path)
            return await super().__call__(request, receive)

    app = LongPoll()
    app.is_free = lambda: bool(lost)
    with served(app) as server:
        caller = socket.create_connection(("127.0.0.1", server.port), 30)
        caller.sendall(GET)
        assert within(30, lambda: app.seen)
        assert lost == []
        if leaves == "ends its side":
            caller.shutdown(socket.SHUT_WR)
            assert caller.recv(1) == b""
        elif leaves == "resets":
            caller.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        caller.close()
        assert within(30, lambda: lost == ["/"])
        assert within(30, lambda: server.connections == 0)


# How many connections the limit of open files allows


@pytest.mark.parametrize(
    ("connections", "room", "files"), [(10, 10, 512), (2000, 2000, 2100), (20_000, 3996, 4096)]
)
def test_the_open_file_limit_is_raised_for_connections_or_limits_them(
    connections: int, room: int, files: int
) -> None:
    code = (
        "from petstore.http.server import room_for; from resource import *;"
        "setrlimit(RLIMIT_NOFILE, (512, 4096));"
        f"print(room_for({connections}), *getrlimit(RLIMIT_NOFILE))"
    )
    said = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert said == f"{room} {files} 4096\n"


def limited(hard: int, *arguments: str) -> list[str]:
    """Return a command that runs ``petstore`` with so many open files at most."""
    program = (sys.executable, "-m", "petstore", *arguments)
    return ["/bin/sh", "-c", f'ulimit -n {hard} && exec "$@"', "sh", *program]


@pytest.mark.parametrize(("hard", "connections", "minimum"), [(199, 20_000, 200), (109, 10, 110)])
def test_too_few_open_files_are_refused_before_an_address_is_printed(
    tmp_path: Path, hard: int, connections: int, minimum: int
) -> None:
    refused = subprocess.run(
        limited(hard, "serve", "--max-connections", str(connections)),
        cwd=tmp_path,
        env={**os.environ, "PETSTORE_LOG_FORMAT": "text"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr == (
        f"Error: the limit of open files is {hard}; expected at least {minimum} (ulimit -Hn)\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_the_service_works_with_the_fewest_open_files_it_accepts(tmp_path: Path) -> None:
    port = free_port()
    with subprocess.Popen(
        limited(110, "serve", "--port", str(port), "--max-connections", "10"),
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            assert within(30, lambda: is_ready(f"http://127.0.0.1:{port}"))
        finally:
            process.terminate()
