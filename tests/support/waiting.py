"""Wait for something that happens elsewhere, for no longer than it takes."""

import asyncio
import time
from collections.abc import Callable
from inspect import isawaitable


def within(seconds: float, happened: Callable[[], object]) -> bool:
    """Wait until ``happened`` is true; return whether it was within ``seconds``."""
    deadline = time.monotonic() + seconds
    while not happened():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


async def eventually(happened: Callable[[], object], seconds: float = 30) -> None:
    """Wait until ``happened``, sync or async, is true; fail after ``seconds``."""

    async def has_happened() -> object:
        outcome = happened()
        return await outcome if isawaitable(outcome) else outcome

    async with asyncio.timeout(seconds):
        while not await has_happened():  # noqa: ASYNC110 - nothing to subscribe to
            await asyncio.sleep(0.005)
