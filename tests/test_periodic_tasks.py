"""Periodic tasks in the background."""

import asyncio

import pytest

from petstore.errors import InternalError, Unavailable, WebhooksNotConfigured
from petstore.periodic_tasks import PeriodicTask, background
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


async def test_a_repeatedly_failing_chore_is_logged_once_until_it_succeeds(
    caplog: pytest.LogCaptureFixture,
) -> None:
    work = Work()
    async with background(PeriodicTask(work, 0, "dishes not done")):
        for times in (1, 2):
            work.fails = True
            await work.again()
            assert caplog.text.count("dishes not done") == times
            work.fails = False
            await work.again()
    tried = work.tried
    await asyncio.sleep(0)
    assert work.tried == tried  # it ends with its block


@pytest.mark.parametrize(
    ("error", "has_traceback"),
    [
        (Unavailable("the disk is full"), False),
        (WebhooksNotConfigured("no secret file"), False),
        (InternalError("a statement failed"), True),
        (ZeroDivisionError(), True),
    ],
)
async def test_only_an_unexpected_error_is_logged_with_a_traceback(
    caplog: pytest.LogCaptureFixture, error: Exception, *, has_traceback: bool
) -> None:
    async with background(PeriodicTask(Work(error), 0, "dishes not done")):
        await eventually(lambda: caplog.records)
    assert bool(caplog.records[0].exc_info) == has_traceback


async def test_a_chore_is_done_at_the_start_and_at_the_stop_if_it_wants_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    first, last, rare = Work(), Work(), Work()
    tasks = [
        PeriodicTask(first, 60, "table not laid", at_start=True),
        PeriodicTask(last, 60, "table not cleared", at_stop=True),
        PeriodicTask(rare, 60, "dishes not done"),
    ]
    async with background(*tasks):
        assert (first.tried, last.tried) == (1, 0)
    assert (first.tried, last.tried, rare.tried) == (1, 1, 0)
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 2
