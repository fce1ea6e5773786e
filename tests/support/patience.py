"""Waiting for what another process does in its own time."""

import time
from collections.abc import Callable


def within(seconds: float, happened: Callable[[], object]) -> bool:
    """Tell whether ``happened`` comes true before so many seconds are over."""
    deadline = time.monotonic() + seconds
    while not happened():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
