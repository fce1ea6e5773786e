"""A service with short timeouts that must survive every test unharmed."""

import re
from collections.abc import Iterator

import httpx
import pytest

from support.process import ServerProcess, serving


@pytest.fixture(scope="session")
def short_timeout_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A service that waits a second for a head or a body, without a limit by address.

    After all tests it must still respond, and must have logged no error or traceback.
    """
    timeouts = ("--header-timeout", "1", "--body-timeout", "1")
    folder = tmp_path_factory.mktemp("short_timeout_server")
    with serving(folder, *timeouts, "--anonymous-per-minute", "1000000") as server:
        yield server
        assert httpx.get(f"{server.url}/readyz").status_code == 200
        assert server.stop() == 0
    log = server.log_path.read_text()
    assert "traceback" not in log.lower()
    assert not {500, 503} & {int(status) for status in re.findall('"status":([0-9]+)', log)}


@pytest.fixture(scope="session")
def short_timeout_token(short_timeout_server: ServerProcess) -> str:
    return short_timeout_server.issue()
