"""Time and chance, which tests replace."""

import random
import threading
import time


class Clock:
    """Tells the time in seconds of a monotonic clock, sleeps, and draws numbers from 0 to 1."""

    def now(self) -> float:
        """Return the moment."""
        return time.monotonic()

    def random(self) -> float:
        """Return a number from 0 to 1."""
        return random.random()  # noqa: S311 - spreads retries, hides nothing

    def sleep(self, seconds: float, interrupted: threading.Event) -> None:
        """Let the thread sleep, unless it is interrupted."""
        interrupted.wait(seconds)

    async def pause(self, seconds: float) -> None:
        """Let the task sleep."""
        import asyncio

        await asyncio.sleep(seconds)
