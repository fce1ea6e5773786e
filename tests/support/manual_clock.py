"""A clock that returns the time it was set to."""

from petstore.clock import DAY, SECOND, Milliseconds


class ManualClock:
    """Starts at 2026-12-01T12:00:00.000Z, noon of a UTC day."""

    def __init__(self, now: Milliseconds = 20_788 * DAY + DAY // 2) -> None:
        self.now = now

    def __call__(self) -> Milliseconds:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += round(seconds * SECOND)
