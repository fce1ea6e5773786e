"""The command line, run in this process on the database of the test."""

from pathlib import Path

import pytest

from support.command import Command
from support.process import ServerProcess
from support.shop import Shop


@pytest.fixture
def command(database: Path) -> Command:
    """The command ``petstore``, on the database of the test."""
    return Command(database)


@pytest.fixture
def shop(server: ServerProcess, token: str) -> Shop:
    """The commands of the shop's staff, with a key of the running service."""
    return Shop(server.url, token)
