"""Restarts while requests come: of instances behind a balancer, and of workers at SIGHUP."""

import os
import signal
import socket
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from itertools import count
from pathlib import Path

import httpx
import pytest

from support.balancer import Balancer
from support.callers import Callers
from support.exploration import DEPTH
from support.postgres import PostgresServer
from support.process import ServerProcess, petstore
from support.raw_socket import RawResponse, RawSocket
from support.redis_server import redis_server
from support.servers import StartServer
from support.shared_service import SharedService
from support.waiting import within

_THREADS = 3
_PAUSE = 0.01  # leaves the machine some time for what is starting


class Load(Callers):
    """Threads that add animals, each of its own name, and look for them, until the block ends.

    Every other thread makes a connection for each request. ``failures`` are requests that had
    another response than they should, or none.
    """

    def __init__(self, url: str, token: str) -> None:
        self.names: list[str] = []
        self.failures: list[str] = []
        self._url = url
        self._headers = {"Authorization": f"Bearer {token}"}
        self._numbers = count()
        super().__init__(self._go_on, _THREADS)

    def go_on(self, requests: int = 10) -> None:
        """Wait until so many more animals were added."""
        enough = len(self.names) + requests
        assert within(30, lambda: len(self.names) >= enough), self.failures

    def _go_on(self, number: int) -> None:
        keep_alive = number % 2 == 0
        headers = self._headers if keep_alive else {**self._headers, "Connection": "close"}
        with httpx.Client(base_url=f"{self._url}/v1", headers=headers, trust_env=False) as client:
            while not self.stop.wait(_PAUSE):
                try:
                    self._add_and_look(client)
                except httpx.TransportError as error:
                    self.failures.append(f"{error!r} (kept alive: {keep_alive})")

    def _add_and_look(self, client: httpx.Client) -> None:
        name = f"animal {next(self._numbers)}"
        added = client.post("/pets", json={"name": name, "categoryId": 1})
        if added.status_code != 201:
            self.failures.append(f"POST {added.status_code} {added.text}")
            return
        self.names.append(name)
        found = client.get(f"/pets/{added.json()['id']}")
        if found.status_code != 200 or found.json()["name"] != name:
            self.failures.append(f"GET {found.status_code} {found.text}")


def stored_names(server: ServerProcess) -> list[str]:
    """Return the names of all animals in the database of a service."""
    exported = petstore(
        *("pets", "export", "--format", "jsonl", "--database", server.database), cwd=server.folder
    )
    assert exported.returncode == 0, exported.stderr
    return [httpx.Response(200, text=line).json()["name"] for line in exported.stdout.splitlines()]


class Pair:
    """Two instances of the service behind a balancer, each restarted in its turn."""

    def __init__(self, balancer: Balancer, folder: Path, *arguments: str) -> None:
        self._balancer = balancer
        self._new = partial(SharedService, folder, *arguments)
        self._running = [self._new(), self._new()]
        self._take_in(*self._running)

    @property
    def newest(self) -> SharedService:
        """The instance that was started last."""
        return self._running[-1]

    def restart(self) -> None:
        """Stop the older one; another begins to start while that serves its last requests."""
        leaving = self._running[0]
        leaving.process.send_signal(signal.SIGTERM)
        self._running.append(self._new())
        assert leaving.stop() == 0
        self._balancer.remove(leaving.port)
        del self._running[0]
        self._take_in(self.newest)

    def end(self) -> None:
        """End the running instances."""
        for service in self._running:
            if service.process.poll() is None:
                service.kill()

    def _take_in(self, *services: SharedService) -> None:
        for service in services:
            service.wait_until_ready()
            self._balancer.add(service.port)
        assert within(30, lambda: self._balancer.ready() == 2)


