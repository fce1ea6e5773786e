"""The page on scale has the tables that follow from what was measured."""

import pytest

from measured import read_measured
from pages import quoted
from scale import BUSY, PAGE, shape, tables

MEASURED = read_measured()


def test_the_page_has_the_tables_of_the_saved_measurements() -> None:
    text = PAGE.read_text()
    assert text == quoted(text, tables(MEASURED))


@pytest.mark.parametrize("per_minute", [1, 1_000_000, 100_000_000])
def test_half_of_the_cores_of_redis_may_fail(per_minute: int) -> None:
    needs = shape(MEASURED, per_minute)
    assert needs["Redis: cores in use"] <= needs["Redis: masters"] * BUSY


def test_two_processes_are_the_minimum_so_that_one_can_restart() -> None:
    assert shape(MEASURED, 1)["Processes"] == 2


def test_lists_go_to_replicas_when_one_primary_cannot_serve_them() -> None:
    small, large = (shape(MEASURED, per_minute) for per_minute in (1_000_000, 100_000_000))
    assert small["PostgreSQL: replicas for lists"] == 0
    assert large["PostgreSQL: replicas for lists"] > 0


def test_needs_grow_with_the_rate() -> None:
    small, large = (shape(MEASURED, per_minute) for per_minute in (10**7, 10**8))
    assert all(small[name] <= large[name] for name in small)
