"""Which connections close when all together buffer too much."""

from collections.abc import Hashable

from petstore.http.connection import BufferBudget


class Waiter:
    """Notes when it has to give up what it buffers."""

    def __init__(self, owner: Hashable = None) -> None:
        self.owner = owner
        self.has_given_up = False

    def give_up(self) -> None:
        self.has_given_up = True


def given_up(waiters: list[Waiter]) -> list[int]:
    return [number for number, waiter in enumerate(waiters) if waiter.has_given_up]


def test_nothing_is_dropped_within_the_budget() -> None:
    budget, waiters = BufferBudget(100), [Waiter(), Waiter()]
    for waiter in waiters:
        budget.note(waiter, 50)
    assert given_up(waiters) == []


def test_of_equal_connections_beyond_the_budget_the_longest_idle_is_dropped() -> None:
    budget, waiters = BufferBudget(100), [Waiter() for _ in range(4)]
    for number in (0, 1, 2, 0, 3):
        budget.note(waiters[number], 30)
    assert given_up(waiters) == [1]


def test_beyond_the_budget_the_connection_with_the_largest_buffer_is_dropped() -> None:
    budget, waiters = BufferBudget(100), [Waiter() for _ in range(4)]
    for waiter, size in zip(waiters, (20, 50, 10, 21), strict=True):
        budget.note(waiter, size)
    assert given_up(waiters) == [1]


def test_many_small_buffers_of_one_owner_count_together() -> None:
    budget = BufferBudget(100)
    waiters = [Waiter(owner=name) for name in ("own", *("stranger",) * 8)]
    budget.note(waiters[0], 30)
    for waiter in waiters[1:]:
        budget.note(waiter, 10)
    assert given_up(waiters) == [1]


def test_only_as_much_is_dropped_as_the_budget_needs() -> None:
    budget, waiters = BufferBudget(100), [Waiter(owner=name) for name in ("a", "a", "a", "b")]
    for waiter in waiters[:3]:
        budget.note(waiter, 30)
    budget.note(waiters[3], 50)
    assert given_up(waiters) == [0, 1]


def test_released_bytes_do_not_count() -> None:
    budget, waiters = BufferBudget(100), [Waiter(), Waiter(), Waiter()]
    budget.note(waiters[0], 90)
    budget.note(waiters[0], 0)
    budget.note(waiters[1], 90)
    budget.note(waiters[2], 10)
    assert given_up(waiters) == []


def test_a_connection_that_buffers_more_than_the_whole_budget_is_dropped_itself() -> None:
    budget, waiters = BufferBudget(100), [Waiter()]
    budget.note(waiters[0], 101)
    budget.note(waiters[0], 0)
    assert given_up(waiters) == [0]
