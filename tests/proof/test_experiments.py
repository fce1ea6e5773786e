"""Experiments have one shape, and report what fails."""

from pathlib import Path
from random import Random

import pytest

from proof.experiment import Experiment, Skipped, Trial, allotted, conduct
from proof.experiments import EXPERIMENTS


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    """A trial without any time: what must be done once is done once."""
    return Trial(0, Random(1), tmp_path)  # noqa: S311 - what is drawn is no secret


def test_every_experiment_has_a_unique_name() -> None:
    assert len({one.name for one in EXPERIMENTS}) == len(EXPERIMENTS)


def test_broken_promises_are_counted_and_the_first_ones_are_listed(trial: Trial) -> None:
    for number in range(30):
        trial.expect(kept=False, otherwise=f"promise {number}")
    trial.expect(kept=True, otherwise="never said")
    assert trial.seen == {"broken promises": 30}
    assert trial.broken == [f"promise {number}" for number in range(20)]


@pytest.mark.parametrize(
    ("error", "broken", "skipped"),
    [
        (ValueError("it fell"), ["the experiment failed: ValueError: it fell"], []),
        (Skipped("needs a second moon"), [], ["needs a second moon"]),
    ],
)
def test_an_experiment_that_fails_breaks_its_promise_and_one_that_cannot_run_is_skipped(
    trial: Trial, error: Exception, broken: list[str], skipped: list[str]
) -> None:
    def fail(_: Trial) -> None:
        raise error

    conduct(Experiment("shaky", "It holds.", "By standing.", fail), trial)
    assert (trial.broken, trial.skipped) == (broken, skipped)


def test_an_experiment_has_its_minimum_and_its_share_of_the_spare_time() -> None:
    quick, long, longest = (
        Experiment("one", "It.", "So.", lambda _: None, share, seconds)
        for share, seconds in ((3, 0), (1, 10), (4, 50))
    )
    assert [allotted([quick, long, longest], left) for left in (140, 60, 0)] == [30, 0, None]
    assert [allotted([long, longest], left) for left in (65, 30, 10, 9)] == [11, 10, 10, None]


def test_after_a_kill_the_store_matches_the_responses(trial: Trial) -> None:
    """The whole of the shortest experiment: one kill of one service on SQLite."""
    (shortest,) = (one for one in EXPERIMENTS if one.name == "kill -9, SQLite")
    conduct(shortest, trial)
    assert trial.broken == []
    assert trial.seen["kills"] == 1
    assert trial.seen["acknowledged changes"] > 0
    assert trial.seen["rows compared"] > 0
    assert trial.seen["events compared"] > trial.seen["acknowledged changes"]
    assert list(trial.folder.iterdir()) == []
