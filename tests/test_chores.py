"""Periodic tasks in the background."""

import asyncio

import pytest

from petstore.chores import Chore, background
from petstore.errors import InternalError, Unavailable, WebhooksNotConfigured
from support.waiting import eventually

pytestmark = pytest.mark.anyio


class Work:
    """Work that may fail, and counts how often it was tried."""

    def __init__(self, error: Exception | None = None) -> None:
        self.fails = True
        self.tried = 0
        self._error = error or ZeroDivisionError()

    async def __call__(self) -> None:
        self.tried += 1
        if self.fails:
            raise self._error

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


@pytest.mark.parametrize(
    ("error", "has_traceback"),
    [
        (Unavailable("the disk is full"), False),
        (WebhooksNotConfigured("no secret file"), False),
        (InternalError("a statement failed"), True),
        (ZeroDivisionError(), True),
    ],
)
async def test_only_a_fault_of_our_own_has_a_traceback(
    caplog: pytest.LogCaptureFixture, error: Exception, *, has_traceback: bool
) -> None:
    async with background(Chore(Work(error), 0, "dishes not done")):
        await eventually(lambda: caplog.records)
    assert bool(caplog.records[0].exc_info) == has_traceback


async def test_a_chore_ends_with_its_block() -> None:
    work = Work()
    async with background(Chore(work, 0, "dishes not done")):
        await work.again()
    tried = work.tried
    await asyncio.sleep(0)
    assert work.tried == tried
