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
def test_the_plan_leaves_half_of_the_redis_cores_free(per_minute: int) -> None:
    needs = shape(MEASURED, per_minute)
    assert needs["Redis: cores in use"] <= needs["Redis: masters"] * BUSY
