"""What the tests of the operations share."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from petstore.storage.sqlite import SqliteStore
from support.stores import open_store


@pytest.fixture
async def store(database: Path) -> AsyncIterator[SqliteStore]:
    async with open_store(database) as store:
        yield store
