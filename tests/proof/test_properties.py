"""The properties of the suite as an experiment: they run, and a failure is reported."""

from pathlib import Path
from random import Random

from proof.experiment import Trial
from proof.experiments.properties import explore

PROPERTIES = """
import pytest

@pytest.mark.explores
@pytest.mark.parametrize("holds", [True, pytest.param(False, id="test_it_does_not_hold")])
def test_it_holds(holds):
    assert holds

def test_it_is_no_property():
    raise AssertionError
"""


def test_only_properties_run_and_a_failing_one_breaks_the_promise(tmp_path: Path) -> None:
    trial = Trial(0, Random(1), tmp_path)  # noqa: S311 - what is drawn is no secret
    tests = tmp_path / "test_written.py"
    tests.write_text(PROPERTIES)
    explore(trial, tests)
    assert trial.seen == {
        "times the examples of the suite": 1,
        "properties that passed": 1,
        "properties that failed": 1,
        "broken promises": 1,
    }
    assert "test_it_does_not_hold" in trial.broken[0]
