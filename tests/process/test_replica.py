"""Lists from a real streaming replica: no caller ever misses a change of its own."""

import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from itertools import count
from pathlib import Path

import httpx
import pytest

from petstore.databases.last_writes import _MIN
from petstore.databases.migrations import scripts
from support.command import Command
from support.postgres_replica import PostgresReplica, replicated
from support.process import free_port
from support.redis_server import RedisServer, redis_server
from support.shared_service import SharedService, shared_service
from support.waiting import within

_LONGEST = 20.0
"""Max seconds for a response. On a busy machine this detects a hang, not its exact length."""

_UNHURRIED = ("--database-timeout", "9")
"""For a service whose databases are there: on a busy machine slow is no failure."""

_names = count(1)


@pytest.fixture(scope="module")
def replica() -> Iterator[PostgresReplica]:
    with replicated() as replica:
        yield replica


@pytest.fixture
def url(replica: PostgresReplica, redis: RedisServer) -> str:
    redis.call("FLUSHALL")
    return replica.primary.new_store()


@pytest.fixture
def service(
    tmp_path: Path, replica: PostgresReplica, redis: RedisServer, url: str
) -> Iterator[SharedService]:
    arguments = (url, "--read-database", replica.url_of(url), "--redis", redis.url)
    with shared_service(tmp_path, *arguments, *_UNHURRIED) as service:
        yield service


@contextmanager
def caller(service: SharedService, token: str | None = None) -> Iterator[httpx.Client]:
    """Give a client with a key, a new one unless ``token`` is given."""
    headers = {"Authorization": f"Bearer {token or service.issue()}"}
    with httpx.Client(base_url=f"{service.url}/v1", headers=headers, timeout=_LONGEST) as client:
        yield client


def add(client: httpx.Client) -> int:
    """Add an animal and return its id."""
    added = client.post("/pets", json={"name": f"animal {next(_names)}", "categoryId": 1})
    assert added.status_code == 201
    pet_id: int = added.json()["id"]
    return pet_id


def lists(client: httpx.Client, pet_id: int) -> bool:
    """Return whether an animal is in the list that a caller gets."""
    response = client.get("/pets", params={"id": pet_id})
    assert response.status_code == 200, response.text
    return bool(response.json())


def is_read_from_replica(client: httpx.Client, pet_id: int) -> bool:
    """Return whether the lists of a client lack an animal that the replica has not got yet.

    A busy machine is late now and then. Then the replica is left alone for two seconds.
    """
    return within(30, lambda: not lists(client, pet_id))


def reads_from_replica(
    replica: PostgresReplica, redis: RedisServer, writer: httpx.Client, other: httpx.Client
) -> bool:
    """Return whether ``other`` gets the old list of the replica, now that it may."""
    # After a response of Redis that came too late, lists come from the primary for ten minutes.
    redis.call("DEL", _MIN)
    with replica.behind():
        return not lists(other, add(writer))


def test_callers_read_their_own_changes_and_other_changes_from_the_replica(
    replica: PostgresReplica, service: SharedService
) -> None:
    with caller(service) as writer, caller(service) as other:
        with replica.behind():
            pet_id = add(writer)
            assert lists(writer, pet_id)
            assert is_read_from_replica(other, pet_id)
            assert writer.patch(f"/pets/{pet_id}", json={"status": "sold"}).status_code == 200
            assert writer.get("/pets?status=sold").json()[0]["id"] == pet_id
            assert writer.delete(f"/pets/{pet_id}").status_code == 204
            assert not lists(writer, pet_id)
            pet_id = add(writer)
        assert lists(other, pet_id)
        assert lists(writer, pet_id)


def test_every_process_sees_a_change_with_and_without_redis(
    tmp_path: Path, replica: PostgresReplica, url: str
) -> None:
    with redis_server() as redis:
        arguments = (url, "--read-database", replica.url_of(url), "--redis", redis.url, *_UNHURRIED)
        with (
            shared_service(tmp_path, *arguments) as one,
            shared_service(tmp_path, *arguments) as two,
        ):
            token = one.issue()
            with (
                caller(one, token) as here,
                caller(two, token) as there,
                caller(two) as other,
                replica.behind(),
            ):
                pet_id = add(here)
                assert lists(there, pet_id)
                assert is_read_from_replica(other, pet_id)
                redis.kill()
                for known in (pet_id, add(here)):
                    assert lists(here, known)
                    assert lists(there, known)
                    assert lists(other, known)


