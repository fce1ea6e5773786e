"""Fixtures of the console's tests."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from support.browser import chromium
from support.process import ServerProcess, serving


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium, for the tests of a file; as long as it runs, no test can be asynchronous."""
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A service with the pets of the demo; a test works with pets that it adds itself."""
    with serving(tmp_path_factory.mktemp("shop"), "--demo") as server:
        yield server


@pytest.fixture(scope="module")
def small_shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A service for the tests of a file, which adds its pets: few are looked at faster."""
    with serving(tmp_path_factory.mktemp("small_shop")) as server:
        yield server
