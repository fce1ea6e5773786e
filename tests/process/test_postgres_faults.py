"""The service while PostgreSQL is stopped, killed, hanging or cutting connections."""

import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from petstore.keys.model import new_token
from support.callers import Customers
from support.command import Command
from support.postgres import PASSWORD, PostgresServer, database_name, postgres_server
from support.process import ServerProcess, free_port, is_ready, petstore, serving
from support.redis_server import redis_server
from support.waiting import within

LONGEST = 20
"""Max seconds for a response. On a busy machine this detects a hang, not its exact length."""

NEW = {"name": "Bella", "categoryId": 1, "status": "available"}
# The token of an unknown key, which needs a look-up.
STRANGER = {"Authorization": f"Bearer {new_token('production')}"}


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A server that a test may stop; it starts it again."""
    with postgres_server() as server:
        yield server


@pytest.fixture(scope="module")
def url(server: PostgresServer) -> str:
    return server.guarded_url(server.new_store())


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, url: str) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("service")
    with serving(folder, "--database-timeout", "0.5", database=url) as service:
        yield service
    assert PASSWORD not in service.log_path.read_text()


@pytest.fixture(scope="module")
def token(service: ServerProcess) -> str:
    return service.issue()


@contextmanager
def client_of(service: ServerProcess, token: str) -> Iterator[httpx.Client]:
    """Give a client that adds pets, and waits for no response that hangs."""
    headers = {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=f"{service.url}/v1", headers=headers, timeout=LONGEST) as client:
        assert within(30, lambda: works(client))
        yield client


@pytest.fixture
def client(service: ServerProcess, token: str) -> Iterator[httpx.Client]:
    with client_of(service, token) as client:
        yield client


def stored_ids(server: PostgresServer, url: str, table: str) -> set[int]:
    rows = server.sql(f"SELECT id FROM {table}", database_name(url))  # noqa: S608
    return set(map(int, rows.split()))


def assert_unavailable(response: httpx.Response) -> None:
    assert response.status_code == 503
    assert response.json()["code"] == "service_unavailable"
    assert int(response.headers["Retry-After"]) >= 1


def assert_all_is_refused(client: httpx.Client) -> None:
    asks: list[Callable[[], httpx.Response]] = [
        lambda: client.post("/pets", json=NEW),
        lambda: client.post("/store/orders", json={"petId": 1}),
        lambda: client.get("/pets"),
        lambda: client.get("/pets", headers=STRANGER),
    ]
    with ThreadPoolExecutor() as threads:
        for response in threads.map(lambda ask: ask(), asks):
            assert_unavailable(response)


def works(client: httpx.Client) -> bool:
    read, written = client.get("/pets"), client.post("/pets", json=NEW)
    return (read.status_code, written.status_code) == (200, 201)


@contextmanager
def down(server: PostgresServer, mode: str) -> Iterator[None]:
    """Stop, kill or freeze PostgreSQL until the block ends."""
    if mode == "hanging":
        with server.stopped():
            yield
        return
    server.kill() if mode == "kill" else server.stop(mode)
    try:
        yield
    finally:
        server.start()


@pytest.mark.parametrize("mode", ["fast", "immediate", "kill", "hanging"])
def test_without_postgresql_requests_are_refused_in_time_until_it_is_back(
    server: PostgresServer, service: ServerProcess, client: httpx.Client, mode: str
) -> None:
    with down(server, mode):
        assert_all_is_refused(client)
        assert not is_ready(service.url)
    assert within(30, lambda: works(client))
    assert is_ready(service.url)


def test_while_postgresql_hangs_a_key_missing_in_redis_is_refused_in_time(
    server: PostgresServer, tmp_path: Path, url: str
) -> None:
    """A request that waits for several things gets its response in time too."""
    with (
        redis_server() as redis,
        serving(
            tmp_path, "--database-timeout", "1.2", "--redis", redis.url, database=url
        ) as service,
        client_of(service, service.issue()) as client,
    ):
        redis.call("FLUSHALL")
        with server.stopped():
            assert_all_is_refused(client)
        assert within(30, lambda: works(client))


def test_acknowledged_changes_survive_a_kill_of_postgresql_under_load(
    server: PostgresServer, service: ServerProcess, url: str, token: str
) -> None:
    with Customers(service, token) as buyers:
        for mode in ("immediate", "kill", "immediate"):
            buyers.order_more(20)
            if mode == "kill":
                server.kill()
            else:
                server.stop(mode)
            server.start()
        buyers.order_more(20)
    assert set(buyers.statuses) == {201, 503}
    assert set(buyers.reads) <= {200, 503}
    assert buyers.without_retry_after == 0
    assert set(buyers.pets) <= stored_ids(server, url, "pets")
    assert set(buyers.orders) <= stored_ids(server, url, "orders")


def test_when_connections_break_reads_succeed_and_acknowledged_changes_survive(
    server: PostgresServer, tmp_path: Path, url: str
) -> None:
    with (
        serving(tmp_path, "--database-timeout", "10", database=url) as service,
        Customers(service, service.issue()) as buyers,
    ):
        for _ in range(5):
            buyers.order_more(5)
            server.cut_connections()
    assert set(buyers.reads) == {200}
    assert set(buyers.statuses) <= {201, 503}
    assert set(buyers.pets) <= stored_ids(server, url, "pets")
    assert set(buyers.orders) <= stored_ids(server, url, "orders")


def test_when_no_connection_is_free_requests_are_refused_in_time(
    server: PostgresServer, tmp_path: Path, url: str
) -> None:
    few = ("--database-connections", "1", "--database-timeout", "0.5")
    with (
        serving(tmp_path, *few, database=url) as service,
        client_of(service, service.issue()) as client,
    ):
        with server.transaction(database_name(url), "LOCK TABLE pets"):
            for _ in range(2):
                assert_unavailable(client.post("/pets", json=NEW))
                assert_unavailable(client.get("/pets/1"))
        assert within(30, lambda: works(client))


def test_a_worker_that_starts_without_postgresql_serves_once_it_is_up(
    server: PostgresServer, service: ServerProcess, client: httpx.Client
) -> None:
    (killed,) = service.workers()
    server.stop()
    os.kill(killed, signal.SIGKILL)
    assert within(30, lambda: service.workers() not in ([], [killed]))

    def refuses() -> bool:
        try:
            return client.get("/pets").status_code == 503
        except httpx.TransportError:
            return False

    assert within(30, refuses)
    server.start()
    assert within(30, lambda: works(client))


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("postgresql://petstore:s3cret@127.0.0.1:1/petstore", "Connect call failed"),
        ("postgresql://petstore:s3cret#@127.0.0.1/petstore", "expected postgresql://"),
        ("postgresql://petstore:s3cret@127.0.0.1:port/petstore", "expected postgresql://"),
        ("postgresql://guarded:s3cret@127.0.0.1:{port}/postgres", "password authentication failed"),
        ("postgresql://petstore:s3cret@127.0.0.1:{port}/nowhere", "does not exist"),
    ],
)
def test_without_a_database_a_command_says_so_in_a_line(
    server: PostgresServer, tmp_path: Path, url: str, reason: str
) -> None:
    server.guarded_url("")
    environment = {"PETSTORE_DATABASE": url.format(port=server.port)}
    create = ("keys", "create", "--name", "app", "--plan", "pro")
    said = Command(tmp_path / "none.db").fail(*create, status=1, **environment)
    assert reason in said
    assert "\n" not in said
    assert "s3cret" not in said


def test_without_a_database_the_service_does_not_start_and_says_why_in_a_line(
    tmp_path: Path,
) -> None:
    environment = {"PETSTORE_DATABASE": "postgresql://petstore:s3cret@127.0.0.1:1/petstore"}
    ended = petstore("serve", "--port", str(free_port()), cwd=tmp_path, env=environment)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith("Error: ")
    assert "Connect call failed" in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert "s3cret" not in ended.stderr
