"""The command line, run in this process on the database of the test."""

from pathlib import Path

import pytest

from support.command import Command


@pytest.fixture
def command(database: Path) -> Command:
    """The command ``petstore``, on the database of the test."""
    return Command(database)
