"""Periodic tasks in the background. Each part names its own."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple

from petstore.errors import InternalError, PetstoreError

_LOG = logging.getLogger(__name__)


class PeriodicTask(NamedTuple):
    """An action to repeat every ``seconds``, and what to log when it fails."""

    action: Callable[[], Awaitable[None]]
    seconds: float
    failure: str
    at_start: bool = False
    at_stop: bool = False


@asynccontextmanager
async def background(*tasks: PeriodicTask) -> AsyncIterator[None]:
    import asyncio  # here and below, so that `petstore --help` is instant

    for task in tasks:
        if task.at_start:
            await attempt(task)
    repeated = [asyncio.create_task(_repeat(task)) for task in tasks]
    try:
        yield
    finally:
        for each in repeated:
            each.cancel()
        await asyncio.gather(*repeated, return_exceptions=True)
        for task in tasks:
            if task.at_stop:
                await attempt(task)


async def attempt(task: PeriodicTask, *, quiet: bool = False) -> bool:
    """Do a task once and return whether it succeeded. Log a failure unless ``quiet``."""
    try:
        await task.action()
    except Exception as error:  # noqa: BLE001 - a failure must not end the repetition
        if not quiet:
            is_fault = isinstance(error, InternalError) or not isinstance(error, PetstoreError)
            _LOG.warning("%s: %s", task.failure, error, exc_info=is_fault)
        return False
    return True


async def _repeat(task: PeriodicTask) -> None:
    """Repeat a task forever; log only the first of several failures in a row."""
    import asyncio

    is_failing = False
    while True:
        await asyncio.sleep(task.seconds)
        is_failing = not await attempt(task, quiet=is_failing)
