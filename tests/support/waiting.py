"""Wait for something that happens elsewhere, for no longer than it takes."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from inspect import isawaitable
from typing import Any


def within(seconds: float, happened: Callable[[], object]) -> bool:
    """Wait until ``happened`` is true; return whether it was within ``seconds``."""
    deadline = time.monotonic() + seconds
    while not happened():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


async def eventually(happened: Callable[[], object], seconds: float = 30) -> None:
    async def has_happened() -> object:
        outcome = happened()
        return await outcome if isawaitable(outcome) else outcome

    async with asyncio.timeout(seconds):
        while not await has_happened():  # noqa: ASYNC110 - nothing to subscribe to
            await asyncio.sleep(0.005)


async def rounds_of(*works: Coroutine[Any, Any, object]) -> list[int]:
    """Return in which round of the loop each work is done."""
    loop, round_, rounds = asyncio.get_running_loop(), 0, [0] * len(works)

    def begin_round() -> None:
        nonlocal round_
        round_ += 1
        if 0 in rounds:
            loop.call_soon(begin_round)

    async def note(place: int, work: Coroutine[Any, Any, object]) -> None:
        await work
        rounds[place] = round_

    loop.call_soon(begin_round)
    async with asyncio.timeout(30):
        await asyncio.gather(*(note(place, work) for place, work in enumerate(works)))
    return rounds
