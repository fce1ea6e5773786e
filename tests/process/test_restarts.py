"""Restarts while requests come: behind a balancer, with a socket of systemd, and upgrades."""

import os
import re
import signal
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from itertools import count
from pathlib import Path

import httpx
import pytest

from support.callers import Callers
from support.exploration import DEPTH
from support.full_stores import query
from support.postgres import PostgresServer, database_name
from support.process import (
    ServerProcess,
    StartServer,
    free_port,
    is_ready,
    petstore,
    serving,
)
from support.raw_socket import RawResponse, RawSocket
from support.redis_server import redis_server
from support.waiting import within

_THREADS = 3
_PAUSE = 0.01  # leaves the machine some time for what is starting
_CHECK_SECONDS = 0.05


class Balanced(httpx.HTTPTransport):
    """Sends each request to the next instance that was ready a moment ago, as a balancer does."""

    def __init__(self, ports: list[int]) -> None:
        super().__init__(trust_env=False)
        self._ports = ports
        self._ready: list[int] = []
        self._turn = count()
        self._checked_at = 0.0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if time.monotonic() > self._checked_at + _CHECK_SECONDS:
            urls = ((port, f"http://127.0.0.1:{port}") for port in self._ports)
            self._ready = [port for port, url in urls if is_ready(url)]
            self._checked_at = time.monotonic()
        port = self._ready[next(self._turn) % len(self._ready)]
        request.url = request.url.copy_with(port=port)
        return super().handle_request(request)


class Load(Callers):
    """Threads that add pets, each of its own name, and look for them, until the block ends.

    Every other thread makes a connection for each request. ``failures`` are requests that had
    another response than they should, or none.
    """

    def __init__(
        self,
        url: str,
        token: str,
        transport: Callable[[], httpx.BaseTransport] = httpx.HTTPTransport,
    ) -> None:
        self.names: list[str] = []
        self.failures: list[str] = []
        self._url = url
        self._transport = transport
        self._headers = {"Authorization": f"Bearer {token}"}
        self._numbers = count()
        super().__init__(self._go_on, _THREADS)

    def add_more(self, requests: int = 10) -> None:
        """Wait until so many more pets were added."""
        enough = len(self.names) + requests
        assert within(30, lambda: len(self.names) >= enough), self.failures

    def _go_on(self, number: int) -> None:
        keep_alive = number % 2 == 0
        headers = self._headers if keep_alive else {**self._headers, "Connection": "close"}
        with httpx.Client(
            base_url=f"{self._url}/v1", headers=headers, timeout=30, transport=self._transport()
        ) as client:
            while not self.stop.wait(_PAUSE):
                try:
                    self._add_and_look(client)
                except httpx.TransportError as error:
                    self.failures.append(f"{error!r} (kept alive: {keep_alive})")

    def _add_and_look(self, client: httpx.Client) -> None:
        name = f"pet {next(self._numbers)}"
        added = client.post("/pets", json={"name": name, "categoryId": 1})
        if added.status_code != 201:
            self.failures.append(f"POST {added.status_code} {added.text}")
            return
        self.names.append(name)
        found = client.get(f"/pets/{added.json()['id']}")
        if found.status_code != 200 or found.json()["name"] != name:
            self.failures.append(f"GET {found.status_code} {found.text}")


def stored_names(server: ServerProcess) -> list[str]:
    return [name for (name,) in query(server.database, "SELECT name FROM pets ORDER BY id")]


