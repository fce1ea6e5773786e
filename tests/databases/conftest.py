"""Fixtures of the tests of stores."""

from collections.abc import Iterator

import apsw
import pytest


@pytest.fixture
def connections() -> Iterator[list[apsw.Connection]]:
    """Every connection opened from here on; the last are a store's writer and reader."""
    opened: list[apsw.Connection] = []
    apsw.connection_hooks.append(opened.append)
    yield opened
    apsw.connection_hooks.remove(opened.append)