@pytest.mark.explores
def test_restarts_in_turn_behind_a_balancer_cost_no_request(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    with redis_server() as redis, Balancer() as balancer, ExitStack() as last:
        url = postgres.new_store()
        drain = ("--drain-timeout", "0.3")
        pair = Pair(balancer, tmp_path, url, "--redis", redis.url, *drain)
        last.callback(pair.end)
        with Load(balancer.url, pair.newest.issue()) as load:
            for _ in range(3 * DEPTH):
                load.go_on()
                pair.restart()
            load.go_on()
        assert load.failures == []
        assert balancer.failures == []
        assert sorted(stored_names(pair.newest)) == sorted(load.names)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("signals", [1, 5])
def test_processes_are_replaced_at_sighup_without_a_failed_request(
    start: StartServer, workers: int, signals: int
) -> None:
    with redis_server() as redis:
        server = start("--workers", str(workers), "--redis", redis.url)
        with Load(server.url, server.issue()) as load:
            load.go_on()
            for _ in range(signals - 1):
                server.process.send_signal(signal.SIGHUP)
                load.go_on(1)
            reload(server, workers)
            load.go_on()
        assert load.failures == []
        assert sorted(stored_names(server)) == sorted(load.names)
        assert server.stop() == 0


@pytest.mark.parametrize("shares_limits", [False, True], ids=["alone", "with Redis"])
def test_limits_are_exact_across_sighup(
    start: StartServer,
    shares_limits: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    with redis_server() as redis:
        server = start("--drain-timeout", "0.3", *(("--redis", redis.url) if shares_limits else ()))
        headers = {"Authorization": f"Bearer {server.issue('business')}"}
        charged = 0

        def request_until(happened: Callable[[], bool]) -> None:
            nonlocal charged
            while not happened():
                assert httpx.get(f"{server.url}/v1/x", headers=headers).status_code == 404
                charged += 1
                time.sleep(_PAUSE)

        reload(server, meanwhile=request_until)
        day = httpx.get(f"{server.url}/v1/usage", headers=headers).json()["day"]
        assert day["remaining"] == day["limit"] - charged


def test_a_connection_without_a_request_is_left_to_the_next_process(start: StartServer) -> None:
    server = start("--drain-timeout", "2")
    old = server.worker
    server.process.send_signal(signal.SIGHUP)
    assert within(30, lambda: is_handing_over(server))
    with RawSocket(server.port) as caller:
        assert within(30, lambda: server.workers() not in ([], [old]))
        caller.send(b"GET /healthz HTTP/1.1\r\nHost: petstore\r\n\r\n")
        assert caller.read_response().status == 200


def test_a_stop_in_the_middle_of_a_replacement_ends_all_in_time(start: StartServer) -> None:
    with redis_server() as redis:
        server = start("--workers", "4", "--redis", redis.url, "--drain-timeout", "2")
        server.process.send_signal(signal.SIGHUP)
        assert within(30, lambda: is_handing_over(server))
        started = time.monotonic()
        assert server.stop() == 0
        # Together, not one after another.
        assert time.monotonic() - started < 8


def test_a_service_that_stops_in_the_middle_of_a_replacement_sends_callers_away_first(
    start: StartServer,
) -> None:
    server = start("--drain-timeout", "3")
    server.process.send_signal(signal.SIGHUP)
    assert within(30, lambda: is_handing_over(server))
    assert status_of(server, "/readyz") == 200
    server.process.send_signal(signal.SIGTERM)
    server.process.send_signal(signal.SIGHUP)  # it changes nothing any more
    assert within(30, lambda: status_of(server, "/readyz") == 503)
    assert server.stop() == 0


def test_a_request_that_never_ends_does_not_keep_sighup_from_its_end(start: StartServer) -> None:
    server = start("--shutdown-timeout", "2", "--body-timeout", "60")
    token = server.issue()
    with RawSocket(server.port) as caller:
        caller.begin_post(token)
        reload(server)
        assert caller.rest() == b""
    assert status_of(server, "/readyz") == 200


def reload(
    server: ServerProcess,
    workers: int = 1,
    meanwhile: Callable[[Callable[[], bool]], None] | None = None,
) -> None:
    """Send SIGHUP, and return once others have taken the places of the processes there are."""
    old = set(server.workers())

    def are_replaced() -> bool:
        there = set(server.workers())
        return len(there) == workers and not there & old

    server.process.send_signal(signal.SIGHUP)
    if meanwhile is not None:
        meanwhile(are_replaced)
    assert within(30, are_replaced)


def get(server: ServerProcess, path: str) -> RawResponse:
    """Ask on a connection of its own, faster than a client of httpx is made."""
    with RawSocket(server.port) as caller:
        caller.send(f"GET {path} HTTP/1.1\r\nHost: petstore\r\n\r\n".encode())
        return caller.read_response()


def is_handing_over(server: ServerProcess) -> bool:
    """Return whether the process that responds is about to be replaced."""
    return "connection" in get(server, "/healthz").fields


def is_refusing(server: ServerProcess) -> bool:
    """Return whether new connections are refused."""
    try:
        socket.create_connection(("127.0.0.1", server.port)).close()
    except ConnectionRefusedError:
        return True
    return False


def status_of(server: ServerProcess, path: str) -> int:
    return get(server, path).status


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_after_a_stop_signal_it_serves_on_for_a_while_and_sends_callers_away(
    start: StartServer, number: signal.Signals
) -> None:
    server = start("--drain-timeout", "3")
    headers = {"Authorization": f"Bearer {server.issue()}"}
    started = time.monotonic()
    with httpx.Client(base_url=server.url, headers=headers) as kept_alive:
        assert "Connection" not in kept_alive.get("/v1/pets").headers
        server.process.send_signal(number)
        assert within(30, lambda: status_of(server, "/readyz") == 503)
        added = kept_alive.post("/v1/pets", json={"name": "Bella", "categoryId": 1})
        assert added.status_code == 201
        assert added.headers["Connection"] == "close"
        # Further signals change nothing.
        os.kill(server.worker, number)
        server.process.send_signal(number)
        unready = kept_alive.get("/readyz")
        assert (unready.status_code, unready.json()) == (503, {"status": "stopping"})
        assert kept_alive.get("/healthz").status_code == 200
    assert within(30, lambda: is_refusing(server))
    assert time.monotonic() - started >= 3
    assert server.stop() == 0


def test_a_request_late_in_the_drain_timeout_gets_its_response(start: StartServer) -> None:
    server = start("--drain-timeout", "2")
    token = server.issue()
    body = b'{"name": "Rex", "categoryId": 1}'
    server.process.send_signal(signal.SIGTERM)
    assert within(30, lambda: status_of(server, "/readyz") == 503)
    with RawSocket(server.port) as caller:
        caller.send(
            b"POST /v1/pets HTTP/1.1\r\nHost: petstore\r\nExpect: 100-continue\r\n"
            + f"Authorization: Bearer {token}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        )
        assert caller.read_response().status == 100
        assert within(30, lambda: is_refusing(server))
        caller.send(body)
        assert caller.read_response().status == 201
    assert server.stop() == 0
    assert stored_names(server) == ["Rex"]


def test_a_lame_time_that_leaves_no_time_to_stop_is_refused(tmp_path: Path) -> None:
    ended = petstore("serve", "--shutdown-timeout", "5", "--drain-timeout", "3.1", cwd=tmp_path)
    assert ended.returncode == 2
    assert ended.stderr.endswith("--drain-timeout: expected at most --shutdown-timeout less 2\n")
