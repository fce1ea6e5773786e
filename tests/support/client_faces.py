"""Both faces of the client library, behind one function, by a clock that only sleeps move."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any, TypeAlias

import pytest

from petstore_client import AsyncClient, Client
from petstore_client._clock import Clock

KEY = "ps_live_" + 38 * "0"


class SleepingClock(Clock):
    """Time passes only in sleeps, which it notes. Chance is always the same."""

    def __init__(self, chance: float = 1.0) -> None:
        self.moment = 1000.0
        self.sleeps: list[float] = []
        self.chance = chance

    def now(self) -> float:
        return self.moment

    def random(self) -> float:
        return self.chance

    def sleep(self, seconds: float, interrupted: object = None) -> None:  # noqa: ARG002
        self.sleeps.append(round(seconds, 3))
        self.moment += seconds

    async def pause(self, seconds: float) -> None:
        self.sleep(seconds)
        await asyncio.sleep(0)


Face: TypeAlias = Callable[..., Any]
"""Makes a client for a URL and gives it to a function, whose result it returns, awaited.

It takes the clock and settings of the client. What iterates becomes a list.
"""


def with_threads(url: str, use: Callable[[Client], Any], clock: Clock, **settings: Any) -> Any:
    """Use a ``Client``."""
    with Client(KEY, f"{url}/v1", clock=clock, **settings) as client:
        outcome = use(client)
        return list(outcome) if isinstance(outcome, Iterator) else outcome


def with_tasks(url: str, use: Callable[[Any], Any], clock: Clock, **settings: Any) -> Any:
    """Use an ``AsyncClient``."""

    async def run() -> Any:
        async with AsyncClient(KEY, f"{url}/v1", clock=clock, **settings) as client:
            outcome = use(client)
            if isinstance(outcome, AsyncIterator):
                return [item async for item in outcome]
            return await outcome if isinstance(outcome, Coroutine) else outcome

    return asyncio.run(run())


each_face = pytest.mark.parametrize("face", [with_threads, with_tasks])
"""For a test that runs with threads and with tasks."""
