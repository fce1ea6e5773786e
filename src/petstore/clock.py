"""The one clock: a parameter of every part that needs the time."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

Milliseconds: TypeAlias = int

Clock: TypeAlias = Callable[[], Milliseconds]
"""Returns the time as whole milliseconds since 1970-01-01T00:00:00Z."""

SECOND: Milliseconds = 1000
MINUTE: Milliseconds = 60 * SECOND
HOUR: Milliseconds = 60 * MINUTE
DAY: Milliseconds = 24 * HOUR

_EPOCH = datetime.fromtimestamp(0, UTC)


def seconds_up(moment: Milliseconds) -> int:
    """Return whole seconds, rounded up: a client that waits so long is never too early."""
    return -(-moment // SECOND)


def utc(moment: Milliseconds) -> datetime:
    return _EPOCH + timedelta(milliseconds=moment)


def milliseconds(moment: datetime) -> Milliseconds:
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def milliseconds_up(moment: datetime) -> Milliseconds:
    """Return a date and time as a moment, a fraction of a millisecond rounded up."""
    return -((_EPOCH - moment) // timedelta(milliseconds=1))


def utc_second(moment: Milliseconds) -> datetime:
    return datetime.fromtimestamp(moment // SECOND, UTC)


def rfc3339(moment: Milliseconds) -> str:
    return utc_second(moment).isoformat().replace("+00:00", "Z")


def rfc3339_milliseconds(moment: Milliseconds) -> str:
    return utc(moment).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def system_clock() -> Milliseconds:
    return time.time_ns() // 1_000_000
