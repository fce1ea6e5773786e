"""The table of interface.md, section "Request rate, by plan"."""

import pytest

from petstore.domain.plans import UNLIMITED, Limits, PlanName, limits_of


@pytest.mark.parametrize(
    ("plan", "limits"),
    [("free", (60, 1_000)), ("pro", (300, 10_000)), ("business", (1_000, 100_000))],
)
def test_a_plan_has_the_specified_limits(plan: PlanName, limits: tuple[int, int]) -> None:
    assert limits_of(plan, None, None) == limits


@pytest.mark.parametrize(
    ("per_minute", "per_day", "limits"),
    [
        (None, None, Limits(UNLIMITED, UNLIMITED)),
        (5, None, Limits(5, UNLIMITED)),
        (None, 70, Limits(UNLIMITED, 70)),
        (5, 70, Limits(5, 70)),
    ],
)
def test_an_enterprise_key_has_its_custom_limits_or_none(
    per_minute: int | None, per_day: int | None, limits: Limits
) -> None:
    assert limits_of("enterprise", per_minute, per_day) == limits


def test_unlimited_is_the_largest_int32() -> None:
    assert UNLIMITED == 2_147_483_647


@pytest.mark.parametrize(
    ("limits", "processes", "share"),
    [
        (Limits(7, 6), 3, Limits(2, 2)),
        (Limits(2, UNLIMITED), 3, Limits(1, UNLIMITED)),
        (Limits(0, 1), 1, Limits(1, 1)),
    ],
)
def test_each_process_gets_its_share_of_the_limits_and_at_least_one_request(
    limits: Limits, processes: int, share: Limits
) -> None:
    assert limits.share(processes) == share
