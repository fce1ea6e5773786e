"""Clients that list animals notice a page that is older than an acknowledged change."""

from pathlib import Path
from random import Random
from typing import Any

import pytest

from proof.experiment import Trial, conduct
from proof.experiments.lists import EXPERIMENTS, GONE, Shelf


def page(**names: int) -> list[dict[str, Any]]:
    return [{"id": int(key[1:]), "name": f"Bella {number}"} for key, number in names.items()]


@pytest.mark.parametrize(
    ("shown", "stale"),
    [
        (page(_1=5, _2=7), []),
        (page(_1=6, _2=9, _8=1), []),
        (page(_1=4, _2=7), [1]),
        (page(_1=5), [2]),
        (page(_1=5, _2=7, _3=2), [3]),
        (page(_1=5, _2=7, _4=1), [4]),
    ],
)
def test_a_page_with_less_than_was_acknowledged_is_stale(
    shown: list[dict[str, Any]], stale: list[int]
) -> None:
    shelf = Shelf(1)
    shelf.leaving = {3, 4}
    assert shelf.stale({1: 5, 2: 7, 3: GONE, 4: 2}, shown) == stale


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda one: one.name)
def test_lists_show_acknowledged_changes(experiment: Any, tmp_path: Path) -> None:
    trial = Trial(0.3, Random(1), tmp_path)  # noqa: S311 - what is drawn is no secret
    conduct(experiment, trial)
    assert trial.broken == []
    assert trial.seen["lists"] >= 24
    assert trial.seen["acknowledged changes"] >= 40
