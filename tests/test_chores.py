"""Periodic tasks in the background."""

import asyncio

import pytest

from petstore.chores import Chore, background
from support.waiting import eventually

pytestmark = pytest.mark.anyio


class Work:
    """Work that may fail, and counts how often it was tried."""

    def __init__(self) -> None:
        self.fails = True
        self.tried = 0

    async def __call__(self) -> None:
        self.tried += 1
        if self.fails:
            raise ZeroDivisionError

    async def again(self) -> None:
        """Wait until it was tried anew, and more than once."""
        tried = self.tried
        await eventually(lambda: self.tried > tried + 3)


async def test_a_chore_that_keeps_failing_says_so_once_until_it_works_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    work = Work()
    async with background(Chore(work, 0, "dishes not done")):
        for times in (1, 2):
            work.fails = True
            await work.again()
            assert caplog.text.count("dishes not done") == times
            work.fails = False
            await work.again()


async def test_a_chore_ends_with_its_block() -> None:
    work = Work()
    async with background(Chore(work, 0, "dishes not done")):
        await work.again()
    tried = work.tried
    await asyncio.sleep(0)
    assert work.tried == tried
