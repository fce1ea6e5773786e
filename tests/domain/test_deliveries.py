"""When a delivery is attempted, and how a webhook fares."""

import pytest

from petstore.clock import DAY, MINUTE, SECOND
from petstore.domain.deliveries import (
    Health,
    is_success,
    next_attempt,
    paused_until,
)

NOW = 20_788 * DAY + DAY // 2  # noon of 2026-12-01
HOUR = 60 * MINUTE
WAITS = [5 * SECOND, 5 * MINUTE, 30 * MINUTE, *(hours * HOUR for hours in (2, 5, 10, 14, 20, 24))]


@pytest.mark.parametrize(("attempts", "wait"), [*enumerate(WAITS, 1)])
def test_each_attempt_follows_the_one_before_after_a_longer_time(attempts: int, wait: int) -> None:
    assert next_attempt(attempts, NOW, 0.5) == NOW + wait


@pytest.mark.parametrize(("chance", "share"), [(0, 0.8), (1, 1.2)])
def test_a_time_is_moved_by_up_to_a_fifth(chance: float, share: float) -> None:
    assert next_attempt(4, NOW, chance) == NOW + share * 2 * HOUR


def test_no_attempt_follows_the_tenth() -> None:
    assert next_attempt(10, NOW, 0.5) is None


@pytest.mark.parametrize("status", [200, 204, 299])
def test_2xx_is_success(status: int) -> None:
    assert is_success(status)


@pytest.mark.parametrize("status", [300, 301, 307, 400, 410, 500])
def test_another_status_is_none(status: int) -> None:
    assert not is_success(status)


@pytest.mark.parametrize(
    ("retry_after", "wait"),
    [
        ("120", 120 * SECOND),
        ("Tue, 01 Dec 2026 12:02:00 GMT", 120 * SECOND),
        ("9999999999999999999", DAY),
        ("Fri, 01 Jan 2100 00:00:00 GMT", DAY),
    ],
)
@pytest.mark.parametrize("status", [429, 503])
def test_an_endpoint_may_ask_us_to_wait_for_up_to_a_day(
    status: int, retry_after: str, wait: int
) -> None:
    assert paused_until(status, retry_after, NOW) == NOW + wait


@pytest.mark.parametrize(
    ("status", "retry_after"),
    [
        (429, None),
        (429, "0"),
        (429, "soon"),
        (429, "-5"),
        (429, "\N{ARABIC-INDIC DIGIT FIVE}"),
        (429, "Tue, 01 Dec 2026 11:00:00 GMT"),
        (429, "Tue, 01 Dec 2026 13:00:00 -0000"),
        (500, "120"),
        (200, "120"),
    ],
)
def test_without_a_time_to_come_on_429_or_503_nothing_waits(
    status: int, retry_after: str | None
) -> None:
    assert paused_until(status, retry_after, NOW) is None


def test_a_success_forgets_all_failures() -> None:
    assert Health(12, NOW - DAY, None).after(NOW, succeeded=True) == Health(0, None, NOW)


def test_failures_are_counted_since_the_first() -> None:
    health = Health(0, None, 7)
    for hours in range(3):
        health = health.after(NOW + hours * HOUR, succeeded=False)
    assert health == Health(3, NOW, 7)


@pytest.mark.parametrize(
    ("failures", "days", "is_for_good"), [(10, 5, True), (9, 5, False), (10, 4.9, False)]
)
def test_a_webhook_fails_for_good_after_five_days_and_ten_failures(
    failures: int,
    days: float,
    is_for_good: bool,  # noqa: FBT001 - what is expected
) -> None:
    health = Health(failures, NOW, None)
    assert health.is_failing_for_good(NOW + round(days * DAY)) == is_for_good


def test_a_webhook_without_failures_does_not_fail() -> None:
    assert not Health(0, None, None).is_failing_for_good(NOW)
