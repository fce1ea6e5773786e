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


def experiment(name: str) -> Experiment:
    (found,) = (one for one in EXPERIMENTS if one.name == name)
    return found


def test_every_experiment_has_a_name_a_promise_and_a_method_of_its_own() -> None:
    assert len({one.name for one in EXPERIMENTS}) == len(EXPERIMENTS)
    for one in EXPERIMENTS:
        assert one.promise.endswith(".")
        assert one.method.endswith(".")
        assert one.share > 0


def test_a_broken_promise_is_noted_and_counted(trial: Trial) -> None:
    for number in range(30):
        trial.expect(kept=False, otherwise=f"promise {number}")
    trial.expect(kept=True, otherwise="never said")
    assert trial.seen == {"broken promises": 30}
    assert trial.broken == [f"promise {number}" for number in range(20)]


def test_an_experiment_that_fails_itself_breaks_its_promise(
    trial: Trial, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: Trial) -> None:
        msg = "the ground gave way"
        raise ValueError(msg)

    conduct(Experiment("shaky", "It holds.", "By standing.", fail), trial)
    assert trial.broken == ["the experiment failed: ValueError: the ground gave way"]
    assert "the ground gave way" in capsys.readouterr().err


def test_an_experiment_that_this_machine_does_not_allow_is_skipped(trial: Trial) -> None:
    def skip(_: Trial) -> None:
        msg = "needs a second moon"
        raise Skipped(msg)

    conduct(Experiment("lunar", "It shines.", "By looking.", skip), trial)
    assert (trial.broken, trial.skipped) == ([], ["needs a second moon"])


@pytest.mark.parametrize(
    ("seconds", "rounds"), [(0, 1), (5, 1), (19, 1), (20, 2), (39, 3), (40, 4)]
)
def test_rounds_go_on_while_another_one_as_long_fits(
    trial: Trial, seconds: float, rounds: int
) -> None:
    clock = [0.0]
    trial.seconds = seconds
    for _ in trial.rounds(lambda: clock[0]):
        clock[0] += 10
    assert clock[0] == 10 * rounds


QUICK, LONG, LONGEST = (
    Experiment("one", "It.", "So.", lambda _: None, share, least)
    for share, least in ((3, 0), (1, 10), (4, 50))
)


@pytest.mark.parametrize(
    ("left", "seconds"), [(140, 30), (68, 3), (60, 0), (20, 0), (0, None), (-5, None)]
)
def test_an_experiment_has_its_share_of_what_the_shortest_form_of_all_leaves(
    left: float, seconds: float | None
) -> None:
    assert allotted([QUICK, LONG, LONGEST], left) == seconds


@pytest.mark.parametrize(("left", "seconds"), [(9, None), (10, 10), (30, 10), (65, 11)])
def test_an_experiment_that_does_not_fit_has_no_time(left: float, seconds: float | None) -> None:
    assert allotted([LONG, LONGEST], left) == seconds


def test_experiments_that_overrun_take_their_time_from_those_to_come() -> None:
    assert allotted([LONGEST], 80) == 80
    assert allotted([LONGEST], 49) is None


def test_after_a_kill_the_store_matches_the_responses(trial: Trial) -> None:
    """The whole of the shortest experiment: one kill of one service on SQLite."""
    conduct(experiment("kill -9, SQLite"), trial)
    assert trial.broken == []
    assert trial.seen["kills"] == 1
    assert trial.seen["acknowledged changes"] > 0
    assert trial.seen["rows compared"] > 0
    assert trial.seen["events compared"] > trial.seen["acknowledged changes"]
    assert list(trial.folder.iterdir()) == []
