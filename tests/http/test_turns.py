"""Whose turn it is, and how many have one before the loop looks for others."""

import asyncio
from collections.abc import Callable

import pytest

from petstore.http.turns import Turns

pytestmark = pytest.mark.anyio


class Waiter:
    """Notes when it has its turn, and may then do something else."""

    def __init__(self, name: int, had: list[int], then: Callable[[], None] = lambda: None) -> None:
        self._name = name
        self._had = had
        self._then = then

    def take_turn(self) -> None:
        self._had.append(self._name)
        self._then()

    def abort(self) -> None:
        self._had.append(-self._name)


async def test_those_that_wait_go_on_in_the_order_in_which_they_came() -> None:
    turns, had = Turns(), list[int]()
    for name in range(5):
        turns.add(Waiter(name, had))
    assert had == []
    await asyncio.sleep(0)
    assert had == [0, 1, 2, 3, 4]


async def test_a_few_go_on_in_each_round_of_the_loop() -> None:
    turns, had = Turns(), list[int]()
    for name in range(40):
        turns.add(Waiter(name, had))
    seen = []
    for _ in range(3):
        await asyncio.sleep(0)
        seen.append(len(had))
    assert seen == [16, 32, 40]


async def test_what_waits_again_goes_on_after_the_others() -> None:
    turns, had = Turns(), list[int]()
    turns.add(Waiter(0, had, lambda: turns.add(Waiter(9, had))))
    turns.add(Waiter(1, had))
    for _ in range(2):
        await asyncio.sleep(0)
    assert had == [0, 1, 9]


async def test_the_fault_of_one_ends_no_turn_of_others(caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> None:
        raise RuntimeError

    turns, had = Turns(), list[int]()
    turns.add(Waiter(1, had, fail))
    turns.add(Waiter(2, had))
    await asyncio.sleep(0)
    turns.add(Waiter(3, had))
    await asyncio.sleep(0)
    assert had == [1, -1, 2, 3]
    assert "a connection failed" in caplog.text
