"""Limits by the minute alone, and the network that an address counts as."""

import pytest

from petstore.domain.networks import network_of
from petstore.limits.decide import Budget, LimitWindow
from petstore.limits.memory import MinuteLimiter
from support.manual_clock import ManualClock

NOON = 20_788 * 86_400 + 43_200


def limiter_of(clock: ManualClock, per_minute: int, capacity: int = 10) -> MinuteLimiter[int]:
    return MinuteLimiter(clock, Budget("name", "words", per_minute, capacity))


def verdicts(limiter: MinuteLimiter[int], subject: int, times: int, **lower: int) -> list[bool]:
    return [limiter.take(subject, **lower).verdict == "admitted" for _ in range(times)]


def test_each_holder_has_so_many_requests_a_minute_and_is_never_banned(clock: ManualClock) -> None:
    limiter = limiter_of(clock, 2)
    for _ in range(100):  # a strike each time, of a key
        assert verdicts(limiter, 1, 30) == [True] * 2 + [False] * 28
        assert limiter.take(1).verdict == "limited"
        assert limiter.take(1).described == LimitWindow(2, 0, clock() // 1000 + 60)
        assert verdicts(limiter, 2, 1) == [True]
        clock.advance(59.999)
        assert verdicts(limiter, 1, 1) == [False]
        clock.advance(0.001)


def test_a_holder_can_have_a_lower_limit_but_not_a_higher_one(clock: ManualClock) -> None:
    limiter = limiter_of(clock, 2)
    assert verdicts(limiter, 1, 2, per_minute=1) == [True, False]
    assert verdicts(limiter, 2, 3, per_minute=9) == [True, True, False]


def test_a_look_is_not_counted(clock: ManualClock) -> None:
    limiter = limiter_of(clock, 2)
    for _ in range(9):
        assert limiter.look(1).described == LimitWindow(2, 2, NOON + 60)
    limiter.take(1)
    clock.advance(10)
    assert limiter.look(1).described == LimitWindow(2, 1, NOON + 60)


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2::1", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff:ffff:ffff:ffff", "2001:db8:1:2::/64"),
        ("2001:DB8:1:2:0:0:0:9", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::1", "2001:db8:1:3::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::1", "::/64"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("::ffff:c000:201", "192.0.2.1"),
        ("unix socket", "unix socket"),
        ("", ""),
    ],
)
def test_an_address_is_counted_by_its_network(address: str, network: str) -> None:
    assert network_of(address) == network


@pytest.mark.parametrize(
    ("taken", "remembered"),
    [
        ([(0, 1), (1, 2), (1, 3), (1, 1), (1, 4)], {2, 3, 4}),  # the oldest window goes
        ([(0, 1), (59, 2), (1, 1), (0, 3), (0, 4)], {1, 3, 4}),  # a new one is the newest
        ([(0, 1), (0, 2), (-3600, 1), (0, 3), (0, 4)], {1, 3, 4}),  # the clock was ahead
        ([(0, each) for each in range(1, 500)], {497, 498, 499}),
    ],
)
def test_a_full_table_forgets_the_oldest_window(
    clock: ManualClock, taken: list[tuple[float, int]], remembered: set[int]
) -> None:
    limiter = limiter_of(clock, 1, capacity=3)
    for seconds, subject in taken:
        clock.advance(seconds)
        limiter.take(subject)
    assert {each for each in range(1, 500) if not limiter.look(each).minute.remaining} == remembered


def test_a_request_that_is_given_back_may_be_used_again_and_takes_no_room(
    clock: ManualClock,
) -> None:
    limiter = limiter_of(clock, 2, capacity=2)
    limiter.give_back(1)
    assert verdicts(limiter, 1, 2) == [True, True]
    limiter.give_back(1)
    assert verdicts(limiter, 1, 2) == [True, False]
    for other in range(2, 10):
        limiter.take(other)
        limiter.give_back(other)
    assert verdicts(limiter, 1, 1) == [False]
