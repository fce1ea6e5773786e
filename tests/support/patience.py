"""Waiting for what others do in their own time. A test that passes waits no longer than it must."""

import asyncio
import time
from collections.abc import Callable
from inspect import isawaitable


def within(seconds: float, happened: Callable[[], object]) -> bool:
    """Tell whether ``happened`` comes true before so many seconds are over."""
    deadline = time.monotonic() + seconds
    while not happened():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


async def eventually(happened: Callable[[], object], seconds: float = 20) -> None:
    """Wait until ``happened``, a function of either kind, comes true; fail after so long."""

    async def has_happened() -> object:
        outcome = happened()
        return await outcome if isawaitable(outcome) else outcome

    async with asyncio.timeout(seconds):
        while not await has_happened():  # noqa: ASYNC110 - what is waited for tells nobody
            await asyncio.sleep(0.005)
