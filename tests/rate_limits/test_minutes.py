"""Limits by the minute alone."""

import pytest

from petstore.rate_limits.minutes import MinuteLimiter
from support.manual_clock import ManualClock


@pytest.fixture
def limiter(clock: ManualClock) -> MinuteLimiter[int]:
    return MinuteLimiter(clock, 2, 10)


def test_each_holder_has_so_many_a_minute(limiter: MinuteLimiter[int], clock: ManualClock) -> None:
    assert [limiter.take(1).verdict for _ in range(3)] == ["admitted", "admitted", "limited"]
    assert limiter.take(2).verdict == "admitted"
    clock.advance(60)
    assert limiter.take(1).verdict == "admitted"


def test_what_is_given_back_may_be_taken_again(limiter: MinuteLimiter[int]) -> None:
    limiter.take(1)
    limiter.take(1)
    limiter.give_back(1)
    assert limiter.look(1).minute.remaining == 1
    assert [limiter.take(1).verdict for _ in range(2)] == ["admitted", "limited"]


def test_no_more_is_given_back_than_was_taken(limiter: MinuteLimiter[int]) -> None:
    limiter.give_back(1)
    limiter.take(1)
    for _ in range(3):
        limiter.give_back(1)
    assert limiter.look(1).minute.remaining == 2
