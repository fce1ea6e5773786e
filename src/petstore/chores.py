"""Periodic tasks in the background. Each part names its own."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple

from petstore.errors import InternalError, PetstoreError

_LOG = logging.getLogger(__name__)


class PeriodicTask(NamedTuple):
    """An action to repeat every ``seconds``, and what to log when it fails.

    Perhaps it is done once before anything else (``at_start``), or once more at the end
    (``at_stop``).
    """

    action: Callable[[], Awaitable[None]]
    seconds: float
    failure: str
    at_start: bool = False
    at_stop: bool = False


@asynccontextmanager
async def background(*chores: PeriodicTask) -> AsyncIterator[None]:
    import asyncio  # here and below, so that `petstore --help` is instant

    for chore in chores:
        if chore.at_start:
            await attempt(chore)
    tasks = [asyncio.create_task(_repeat(chore)) for chore in chores]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for chore in chores:
            if chore.at_stop:
                await attempt(chore)


async def attempt(chore: PeriodicTask, *, quiet: bool = False) -> bool:
    """Do a chore once and return whether it succeeded. Log a failure unless ``quiet``."""
    try:
        await chore.action()
    except Exception as error:  # noqa: BLE001 - a failure must not end the repetition
        if not quiet:
            is_fault = isinstance(error, InternalError) or not isinstance(error, PetstoreError)
            _LOG.warning("%s: %s", chore.failure, error, exc_info=is_fault)
        return False
    return True


async def _repeat(chore: PeriodicTask) -> None:
    """Repeat a chore forever; log only the first of several failures in a row."""
    import asyncio

    is_failing = False
    while True:
        await asyncio.sleep(chore.seconds)
        is_failing = not await attempt(chore, quiet=is_failing)
