"""Fixtures of all tests."""

import gc
import logging
import os
import signal
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from functools import cache
from pathlib import Path

import httpx
import pytest
from httpx._transports import default
from hypothesis import settings

from petstore.categories.model import CategoryCreate
from petstore.databases.contract import Store
from petstore.keys.model import SCOPES
from support.changes import create_category, without_event
from support.command import Command
from support.manual_clock import ManualClock
from support.memory_folder import memory
from support.passwords import CHEAPLY
from support.pooler import pooler
from support.postgres import PostgresServer, postgres_server
from support.process import ServerProcess, StartServer, servers_in, serving
from support.redis_server import RedisServer, redis_server
from support.sending import Send, sender
from support.service import Service, running_service
from support.shop import Shop
from support.stores import open_store
from support.visitor import Visitor, signed_in, signed_in_person


def pytest_configure() -> None:
    """Keep the files of the tests in memory: no test may depend on how fast a disk is."""
    if folder := memory():
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(folder))
    # What is collected stays: to search it for garbage takes a third of the time.
    gc.disable()
    # Some tests look for colors, on terminals of their own.
    os.environ.pop("NO_COLOR", None)
    # A script's background job ignores Ctrl-C, and so would every process that a test interrupts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Where a test says nothing else: on a busy machine slow is no failure.
    for step in ("connect", "read", "write", "pool"):
        setattr(httpx._config.DEFAULT_TIMEOUT_CONFIG, step, 30)  # noqa: SLF001 - of each function
    settings.register_profile("suite", deadline=None)
    settings.load_profile("suite")
    # httpx reads the certificates of the system for each client, in 30 ms: once is enough.
    names = vars(default)
    names["create_ssl_context"] = cache(names["create_ssl_context"])
    # asyncpg reports an error of its own where it is cancelled while it asks for TLS.
    os.environ.setdefault("PGSSLMODE", "disable")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    is_marked = metafunc.definition.get_closest_marker("each_database")
    if (
        is_marked
        and "database_kind" in metafunc.fixturenames
        and "database" not in metafunc.fixturenames
    ):
        metafunc.parametrize("database_kind", ["sqlite", "postgresql"])


def pytest_collection_finish() -> None:
    """Spare the garbage collector the tests themselves: thousands of objects that stay."""
    gc.freeze()
    gc.enable()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say in a line which tests were skipped, and which command brings what they need."""
    skipped = terminalreporter.getreports("skipped")
    reasons = Counter(str(report.longrepr[2]).removeprefix("Skipped: ") for report in skipped)
    if reasons:
        said = "; ".join(f"{count} × {reason}" for reason, count in reasons.most_common())
        terminalreporter.write_line(f"Not run: {said}")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Async tests (``pytest.mark.anyio``) run on asyncio, as the service does."""
    return "asyncio"


@pytest.fixture
def cheap_passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hash passwords in a fraction of a millisecond."""
    monkeypatch.setattr("petstore.people.passwords.PasswordHasher", CHEAPLY)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """One running service for the whole session; tests must not depend on what is in it."""
    with serving(tmp_path_factory.mktemp("server")) as server:
        yield server


@pytest.fixture(scope="session")
def token(server: ServerProcess) -> str:
    return server.issue()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[StartServer]:
    with servers_in(tmp_path) as start:
        yield start


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "petstore.db"


@pytest.fixture
def database_kind() -> str:
    return "sqlite"


@pytest.fixture
def address(database_kind: str, request: pytest.FixtureRequest) -> str:
    if database_kind == "sqlite":
        return f"sqlite:///{request.getfixturevalue('database')}"
    postgres: PostgresServer = request.getfixturevalue("postgres")
    return postgres.emptied_store()


@pytest.fixture
def timeout_ms() -> int:
    """How many milliseconds ``store`` waits for a lock or a slow machine."""
    return 10_000


@pytest.fixture
async def store(address: str, timeout_ms: int) -> AsyncIterator[Store]:
    async with open_store(address, timeout_ms) as store:
        yield store


@pytest.fixture
async def service(address: str, clock: ManualClock) -> AsyncIterator[Service]:
    async with running_service(address, clock) as service:
        yield service


@pytest.fixture
async def send(service: Service) -> Send:
    """Sends requests with a key without limits."""
    return await sender(service)


@pytest.fixture
async def staff(service: Service) -> Visitor:
    return await signed_in(service)


@pytest.fixture
async def other(service: Service) -> Visitor:
    """A second person of the shop."""
    return await signed_in(service)


@pytest.fixture
async def ada(service: Service) -> Visitor:
    """An administrator."""
    return await signed_in_person(service)


@pytest.fixture
async def grace(service: Service) -> Visitor:
    """A clerk."""
    return await signed_in_person(service, "clerk", "Grace")


@pytest.fixture
async def dogs(service: Service) -> None:
    """Category 1, Dogs, since ever: a pet that is added in the console needs a category."""
    await service.store.write(without_event(create_category(CategoryCreate("Dogs"))))


@pytest.fixture
def command(database: Path) -> Command:
    return Command(database)


@pytest.fixture
def shop(server: ServerProcess, token: str) -> Shop:
    return Shop(server.url, token)


@pytest.fixture(params=["on the database", "over HTTP"])
def admin_shop(request: pytest.FixtureRequest, server: ServerProcess, command: Command) -> Shop:
    if request.param == "over HTTP":
        scopes = [word for scope in SCOPES for word in ("--scope", scope)]
        return Shop(server.url, server.issue("enterprise", *scopes))
    command.make_store()
    return Shop.on_database(command.url)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server for the whole session; it stays up, and each test has a database."""
    # Nothing here outlives the machine: it need not wait for the disk.
    with postgres_server(fsync="off", deadlock_timeout="100ms") as server:
        yield server


@pytest.fixture(scope="module")
def redis() -> Iterator[RedisServer]:
    """A Redis server for the tests of a file; one that disturbs it leaves it as it was."""
    with redis_server() as server:
        yield server


@pytest.fixture
def postgres_url(postgres: PostgresServer) -> str:
    return postgres.new_store()


@pytest.fixture
def pooled_url(postgres_url: str) -> Iterator[str]:
    with pooler(postgres_url) as url:
        yield f"{url}?pgbouncer=true"


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers = []
    yield root
    root.handlers = handlers
    root.setLevel(level)  # loggers keep in mind what is logged, until they are told