class Pair:
    """Two instances of the service at ``ports``, each restarted in its turn."""

    def __init__(self, folder: Path, database: str, *arguments: str) -> None:
        self.ports: list[int] = []
        self._new = partial(ServerProcess, folder, *arguments, database=database)
        self._running = [self._new(), self._new()]
        self._take_in(*self._running)

    @property
    def newest(self) -> ServerProcess:
        """The instance that was started last."""
        return self._running[-1]

    def restart(self) -> None:
        """Stop the older one; another begins to start while that serves its last requests."""
        leaving = self._running[0]
        leaving.process.send_signal(signal.SIGTERM)
        self._running.append(self._new())
        assert leaving.stop() == 0
        self.ports.remove(leaving.port)
        del self._running[0]
        self._take_in(self.newest)

    def end(self) -> None:
        for service in self._running:
            if service.process.poll() is None:
                service.kill()

    def _take_in(self, *services: ServerProcess) -> None:
        for service in services:
            service.wait_until_ready()
            self.ports.append(service.port)


@pytest.mark.explores
def test_rolling_restarts_behind_a_balancer_lose_no_request(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    with redis_server() as redis, ExitStack() as last:
        url = postgres.new_store()
        drain = ("--drain-timeout", "0.3")
        pair = Pair(tmp_path, url, "--redis", redis.url, *drain)
        last.callback(pair.end)
        with Load(pair.newest.url, pair.newest.issue(), partial(Balanced, pair.ports)) as load:
            for _ in range(2 * DEPTH):
                load.add_more()
                pair.restart()
            load.add_more()
        assert load.failures == []
        assert sorted(stored_names(pair.newest)) == sorted(load.names)


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
        with Load(server.url, token) as load:
            load.add_more()
            server.restart()
            load.add_more()
            server.restart(*options, "--max-body-bytes", "1024")
            load.add_more()
        assert load.failures == []
        assert sorted(stored_names(server)) == sorted(load.names)
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


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


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
    assert stored_names(server) == ["Bella"]


# An older version beside a newer schema

MIGRATION = """
    BEGIN;
    ALTER TABLE pets ADD COLUMN added_later TEXT;
    ALTER TABLE orders ADD COLUMN added_later BOOLEAN NOT NULL DEFAULT FALSE;
    ALTER TABLE api_keys ADD COLUMN added_later TEXT NOT NULL DEFAULT '';
    ALTER TABLE idempotency_records ADD COLUMN added_later BYTEA;
    CREATE TABLE made_later (id BIGINT PRIMARY KEY);
    UPDATE petstore_schema SET version = version + 1;
    COMMIT;
"""


def use(client: httpx.Client, number: int) -> list[int]:
    added = client.post(
        "/pets",
        json={"name": "Bella", "categoryId": 1, "status": "available"},
        headers={"Idempotency-Key": f"request-{number}"},
    )
    pet_id = added.json()["id"]
    return [
        added.status_code,
        client.get("/pets", params={"status": "available"}).status_code,
        client.post("/store/orders", json={"petId": pet_id}).status_code,
        client.patch(f"/pets/{pet_id}", json={"name": "Ada"}).status_code,
        client.get(f"/pets/{pet_id}").status_code,
        client.get("/store/orders").status_code,
        client.get("/usage").status_code,
    ]


def test_a_running_older_service_works_with_a_newer_schema_but_does_not_start(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    url, works = postgres.new_store(), [201, 200, 201, 200, 200, 200, 200]
    with serving(tmp_path, database=url) as old:
        headers = {"Authorization": f"Bearer {old.issue()}"}
        with httpx.Client(base_url=f"{old.url}/v1", headers=headers) as client:
            assert use(client, 1) == works
            postgres.sql(MIGRATION, database_name(url))
            assert use(client, 2) == works
        before = old.worker
        os.kill(before, signal.SIGKILL)  # the next worker is one of the old version, too
        assert within(30, lambda: before not in old.workers() and is_ready(old.url))
        with httpx.Client(base_url=f"{old.url}/v1", headers=headers) as client:
            assert use(client, 3) == works
        options = ("--port", str(free_port()), "--database", url)
        started = petstore("serve", *options, cwd=tmp_path)
    assert started.returncode == 1
    page = (Path(__file__).parents[2] / "docs/upgrading.md").read_text()
    last = started.stderr.splitlines()[-1]
    assert re.sub("[0-9]+", "N", last) in re.sub("[0-9]+", "N", page)
