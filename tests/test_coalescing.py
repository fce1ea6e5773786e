"""Concurrent calls that share work."""

import asyncio
import gc
import time
from collections.abc import Sequence

import pytest

from petstore.coalescing import Batcher, SingleFlight

pytestmark = pytest.mark.anyio

GONE = OSError("gone")


class Work:
    """Work in progress: it counts how often it began, and ends when it may."""

    def __init__(self) -> None:
        self.begun = 0
        self.may_end = asyncio.Event()
        self.fault: Exception | None = None

    async def __call__(self) -> int:
        self.begun += 1
        number = self.begun
        await self.may_end.wait()
        if self.fault is not None:
            raise self.fault
        return number


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_concurrent_calls_with_one_key_share_one_call_and_its_error() -> None:
    calls, work = SingleFlight[str, int](), Work()
    callers = [asyncio.create_task(calls.call(key, work)) for key in "aab"]
    await turns()
    assert "a" in calls
    work.may_end.set()
    assert await asyncio.gather(*callers) == [1, 1, 2]
    await turns()
    assert "a" not in calls
    work.may_end.clear()
    callers = [asyncio.create_task(calls.call("a", work)) for _ in range(3)]
    await turns()
    work.fault = OSError("gone")
    work.may_end.set()
    outcomes = await asyncio.gather(*callers, return_exceptions=True)
    assert [str(outcome) for outcome in outcomes] == ["gone"] * 3
    assert "a" not in calls


async def test_a_cancelled_caller_does_not_cancel_a_shared_call() -> None:
    calls, work = SingleFlight[str, int](), Work()
    gone, other = (asyncio.create_task(calls.call("a", work)) for _ in range(2))
    await turns()
    gone.cancel()
    await turns()
    work.may_end.set()
    assert await other == 1


@pytest.mark.parametrize("is_cancelled", [False, True])
async def test_a_call_that_fails_without_waiting_callers_is_not_an_error(
    *, is_cancelled: bool
) -> None:
    calls, work = SingleFlight[str, int](), Work()
    faults: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context))
    before = asyncio.all_tasks()
    caller = asyncio.create_task(calls.call("a", work))
    await turns()
    (call,) = asyncio.all_tasks() - before - {caller}
    caller.cancel()
    await turns()
    if is_cancelled:
        call.cancel()
    work.fault = OSError("gone")
    work.may_end.set()
    await asyncio.wait([call])
    await turns()
    del call, caller
    gc.collect()
    assert faults == []
    assert "a" not in calls


class Group:
    """Runs batches: it remembers them, and each ends when it may, with an error for -1."""

    def __init__(self, max_size: int = 100, at_once: int = 1, timeout: float | None = None) -> None:
        self.sizes: list[int] = []
        self.may_end = asyncio.Event()
        self.batches: Batcher[int, int] = Batcher(self.run, max_size, at_once, timeout)

    async def run(self, arguments: Sequence[int]) -> Sequence[int | Exception]:
        self.sizes.append(len(arguments))
        await self.may_end.wait()
        if -1 in arguments:
            raise GONE
        return [2 * each if each else ValueError("zero") for each in arguments]

    def calls(self, *arguments: int) -> list[asyncio.Future[int]]:
        return [*map(self.batches.call, arguments)]


async def test_a_failed_batch_fails_every_waiting_call_at_once() -> None:
    group = Group()
    calls = group.calls(-1, 2)
    await turns()
    calls += group.calls(3)
    await turns()
    group.may_end.set()
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    assert [str(outcome) for outcome in outcomes] == ["gone"] * 3
    assert group.sizes == [2]
    # A call that follows the result of another one at once is made.
    assert [await group.batches.call(each) for each in (1, 2, 3)] == [2, 4, 6]


async def test_an_error_of_one_call_fails_no_other_call_of_its_batch() -> None:
    group = Group()
    group.may_end.set()
    outcomes = await asyncio.gather(*group.calls(1, 0, 3), return_exceptions=True)
    assert [str(outcome) for outcome in outcomes] == ["2", "zero", "6"]
    assert group.sizes == [3]


async def test_a_batch_that_fails_beside_others_fails_only_its_own_calls() -> None:
    group, calls = Group(at_once=2), list[asyncio.Future[int]]()
    for more in ((-1, 2), (3,), (4,)):
        calls += group.calls(*more)
        await turns()
    group.may_end.set()
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    assert [str(outcome) for outcome in outcomes] == ["gone", "gone", "6", "8"]


async def test_so_many_batches_run_at_once_and_the_next_one_has_all_that_wait() -> None:
    group = Group(max_size=3, at_once=2)
    calls: list[asyncio.Future[int]] = []
    for more in ((1, 2), (3,), (4, 5), (6, 7)):
        calls += group.calls(*more)
        await turns()
    assert group.sizes == [2, 1]
    group.may_end.set()
    assert await asyncio.gather(*calls) == [2, 4, 6, 8, 10, 12, 14]
    assert group.sizes == [2, 1, 3, 1]


async def test_no_call_takes_longer_than_the_timeout_even_if_it_waits_for_others_first() -> None:
    group, begun = Group(max_size=1, at_once=2, timeout=0.2), time.monotonic()
    outcomes = await asyncio.gather(*group.calls(1, 2, 3), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [TimeoutError] * 3
    assert time.monotonic() - begun < 0.4
    group.may_end.set()
    assert await group.batches.call(4) == 8


async def test_the_time_of_a_call_begins_with_it_even_if_others_have_long_waited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ends, timeout_at = list[float](), asyncio.timeout_at

    def noted(end: float) -> asyncio.Timeout:
        ends.append(end)
        return timeout_at(end)

    monkeypatch.setattr("asyncio.timeout_at", noted)
    group = Group(max_size=1, timeout=60)
    calls = group.calls(1, 2)
    await asyncio.sleep(0.01)
    calls += group.calls(3)
    group.may_end.set()
    assert await asyncio.gather(*calls) == [2, 4, 6]
    assert ends[1] + 0.01 <= ends[2]


async def test_a_cancelled_caller_does_not_cancel_its_call() -> None:
    group = Group()
    gone, other = group.calls(1, 2)
    await asyncio.sleep(0)
    gone.cancel()
    group.may_end.set()
    assert await other == 4
    assert group.sizes == [2]


async def test_cancelled_batches_run_no_more_calls() -> None:
    group = Group()
    group.batches.cancel()
    calls = group.calls(1, 2)
    await turns()
    group.batches.cancel()
    group.may_end.set()
    await turns()
    assert [call.done() for call in calls] == [False, False]
    for call in calls:
        call.cancel()
    await asyncio.gather(*calls, return_exceptions=True)
