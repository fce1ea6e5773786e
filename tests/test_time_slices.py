"""Long work on the event loop."""

import asyncio
from itertools import pairwise

import pytest

from petstore.time_slices import TimeSlices

pytestmark = pytest.mark.anyio

WORKS, SLICES = 10, 5


async def test_the_loop_reads_between_two_slices_however_many_work() -> None:
    loop = asyncio.get_running_loop()
    reads = 0
    reads_before: list[int] = []  # each slice

    def read() -> None:
        nonlocal reads
        reads += 1
        if len(reads_before) < WORKS * SLICES:
            loop.call_soon(read)

    async def work() -> None:
        slices = TimeSlices(0)
        for _ in range(SLICES):
            await slices.rest()
            reads_before.append(reads)

    loop.call_soon(read)
    await asyncio.gather(*(work() for _ in range(WORKS)))
    assert all(before < after for before, after in pairwise(reads_before))


async def test_work_that_is_cancelled_takes_no_turn_from_others() -> None:
    cancelled, *others = [asyncio.create_task(TimeSlices(0).rest()) for _ in range(3)]
    await asyncio.sleep(0)
    cancelled.cancel()
    async with asyncio.timeout(30):
        await asyncio.gather(*others)
    assert cancelled.cancelled()


async def test_work_within_its_slice_goes_on() -> None:
    others = asyncio.Event()
    asyncio.get_running_loop().call_soon(others.set)
    await TimeSlices(3600).rest()
    assert not others.is_set()
