"""The table of interface.md, section "Request rate, by plan"."""

import pytest
from msgspec.structs import replace

from petstore.domain.plans import UNLIMITED, Limits, PlanName
from petstore.keys.model import operator


@pytest.mark.parametrize(
    ("plan", "per_minute", "per_day", "limits"),
    [
        *(("free", None, None, (60, 1_000)), ("pro", None, None, (300, 10_000))),
        ("business", None, None, (1_000, 100_000)),
        ("enterprise", None, None, (UNLIMITED, UNLIMITED)),
        *(("enterprise", 5, None, (5, UNLIMITED)), ("enterprise", None, 70, (UNLIMITED, 70))),
        ("enterprise", 5, 70, (5, 70)),
    ],
)
def test_a_plan_has_the_specified_limits(
    plan: PlanName, per_minute: int | None, per_day: int | None, limits: tuple[int, int]
) -> None:
    key = replace(operator("production"), plan=plan, per_minute=per_minute, per_day=per_day)
    assert key.limits == limits
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
