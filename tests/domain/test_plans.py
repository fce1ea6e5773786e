"""The table of interface.md, section "Request rate, by plan"."""

import pytest

from petstore.domain.plans import UNLIMITED, Limits, PlanName, limits_of


@pytest.mark.parametrize(
    ("plan", "limits"),
    [("free", (60, 1_000)), ("pro", (300, 10_000)), ("business", (1_000, 100_000))],
)
def test_a_plan_grants_the_rates_of_the_interface(plan: PlanName, limits: tuple[int, int]) -> None:
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
def test_enterprise_has_the_limits_of_its_key_and_is_unlimited_without(
    per_minute: int | None, per_day: int | None, limits: Limits
) -> None:
    assert limits_of("enterprise", per_minute, per_day) == limits


def test_unlimited_is_the_largest_value_kept() -> None:
    assert UNLIMITED == 2_147_483_647
