"""What a service does in the background, again and again."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple

from petstore.errors import Unavailable

_LOG = logging.getLogger(__name__)


class Chore(NamedTuple):
    """Something to do every so many ``seconds``, and what the log says when it fails."""

    action: Callable[[], Awaitable[None]]
    seconds: float
    failure: str


@asynccontextmanager
async def background(*chores: Chore) -> AsyncIterator[None]:
    """Do ``chores`` until the block ends."""
    tasks = [asyncio.create_task(_keep_doing(chore)) for chore in chores]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def attempt(chore: Chore, *, quiet: bool = False) -> bool:
    """Do a chore once and tell whether it worked; unless ``quiet``, log it if it did not."""
    try:
        await chore.action()
    except Exception as error:  # noqa: BLE001 - what is done again and again must not end
        if not quiet:
            is_fault = not isinstance(error, Unavailable)
            _LOG.warning("%s: %s", chore.failure, error, exc_info=is_fault)
        return False
    return True


async def _keep_doing(chore: Chore) -> None:
    """Do a chore for ever; say so once when it begins to fail."""
    failing = False
    while True:
        await asyncio.sleep(chore.seconds)
        failing = not await attempt(chore, quiet=failing)
