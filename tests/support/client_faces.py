"""Both faces of the client library, behind one function, by a clock that only sleeps move."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias
from unittest.mock import patch

import pytest

from petstore_client import AsyncClient, Client

KEY = "ps_live_" + 38 * "0"


class SleepingClock:
    """Time passes only in sleeps, which it notes. Chance is always the same."""

    def __init__(self, chance: float = 1.0) -> None:
        self.moment = 1000.0
        self.sleeps: list[float] = []
        self.chance = chance

    def now(self) -> float:
        return self.moment

    def random(self) -> float:
        return self.chance

    def sleep(self, seconds: float) -> None:
        self.sleeps.append(round(seconds, 3))
        self.moment += seconds

    async def pause(self, seconds: float) -> None:
        self.sleep(seconds)
        await asyncio.sleep(0)


@contextmanager
def by_the_time_of(clock: Any) -> Iterator[None]:
    """Let the client library live by a clock: its moments, its sleeps and its chance."""
    package = "petstore_client"
    with (
        patch(f"{package}._driver.monotonic", clock.now),
        patch(f"{package}._reading.monotonic", clock.now),
        patch(f"{package}._retries.random", clock.random),
        patch(f"{package}._driver.sleep", clock.sleep),
        patch(f"{package}._driver.asleep", clock.pause),
    ):
        yield


Face: TypeAlias = Callable[..., Any]
"""Makes a client for a URL and gives it to a function, whose result it returns, awaited.

It takes a clock, if the test looks at it, and settings of the client. What iterates becomes a list.
"""


def with_threads(
    url: str, use: Callable[[Client], Any], clock: SleepingClock | None = None, **settings: Any
) -> Any:
    with by_the_time_of(clock or SleepingClock()), Client(KEY, f"{url}/v1", **settings) as client:
        outcome = use(client)
        if isinstance(outcome, Coroutine):
            return asyncio.run(outcome)
        return list(outcome) if isinstance(outcome, Iterator) else outcome


def with_tasks(
    url: str, use: Callable[[Any], Any], clock: SleepingClock | None = None, **settings: Any
) -> Any:
    async def run() -> Any:
        async with AsyncClient(KEY, f"{url}/v1", **settings) as client:
            outcome = use(client)
            if isinstance(outcome, AsyncIterator):
                return [item async for item in outcome]
            return await outcome if isinstance(outcome, Coroutine) else outcome

    with by_the_time_of(clock or SleepingClock()):
        return asyncio.run(run())


async def in_turn(*uses: Callable[[], Any]) -> Any:
    result = None
    for use in uses:
        outcome = use()
        result = await outcome if isinstance(outcome, Coroutine) else outcome
    return result


async def each_of(items: Any, use: Callable[[Any], object]) -> None:
    """Call ``use`` with each of what iterates, until it says so."""
    if isinstance(items, AsyncIterator):
        async for item in items:
            if use(item):
                break
    else:
        any(map(use, items))


each_face = pytest.mark.parametrize("face", [with_threads, with_tasks])
"""For a test that runs with threads and with tasks."""
