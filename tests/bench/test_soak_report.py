"""The report on a long load shows whether memory or latency grow."""

import pytest

from rounds import Round
from soak_report import Slice, Soak, report


def soak(*slices: tuple[float, float], errors: int = 0) -> Soak:
    """Return a run of so many slices of 10 s, each with its memory and p99."""
    return Soak(
        machine="2 cores, Example",
        system="Linux 6.1",
        load_average=0.2,
        slices=[
            Slice(
                until=10 * number,
                megabytes=megabytes,
                load=Round(rate=9_000, p50=1, p99=p99, p999=3, cpu=50, errors=errors),
            )
            for number, (megabytes, p99) in enumerate(slices, 1)
        ],
    )


def test_a_run_whose_last_third_is_like_its_first_is_steady() -> None:
    run = soak((80, 5), (95, 50), (81, 5))
    assert run.is_steady
    assert "memory is 1.012 × (at most 1.05 ×) and p99 1.00 ×" in report(run)


@pytest.mark.parametrize(
    "run",
    [
        soak((80, 5), (80, 5), (85, 5)),
        soak((80, 5), (80, 5), (80, 7)),
        soak((80, 5), (80, 5), (80, 5), errors=1),
    ],
    ids=["memory", "latency", "failures"],
)
def test_a_run_in_which_something_grew_or_failed_is_not_steady(run: Soak) -> None:
    assert not run.is_steady
    assert ": not steady." in report(run)


def test_a_long_run_is_reported_in_a_few_rows_of_medians() -> None:
    rows = report(soak(*[(80, 5)] * 359, (99, 5))).splitlines()
    assert len([row for row in rows if row.startswith("| ")]) == 2 + 12
    assert rows[-1] == "| 3600 | 9,000 | 1.0 | 5.0 | 3.0 | 50.0 | 80.0 |"
