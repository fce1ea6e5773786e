"""Restarts while requests come: behind a load balancer, with a socket of systemd, and upgrades."""

import os
import signal
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from itertools import count
from pathlib import Path

import httpx
import pytest

from support.callers import Customers
from support.exploration import DEPTH
from support.full_stores import query
from support.postgres import PostgresServer
from support.process import ServerProcess, StartServer, free_port, is_ready, listens
from support.raw_socket import RawResponse, RawSocket
from support.redis_server import redis_server
from support.waiting import within

_PAUSE = 0.01  # leaves the machine some time for what is starting


class Balanced(httpx.HTTPTransport):
    """Sends each request to the next instance that was lately ready, as a load balancer does."""

    def __init__(self, ports: list[int]) -> None:
        super().__init__(trust_env=False)
        self._ports = ports
        self._ready: list[int] = []
        self._turn = count()
        self._checked_at = 0.0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if time.monotonic() > self._checked_at + 0.05:
            ports = list(self._ports)  # another thread takes one out while these are asked
            self._ready = [port for port in ports if is_ready(f"http://127.0.0.1:{port}")]
            self._checked_at = time.monotonic()
        port = self._ready[next(self._turn) % len(self._ready)]
        request.url = request.url.copy_with(port=port)
        return super().handle_request(request)


def assert_every_request_was_served(buyers: Customers, server: ServerProcess) -> None:
    """Check that all changes were acknowledged, and that each is there once."""
    assert (set(buyers.statuses), set(buyers.reads)) == ({201}, {200})
    for table, acknowledged in (("pets", buyers.pets), ("orders", buyers.orders)):
        stored = query(server.database, f"SELECT id FROM {table} ORDER BY id")  # noqa: S608 - a name
        assert stored == [(each,) for each in sorted(acknowledged)]


