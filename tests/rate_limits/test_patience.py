"""For how long Redis is waited for, on a machine that is calm or busy."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from petstore.rate_limits.patience import PRESSURE, patience

pytestmark = pytest.mark.anyio


@pytest.fixture
def pressure(tmp_path: Path) -> Path:
    """A file that tells nothing until it is written."""
    return tmp_path / "cpu"


@asynccontextmanager
async def too_few_processors(pressure: Path) -> AsyncIterator[None]:
    """Have the file say all the time that somebody is waiting for a processor."""

    async def tell() -> None:
        waited = 0
        while True:
            waited += 1_000_000
            pressure.write_text(f"some avg10=99.00 avg60=9.00 avg300=0.00 total={waited}\nfull 0\n")
            await asyncio.sleep(0.001)

    telling = asyncio.create_task(tell())
    try:
        yield
    finally:
        telling.cancel()


async def test_an_answer_in_time_is_an_answer(pressure: Path) -> None:
    async with patience(0.01, pressure):
        pass
    await asyncio.sleep(0.02)


@pytest.mark.parametrize("said", [None, "", "some", "some total=lots\n", "some total=5\nfull 0\n"])
async def test_silence_on_a_calm_machine_ends_the_wait(pressure: Path, said: str | None) -> None:
    if said is not None:
        pressure.write_text(said)
    with pytest.raises(TimeoutError):
        async with patience(0.05, pressure):
            await asyncio.sleep(60)


async def test_time_in_which_this_process_was_busy_does_not_count(pressure: Path) -> None:
    async with patience(0.1, pressure):
        for _ in range(10):
            time.sleep(0.05)  # noqa: ASYNC251 - it is the loop that is to stand still
            await asyncio.sleep(0)


async def test_time_in_which_the_machine_had_too_few_processors_does_not_count(
    pressure: Path,
) -> None:
    async with too_few_processors(pressure), patience(0.05, pressure):
        await asyncio.sleep(0.1)


async def test_in_the_end_silence_is_silence_though_the_machine_is_busy(pressure: Path) -> None:
    with pytest.raises(TimeoutError):
        async with too_few_processors(pressure), patience(0.02, pressure):
            await asyncio.sleep(60)


async def test_whatever_this_machine_tells_of_itself_the_wait_ends() -> None:
    with pytest.raises(TimeoutError):
        async with patience(0.02, PRESSURE):
            await asyncio.sleep(60)
