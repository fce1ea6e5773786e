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
from support.process import ServerProcess, free_port, is_ready, serving
from support.redis_server import redis_server
from support.service import MASTER_SECRET
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


def assert_all_is_refused(client: httpx.Client) -> None:
    asks: list[Callable[[], httpx.Response]] = [
        lambda: client.post("/pets", json=NEW),
        lambda: client.post("/store/orders", json={"petId": 1}),
        lambda: client.get("/pets"),
        lambda: client.get("/pets", headers=STRANGER),
    ]
    with ThreadPoolExecutor() as threads:
        for response in threads.map(lambda ask: ask(), asks):
            assert response.status_code == 503
            assert response.json()["code"] == "service_unavailable"
            assert int(response.headers["Retry-After"]) >= 1


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
    server: PostgresServer, service: ServerProcess, token: str, mode: str
) -> None:
    with client_of(service, token) as client:
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


@pytest.mark.parametrize(
    ("timeout", "faults", "reads"),
    [("0.5", ["immediate", "kill", "immediate"], {200, 503}), ("10", ["cut"] * 5, {200})],
    ids=["killed", "cut off"],
)
def test_acknowledged_changes_survive_faults_under_load_and_reads_broken_connections(
    server: PostgresServer,
    tmp_path: Path,
    url: str,
    timeout: str,
    faults: list[str],
    reads: set[int],
) -> None:
    with (
        serving(tmp_path, "--database-timeout", timeout, database=url) as service,
        Customers(service, service.issue()) as buyers,
    ):
        for fault in faults:
            buyers.order_more(10)
            if fault == "cut":
                server.cut_connections()
            else:
                with down(server, fault):
                    pass
        buyers.order_more(10)
    assert 201 in buyers.statuses
    assert set(buyers.statuses) <= {201, 503}
    assert set(buyers.reads) <= reads
    assert buyers.without_retry_after == 0
    for table, acknowledged in (("pets", buyers.pets), ("orders", buyers.orders)):
        stored = server.sql(f"SELECT id FROM {table}", database_name(url))  # noqa: S608
        assert {*acknowledged} <= {*map(int, stored.split())}


def test_a_worker_that_starts_without_postgresql_serves_once_it_is_up(
    server: PostgresServer, service: ServerProcess, token: str
) -> None:
    (killed,) = service.workers()
    server.stop()
    os.kill(killed, signal.SIGKILL)
    assert within(30, lambda: service.workers() not in ([], [killed]))

    with httpx.Client(headers={"Authorization": f"Bearer {token}"}, timeout=LONGEST) as client:

        def status() -> int:
            try:
                return client.get(f"{service.url}/v1/pets").status_code
            except httpx.TransportError:
                return 0

        assert within(30, lambda: status() == 503)
        server.start()
        assert within(30, lambda: status() == 200)


@pytest.mark.parametrize("verb", ["serve", "keys list"])
def test_without_a_database_a_command_says_so_in_a_line(tmp_path: Path, verb: str) -> None:
    environment = {"PETSTORE_DATABASE": "postgresql://petstore:s3cret@127.0.0.1:1/petstore"}
    environment |= {"PETSTORE_SECRET_FILE": str(MASTER_SECRET), "PETSTORE_PORT": str(free_port())}
    said = Command(tmp_path / "none.db")(*verb.split(), **environment)
    assert said.exit_code in {1, 2}
    words = said.stderr.rpartition("Error: ")[2].rstrip("\n")
    assert "Connect call failed" in words
    assert "\n" not in words
    assert "s3cret" not in said.output
