"""The properties of the suite as an experiment: they run, and one that fails is told."""

from pathlib import Path
from random import Random

from proof.experiment import Trial
from proof.experiments.properties import explore

PROPERTY = """
import pytest

@pytest.mark.explores
def test_it_holds():
    assert {holds}

def test_it_is_no_property():
    raise AssertionError
"""


def explored(tmp_path: Path, *, holds: bool) -> Trial:
    trial = Trial(0, Random(1), tmp_path)  # noqa: S311 - what is drawn is no secret
    tests = tmp_path / "test_written.py"
    tests.write_text(PROPERTY.format(holds=holds))
    explore(trial, tests)
    return trial


def test_properties_alone_run_and_are_counted(tmp_path: Path) -> None:
    trial = explored(tmp_path, holds=True)
    assert trial.broken == []
    assert trial.seen == {"times the examples of the suite": 1, "properties that passed": 1}


def test_a_property_that_does_not_hold_breaks_the_promise(tmp_path: Path) -> None:
    trial = explored(tmp_path, holds=False)
    assert trial.seen["properties that failed"] == 1
    assert "test_it_holds" in trial.broken[0]
