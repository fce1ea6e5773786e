"""What a client knows of its limits, and when it lets a request go."""

import pytest
from httpx2 import Headers

from petstore_client._rate_limits import RateLimits, Wait
from petstore_client.errors import RateLimited

MAX_WAIT = 120.0


def told(*windows: tuple[int, int]) -> Headers:
    """Return headers of windows, each with requests left and seconds to the reset."""
    names = ("minute", "day")
    texts = [f'"{name}";r={r};t={t}' for name, (r, t) in zip(names, windows, strict=False)]
    return Headers({"X-RateLimit-Limit": "60", "RateLimit": ", ".join(texts)})


def refusal(seconds: float | None) -> RateLimited:
    return RateLimited("wait", status=429, code="rate_limit_exceeded", retry_after=seconds)


def after(*windows: tuple[int, int], at: float = 0) -> RateLimits:
    """Return the limits after a request and its response, which tells of windows."""
    known = RateLimits(MAX_WAIT)
    known.enter(0, MAX_WAIT)
    known.leave(at, told(*windows))
    return known


def enter(known: RateLimits, now: float, max_wait: float = MAX_WAIT) -> float:
    """Return how long a request waits; 0 if it goes."""
    wait = known.enter(now, max_wait)
    return 0 if wait is None else round(wait.seconds, 6)


def test_before_the_first_response_requests_are_spaced_by_the_number_pending() -> None:
    known = RateLimits(MAX_WAIT)
    assert enter(known, 0) == 0
    assert enter(known, 0) == 0.05
    assert enter(known, 0.05) == 0
    assert enter(known, 0.05) == 0.1
    for second in range(30):
        enter(known, 10 + 2 * second)
    assert enter(known, 68) == 1


def test_no_more_requests_are_sent_than_remain_until_one_discovers_the_next_window() -> None:
    known = after((2, 59), at=1)
    assert [enter(known, 1) for _ in range(2)] == [0, 0]
    assert known.enter(1, MAX_WAIT) == Wait(59, is_for_window=True)
    assert [enter(known, 60) for _ in range(2)] == [0, 0.15]
    known.leave(60, told((59, 60)))
    assert enter(known, 60) == 0


def test_pending_requests_count_as_sent() -> None:
    known = RateLimits(MAX_WAIT)
    for moment in (0, 10, 20):
        assert enter(known, moment) == 0
    known.leave(20, told((3, 40)))
    assert [enter(known, 20) for _ in range(2)] == [0, 40]


def test_an_older_response_does_not_raise_the_remaining_requests() -> None:
    known = after((3, 60))
    assert [enter(known, 0) for _ in range(3)] == [0, 0, 0]
    known.leave(0, told((2, 60)))
    known.leave(0, told((1, 60)))
    assert enter(known, 0) == 60
    known.leave(0, told((20, 60)))
    assert enter(known, 0) == 0


def test_a_window_beyond_the_maximum_wait_is_left_to_the_service() -> None:
    known = after((5, 60), (0, 40_000))
    assert enter(known, 0) == 0
    assert enter(known, 0) == 0.05


def test_a_key_whose_limits_are_absent_or_removed_is_not_delayed() -> None:
    known = after((0, 60))
    known.abandon()
    known.leave(1, Headers({"X-RateLimit-Limit": "2147483647"}))
    assert [enter(known, 1) for _ in range(100)] == 100 * [0]


@pytest.mark.parametrize("text", ["", "minute", '"minute";r=5', '"minute";t=5', '"m";r=x;t=5', "7"])
def test_an_invalid_header_is_ignored(text: str) -> None:
    known = RateLimits(MAX_WAIT)
    known.enter(0, MAX_WAIT)
    known.leave(0, Headers({"RateLimit": text}))
    assert [enter(known, 0) for _ in range(9)] == 9 * [0]


def test_after_a_429_no_request_is_sent_before_retry_after() -> None:
    known = RateLimits(MAX_WAIT)
    known.enter(0, MAX_WAIT)
    error = refusal(40)
    known.refuse(1, error)
    assert known.enter(1, MAX_WAIT) == Wait(40, is_for_window=True, error=error)
    assert enter(known, 40.5) == 0.5
    assert enter(known, 41) == 0
    assert enter(known, 41) == 0.05


def test_each_further_429_doubles_the_minimum_wait_until_a_success() -> None:
    known, now, waits = RateLimits(MAX_WAIT), 0.0, []
    for _ in range(9):
        known.enter(now, MAX_WAIT)
        known.refuse(now, refusal(None))
        waits.append(enter(known, now))
        now += waits[-1]
    assert waits == [1, 2, 4, 8, 16, 32, 64, 64, 64]
    known.enter(now, MAX_WAIT)
    known.leave(now, Headers())
    known.enter(now, MAX_WAIT)
    known.refuse(now, refusal(None))
    assert enter(known, now) == 1


def test_during_a_long_wait_one_request_checks_again_each_minute() -> None:
    known = RateLimits(0)
    known.enter(0, 0)
    known.refuse(0, refusal(40_000))
    assert enter(known, 0, 0) == 40_000
    assert enter(known, 59, 0) == 39_941
    assert enter(known, 60, 0) == 0  # the plan may have changed
    known.refuse(60, refusal(39_940))
    assert enter(known, 60, 0) == 39_940


def test_a_window_that_a_change_of_plan_has_removed_is_forgotten() -> None:
    known = after((50, 60), (0, 100))
    known.leave(0, Headers({"Server": "a proxy"}))
    assert enter(known, 0) == 100
    known.leave(0, told((50, 60)))
    assert enter(known, 0) == 0