def test_a_single_process_tracks_its_writes_without_redis(
    tmp_path: Path, replica: PostgresReplica, url: str
) -> None:
    with (
        shared_service(
            tmp_path, url, "--read-database", replica.url_of(url), *_UNHURRIED
        ) as service,
        caller(service) as writer,
        caller(service) as other,
        replica.behind(),
    ):
        pet_id = add(writer)
        assert lists(writer, pet_id)
        assert is_read_from_replica(other, pet_id)


@contextmanager
def killed(replica: PostgresReplica) -> Iterator[None]:
    replica.kill()
    try:
        yield
    finally:
        replica.start()


@pytest.mark.parametrize("query", ["?cursor=latest", "?until=now", "?wait=25"])
def test_lists_are_as_new_as_the_events_that_a_caller_has_read(
    replica: PostgresReplica, service: SharedService, query: str
) -> None:
    """So a program that asks for the newest event, and then copies a list, misses nothing."""
    with caller(service) as writer, caller(service) as other, replica.behind():
        pet_id = add(writer)
        assert is_read_from_replica(other, pet_id)
        assert other.get(f"/events{query}").status_code == 200
        assert lists(other, pet_id)


@pytest.mark.parametrize("gone", [killed, PostgresReplica.stopped], ids=["killed", "hanging"])
def test_lists_fall_back_to_the_primary_until_the_replica_is_back(
    replica: PostgresReplica,
    redis: RedisServer,
    service: SharedService,
    gone: Callable[[PostgresReplica], AbstractContextManager[None]],
) -> None:
    with caller(service) as writer, caller(service) as other:
        is_back = partial(reads_from_replica, replica, redis, writer, other)
        assert within(30, is_back)
        with gone(replica):
            until = time.monotonic() + 3
            while time.monotonic() < until:
                pet_id = add(writer)
                assert lists(other, pet_id)
                assert lists(writer, pet_id)
                time.sleep(0.05)  # as clients do that have something else to do
        assert within(30, is_back)
    statuses = {line["status"] for line in service.log_lines() if line["event"] == "request"}
    assert statuses <= {200, 201}


def test_while_both_databases_hang_requests_are_refused_in_time(
    tmp_path: Path, replica: PostgresReplica, redis: RedisServer, url: str
) -> None:
    """Also requests that wait for a connection: there are more requests than connections."""
    arguments = (url, "--read-database", replica.url_of(url), "--redis", redis.url)
    few = ("--database-connections", "2", "--database-timeout", "1.2")
    with shared_service(tmp_path, *arguments, *few) as service, caller(service) as client:
        pet_id = add(client)
        asks: list[Callable[[], httpx.Response]] = [
            lambda: client.get("/pets"),
            lambda: client.get(f"/pets/{pet_id}"),
            lambda: client.delete(f"/pets/{pet_id}"),
        ]
        with replica.stopped(), replica.primary.stopped(), ThreadPoolExecutor(12) as threads:
            responses = list(threads.map(lambda ask: ask(), asks * 4))
        assert {response.status_code for response in responses} == {503}


def test_a_service_starts_without_its_replica_and_uses_it_once_it_is_up(
    tmp_path: Path, replica: PostgresReplica, redis: RedisServer, url: str
) -> None:
    replica.stop()
    arguments = (url, "--read-database", replica.url_of(url), "--redis", redis.url)
    try:
        service = SharedService(tmp_path, *arguments)
        try:
            service.wait_until_ready()
            with caller(service) as writer, caller(service) as other:
                assert lists(other, add(writer))
                replica.start()
                assert within(30, lambda: reads_from_replica(replica, redis, writer, other))
            assert service.stop() == 0
        finally:
            if service.process.poll() is None:
                service.kill()
    finally:
        if not replica.is_running():
            replica.start()


def test_the_check_command_tests_the_database_its_replica_redis_and_the_collector(
    replica: PostgresReplica, redis: RedisServer, tmp_path: Path
) -> None:
    url = replica.primary.new_store()
    replica.catch_up()
    with socket.create_server(("127.0.0.1", 0)) as collector:
        traces = f"http://127.0.0.1:{collector.getsockname()[1]}/v1/traces"
        printed = Command(tmp_path / "petstore.db").succeed(
            *("serve", "--check", "--port", str(free_port()), "--database", url, "--workers", "2"),
            *("--read-database", replica.url_of(url), "--redis", redis.url),
            *("--trace-endpoint", traces),
        )
    assert printed.splitlines()[-4:] == [
        f"ok      database: schema version {len(scripts('postgres'))}",
        "ok      replica: a streaming replica",
        "ok      redis: it responds",
        "ok      traces: it accepts connections",
    ]
