"""What every test may use."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from support.manual_clock import ManualClock
from support.process import ServerProcess
from support.service import Service, running_service


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Async tests (``pytest.mark.anyio``) run on asyncio, as the service does."""
    return "asyncio"


@pytest.fixture
def clock() -> ManualClock:
    """A clock that only the test moves."""
    return ManualClock()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """One running service for the whole session; tests must not depend on what is in it."""
    server = ServerProcess(tmp_path_factory.mktemp("server"))
    server.wait_until_ready()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def token(server: ServerProcess) -> str:
    """The token of a key of the running service that has no limits."""
    return server.issue()


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """The path of a SQLite file that is not there yet."""
    return tmp_path / "petstore.db"


@pytest.fixture
async def service(database: Path, clock: ManualClock) -> AsyncIterator[Service]:
    """The service in this process, on a fresh SQLite file, by ``clock``."""
    async with running_service(database, clock) as service:
        yield service
