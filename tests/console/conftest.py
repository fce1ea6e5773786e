"""Fixtures of the console's tests."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from support.browser import chromium
from support.process import ServerProcess


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium, for the tests of a file; as long as it runs, no test can be asynchronous."""
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A service with the pets of the demo; a test works with pets that it adds itself."""
    server = ServerProcess(tmp_path_factory.mktemp("shop"), "--demo")
    server.wait_until_ready()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def small_shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A service for the tests of a file, which adds its pets: few are looked at faster."""
    server = ServerProcess(tmp_path_factory.mktemp("small_shop"))
    server.wait_until_ready()
    yield server
    server.stop()
