"""The one clock. Every part that asks for the time takes it as a parameter."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeAlias

Milliseconds: TypeAlias = int

Clock: TypeAlias = Callable[[], Milliseconds]
"""Tells the time as whole milliseconds since 1970-01-01T00:00:00Z."""

SECOND: Milliseconds = 1000
MINUTE: Milliseconds = 60 * SECOND
DAY: Milliseconds = 24 * 60 * MINUTE


def seconds_up(moment: Milliseconds) -> int:
    """Return whole seconds, rounded up: who waits so long never comes too early."""
    return -(-moment // SECOND)


def rfc3339(moment: Milliseconds) -> str:
    """Return a moment as RFC 3339 has it, in UTC and to the second."""
    text = datetime.fromtimestamp(moment / SECOND, UTC).isoformat(timespec="seconds")
    return text.replace("+00:00", "Z")


def system_clock() -> Milliseconds:
    """Return the time of the machine."""
    return time.time_ns() // 1_000_000
