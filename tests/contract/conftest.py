"""Clients of the running service that know only interface.md."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TypeAlias

import httpx
import pytest

from support.client import Client, IssueKey
from support.postgres import PostgresServer
from support.process import GranianProcess, Serve, ServerProcess, serving
from support.redis_server import redis_server


@pytest.fixture(scope="session", params=["sqlite", "postgresql", "granian"])
def form(request: pytest.FixtureRequest) -> str:
    """How the service runs: alone, as two on PostgreSQL and Redis, or under another server."""
    name: str = request.param
    return name


@contextmanager
def as_two(postgres: PostgresServer, folder: Path, *arguments: str) -> Iterator[ServerProcess]:
    """Run two processes on PostgreSQL and Redis."""
    with redis_server() as redis:
        options = ("--redis", redis.url, "--workers", "2", *arguments)
        with serving(folder, *options, database=postgres.new_store()) as server:
            yield server


@pytest.fixture(scope="session")
def serve(form: str, request: pytest.FixtureRequest) -> Serve:
    if form == "postgresql":
        return partial(as_two, request.getfixturevalue("postgres"))
    return serving if form == "sqlite" else partial(serving, kind=GranianProcess)


@pytest.fixture(scope="session")
def server(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with serve(tmp_path_factory.mktemp("server")) as server:
        yield server


@pytest.fixture(autouse=True)
def in_every_form(server: ServerProcess) -> None:
    """Run every test here against each form of the service."""
    del server


@pytest.fixture(scope="session")
def token(server: ServerProcess) -> str:
    return server.issue()


@pytest.fixture(scope="session")
def caller(server: ServerProcess) -> Iterator[IssueKey]:
    """Return a client with a new key: ``caller("free")``; more words are options of the key."""
    with ExitStack() as clients:

        def with_new_key(plan: str = "enterprise", *options: str) -> Client:
            token = server.issue(plan, *options)
            return clients.enter_context(Client(server.url, token))

        yield with_new_key


@pytest.fixture(scope="session")
def client(server: ServerProcess, token: str) -> Iterator[Client]:
    with Client(server.url, token) as client:
        yield client


@pytest.fixture(scope="session")
def stranger(server: ServerProcess) -> Iterator[Client]:
    with Client(server.url) as client:
        yield client


@pytest.fixture(scope="session")
def reader(caller: IssueKey) -> Client:
    return caller("enterprise", "--scope", "pets:read")


@pytest.fixture(scope="session")
def spent(caller: IssueKey) -> Client:
    """A client that has used up its day."""
    client = caller("enterprise", "--per-day", "1")
    client.list_pets()
    return client


Ask: TypeAlias = Callable[[Client], httpx.Response]


def _list(client: Client) -> httpx.Response:
    return client.list_pets()


def _create(client: Client) -> httpx.Response:
    return client.create_pet(name="Bella", categoryId=1)


_TEXT = {"Content-Type": "text/plain"}
SUCCESSES: dict[str, tuple[str, Ask]] = {"200": ("client", _list), "201": ("client", _create)}
ERRORS: dict[str, tuple[str, Ask]] = {
    "400-body": ("client", lambda client: client.create_pet(name="Bella")),
    "400-parameter": ("client", lambda client: client.list_pets(limit=0)),
    "401": ("stranger", _list),
    "403": ("reader", _create),
    "404-pet": ("client", lambda client: client.get_pet(2**63 - 1)),
    "404-path": ("client", lambda client: client.get("/parrots")),
    "405": ("client", lambda client: client.put("/pets", json={})),
    "413": ("client", lambda client: client.create_pet(name="B" * 65_536, categoryId=1)),
    "415": ("client", lambda client: client.post("/pets", content="name=Bella", headers=_TEXT)),
    "429": ("spent", _list),
}


def _response(request: pytest.FixtureRequest) -> httpx.Response:
    who, ask = (SUCCESSES | ERRORS)[request.param]
    response = ask(request.getfixturevalue(who))
    assert response.status_code == int(request.param[:3]), response.text
    return response


@pytest.fixture(params=ERRORS)
def error(request: pytest.FixtureRequest) -> httpx.Response:
    return _response(request)


@pytest.fixture(params=[*SUCCESSES, *ERRORS])
def response(request: pytest.FixtureRequest) -> httpx.Response:
    return _response(request)
