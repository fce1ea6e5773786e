"""The order of turns, and which connections close when all together buffer too much."""

import asyncio
from collections.abc import Callable, Hashable

import pytest

from petstore.http.turns import BufferBudget, RoundRobin

pytestmark = pytest.mark.anyio


class Waiter:
    """Notes when it has its turn or is closed, and may then do something else."""

    def __init__(
        self,
        name: int = 0,
        had: list[int] | None = None,
        then: Callable[[], None] = lambda: None,
        holder: Hashable = None,
    ) -> None:
        self.holder = holder
        self._name = name
        self._had = [] if had is None else had
        self._then = then
        self.has_given_up = False

    def resume(self) -> None:
        self._had.append(self._name)
        self._then()

    def abort(self) -> None:
        self._had.append(-self._name)

    def give_up(self) -> None:
        self.has_given_up = True


def given_up(waiters: list[Waiter]) -> list[int]:
    return [number for number, waiter in enumerate(waiters) if waiter.has_given_up]


async def test_waiting_connections_resume_in_order() -> None:
    turns, had = RoundRobin(), list[int]()
    for name in range(5):
        turns.add(Waiter(name, had))
    assert had == []
    await asyncio.sleep(0)
    assert had == [0, 1, 2, 3, 4]


async def test_only_a_few_connections_resume_in_each_iteration_of_the_event_loop() -> None:
    turns, had = RoundRobin(), list[int]()
    for name in range(40):
        turns.add(Waiter(name, had))
    seen = []
    for _ in range(3):
        await asyncio.sleep(0)
        seen.append(len(had))
    assert seen == [16, 32, 40]


async def test_a_connection_that_waits_again_resumes_after_the_others() -> None:
    turns, had = RoundRobin(), list[int]()
    turns.add(Waiter(0, had, lambda: turns.add(Waiter(9, had))))
    turns.add(Waiter(1, had))
    for _ in range(2):
        await asyncio.sleep(0)
    assert had == [0, 1, 9]


async def test_an_error_in_one_connection_does_not_stop_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail() -> None:
        raise RuntimeError

    turns, had = RoundRobin(), list[int]()
    turns.add(Waiter(1, had, fail))
    turns.add(Waiter(2, had))
    await asyncio.sleep(0)
    turns.add(Waiter(3, had))
    await asyncio.sleep(0)
    assert had == [1, -1, 2, 3]
    assert "a connection failed" in caplog.text


async def test_nothing_is_dropped_within_the_budget() -> None:
    budget, waiters = BufferBudget(100), [Waiter(), Waiter()]
    for waiter in waiters:
        budget.note(waiter, 50)
    assert given_up(waiters) == []


async def test_of_equal_connections_beyond_the_budget_the_longest_idle_is_dropped() -> None:
    budget, waiters = BufferBudget(100), [Waiter() for _ in range(4)]
    for number in (0, 1, 2, 0, 3):
        budget.note(waiters[number], 30)
    assert given_up(waiters) == [1]


async def test_beyond_the_budget_the_connection_with_the_largest_buffer_is_dropped() -> None:
    budget, waiters = BufferBudget(100), [Waiter() for _ in range(4)]
    for waiter, size in zip(waiters, (20, 50, 10, 21), strict=True):
        budget.note(waiter, size)
    assert given_up(waiters) == [1]


async def test_many_small_buffers_of_one_owner_count_together() -> None:
    budget = BufferBudget(100)
    waiters = [Waiter(holder=name) for name in ("own", *("stranger",) * 8)]
    budget.note(waiters[0], 30)
    for waiter in waiters[1:]:
        budget.note(waiter, 10)
    assert given_up(waiters) == [1]


async def test_only_as_much_is_dropped_as_the_budget_needs() -> None:
    budget, waiters = BufferBudget(100), [Waiter(holder=name) for name in ("a", "a", "a", "b")]
    for waiter in waiters[:3]:
        budget.note(waiter, 30)
    budget.note(waiters[3], 50)
    assert given_up(waiters) == [0, 1]


async def test_released_bytes_do_not_count() -> None:
    budget, waiters = BufferBudget(100), [Waiter(), Waiter(), Waiter()]
    budget.note(waiters[0], 90)
    budget.note(waiters[0], 0)
    budget.note(waiters[1], 90)
    budget.note(waiters[2], 10)
    assert given_up(waiters) == []


async def test_a_connection_that_buffers_more_than_the_whole_budget_is_dropped_itself() -> None:
    budget, waiters = BufferBudget(100), [Waiter()]
    budget.note(waiters[0], 101)
    budget.note(waiters[0], 0)
    assert given_up(waiters) == [0]