@pytest.mark.explores
def test_rolling_restarts_behind_a_balancer_lose_no_request(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    ports: list[int] = []
    with redis_server() as redis, ExitStack() as last:
        options = ("--redis", redis.url, "--drain-timeout", "0.3")
        new = partial(ServerProcess, tmp_path, *options, database=postgres.new_store())

        def take_in(service: ServerProcess) -> ServerProcess:
            last.callback(service.stop)
            service.wait_until_ready()
            ports.append(service.port)
            return service

        older, newer = map(take_in, [new(), new()])
        with Customers(newer, newer.issue(), partial(Balanced, ports), _PAUSE) as buyers:
            for _ in range(2 * DEPTH):
                buyers.order_more(5)
                older.process.send_signal(signal.SIGTERM)
                following = new()  # begins to start while the older one serves its last requests
                assert older.stop() == 0
                ports.remove(older.port)
                older, newer = newer, take_in(following)
            buyers.order_more(5)
        assert_every_request_was_served(buyers, newer)


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """A listening socket that is open all the time, as systemd has it."""
    with socket.create_server(("127.0.0.1", 0), backlog=4096) as listener:
        yield listener


@pytest.mark.parametrize("workers", [1, 2])
def test_restarts_with_a_socket_of_systemd_cost_no_request_and_apply_changed_settings(
    start: StartServer, listener: socket.socket, workers: int
) -> None:
    with redis_server() as redis:
        options = ("--workers", str(workers), "--redis", redis.url, "--drain-timeout", "1")
        server = start(*options, listener=listener)
        token = server.issue()
        with Customers(server, token, pause=_PAUSE) as buyers:
            buyers.order_more(5)
            server.restart()
            buyers.order_more(5)
            server.restart(*options, "--max-body-bytes", "1024")
            buyers.order_more(5)
        assert_every_request_was_served(buyers, server)
        headers = {"Authorization": f"Bearer {token}"}
        large = httpx.post(f"{server.url}/v1/pets", headers=headers, content=b" " * 1025)
        assert large.status_code == 413
        assert server.stop() == 0


def test_limits_in_memory_are_exact_across_a_restart(
    start: StartServer, listener: socket.socket
) -> None:
    server = start("--drain-timeout", "0.3", listener=listener)
    charged = 0
    headers = {"Authorization": f"Bearer {server.issue('business')}", "Connection": "close"}
    with (
        httpx.Client(base_url=f"{server.url}/v1", headers=headers, timeout=30) as client,
        ThreadPoolExecutor(1) as thread,
    ):
        restarting = thread.submit(server.restart)
        while not restarting.done():
            assert client.get("/x").status_code == 404
            charged += 1
            time.sleep(_PAUSE)
        restarting.result()
        day = client.get("/usage").json()["day"]
        assert day["remaining"] == day["limit"] - charged


def test_a_request_in_progress_is_finished_while_new_ones_wait_for_the_next_process(
    start: StartServer, listener: socket.socket
) -> None:
    server = start("--body-timeout", "60", "--drain-timeout", "1", listener=listener)
    ask = b"GET /readyz HTTP/1.1\r\nHost: petstore\r\n\r\n"
    with RawSocket(server.port) as caller, RawSocket(server.port) as idle:
        caller.begin_post(server.issue())
        idle.send(ask)
        assert idle.read_response().status == 200
        server.process.send_signal(signal.SIGTERM)
        assert within(30, lambda: "connection" in get(server, "/healthz").fields)  # it is draining
        with RawSocket(server.port) as silent:
            assert idle.rest() == b""  # closed: from now on nothing is accepted
            with RawSocket(server.port) as late:
                late.send(ask)
                caller.send(b"no object")
                assert caller.read_response().status == 400
                server.restart()
                assert late.read_response().status == 200
            silent.send(ask)  # the next process accepts a connection without a request
            response = silent.read_response()
            assert (response.status, "connection" in response.fields) == (200, False)


def test_the_socket_of_systemd_wins_over_the_port_and_systemd_is_told_of_start_and_stop(
    start: StartServer, listener: socket.socket, tmp_path: Path
) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(30)
        env = {"NOTIFY_SOCKET": str(tmp_path / "notify")}
        server = start("--port", str(free_port()), listener=listener, env=env)
        assert (
            manager.recv(1000).decode() == f"READY=1\nSTATUS=Serving at {server.url}, processes: 1"
        )
        assert server.process.stdout is not None
        assert server.process.stdout.readline() == f"Petstore is at  {server.url}/v1\n"
        assert server.stop() == 0
        assert manager.recv(1000) == b"STOPPING=1\nSTATUS=Stopping"
    started, *others = (line for line in server.log_lines() if line["event"] != "request")
    assert (started["event"], started["url"]) == ("started", server.url)
    assert [line["event"] for line in others] == ["stop_started", "stopped"]


def get(server: ServerProcess, path: str) -> RawResponse:
    """Ask on a connection of its own, faster than a client of httpx is made."""
    with RawSocket(server.port) as caller:
        caller.send(f"GET {path} HTTP/1.1\r\nHost: petstore\r\n\r\n".encode())
        return caller.read_response()


def test_after_a_stop_signal_the_service_drains_clients_until_the_drain_timeout(
    start: StartServer,
) -> None:
    server = start("--drain-timeout", "2")
    token = server.issue()
    started = time.monotonic()
    with (
        httpx.Client(
            base_url=server.url, headers={"Authorization": f"Bearer {token}"}
        ) as kept_alive,
        RawSocket(server.port) as late,
    ):
        assert "Connection" not in kept_alive.get("/v1/pets").headers
        server.process.send_signal(signal.SIGTERM)
        assert within(30, lambda: get(server, "/readyz").status == 503)
        added = kept_alive.post("/v1/pets", json={"name": "Bella", "categoryId": 1})
        assert added.status_code == 201
        assert added.headers["Connection"] == "close"
        # Further signals change nothing.
        for number in (signal.SIGTERM, signal.SIGINT):
            os.kill(server.worker, number)
            server.process.send_signal(number)
        unready = kept_alive.get("/readyz")
        assert (unready.status_code, unready.json()) == (503, {"status": "stopping"})
        assert kept_alive.get("/healthz").status_code == 200
        # A request that begins late in the drain timeout gets its response.
        late.begin_post(token)
        assert within(30, lambda: not listens(server.port))
        assert time.monotonic() - started >= 2
        late.send(b"no object")
        assert late.read_response().status == 400
    assert server.stop() == 0
    assert query(server.database, "SELECT name FROM pets") == [("Bella",)]
