"""When a delivery is attempted, and how a webhook fares."""

import pytest

from petstore.clock import DAY, MINUTE, SECOND
from petstore.webhooks.model import (
    HOLD,
    NOTICED_FAILURES,
    WebhookHealth,
    is_success,
    next_attempt,
    paused_until,
    status_in_words,
)

NOW = 20_788 * DAY + DAY // 2  # noon of 2026-12-01
HOUR = 60 * MINUTE
WAITS = [5 * SECOND, 5 * MINUTE, 30 * MINUTE, *(hours * HOUR for hours in (2, 5, 10, 14, 20, 24))]


@pytest.mark.parametrize(("attempts", "wait"), [*enumerate(WAITS, 1)])
def test_the_delay_before_each_of_ten_attempts_grows(attempts: int, wait: int) -> None:
    assert next_attempt(attempts, NOW, 0.5) == NOW + wait
    assert next_attempt(10, NOW, 0.5) is None
    assert WAITS[1] == HOLD


@pytest.mark.parametrize(("chance", "share"), [(0, 0.8), (1, 1.2)])
def test_a_delay_has_up_to_20_percent_of_jitter(chance: float, share: float) -> None:
    assert next_attempt(4, NOW, chance) == NOW + share * 2 * HOUR


def test_only_a_2xx_status_is_a_success() -> None:
    statuses = (199, 200, 204, 299, 300, 301, 307, 400, 410, 500)
    assert [status for status in statuses if is_success(status)] == [200, 204, 299]


@pytest.mark.parametrize(
    ("retry_after", "wait"),
    [
        ("120", 120 * SECOND),
        ("Tue, 01 Dec 2026 12:02:00 GMT", 120 * SECOND),
        ("9" * 5_000, DAY),
        ("Fri, 01 Jan 2100 00:00:00 GMT", DAY),
    ],
)
@pytest.mark.parametrize("status", [429, 503])
def test_retry_after_pauses_up_to_a_day(status: int, retry_after: str, wait: int) -> None:
    assert paused_until(status, retry_after, NOW) == NOW + wait


def test_a_retry_after_date_one_millisecond_ahead_pauses_deliveries() -> None:
    assert paused_until(429, "Tue, 01 Dec 2026 12:00:00 GMT", NOW - 1) == NOW


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
def test_only_a_future_retry_after_on_a_429_or_503_pauses_deliveries(
    status: int, retry_after: str | None
) -> None:
    assert paused_until(status, retry_after, NOW) is None


def test_consecutive_failures_are_counted_from_the_first_until_a_success() -> None:
    health = WebhookHealth(0, None, 7)
    for hours in range(3):
        health = health.after(NOW + hours * HOUR, succeeded=False)
    assert health == WebhookHealth(NOTICED_FAILURES, NOW, 7) == WebhookHealth(3, NOW, 7)
    assert health.after(NOW + DAY, succeeded=True) == WebhookHealth(0, None, NOW + DAY)


@pytest.mark.parametrize(
    ("failures", "days", "is_for_good"), [(10, 5, True), (9, 5, False), (10, 4.9, False)]
)
def test_a_webhook_fails_for_good_after_five_days_and_ten_failures(
    failures: int,
    days: float,
    is_for_good: bool,  # noqa: FBT001 - what is expected
) -> None:
    health = WebhookHealth(failures, NOW, None)
    assert health.is_failing_for_good(NOW + round(days * DAY)) == is_for_good
    assert not WebhookHealth(0, None, None).is_failing_for_good(NOW)


@pytest.mark.parametrize(("status", "said"), [(404, "404 Not Found"), (999, "999")])
def test_a_status_has_its_reason_phrase_if_there_is_one(status: int, said: str) -> None:
    assert status_in_words(status) == said
