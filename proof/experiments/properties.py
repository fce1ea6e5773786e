"""The properties of the test suite, tried on many more examples than the suite has time for."""

import os
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

from proof.experiment import Experiment, Trial

_ROOT = Path(__file__).parents[2]
_SECONDS = 80  # that the properties take, about, with the examples of an ordinary run
_TAIL_SECONDS = 300  # more than a busy machine takes
_OUTCOMES = re.compile(r"(\d+) (passed|failed|errors?)\b")


def explore(trial: Trial, tests: Path) -> None:
    """Run the properties in a folder or file of tests, each as deep as the time allows."""
    depth = max(1, int(trial.seconds / _SECONDS))
    trial.note_max("times the examples of the suite", depth)
    run = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-n", "2", "-o", "timeout=0"),
            *("-p", "no:cacheprovider", "--basetemp", str(trial.folder / "properties")),
            *("-m", "hypothesis or explores", f"--hypothesis-seed={trial.random.randrange(2**32)}"),
            str(tests),
        ],
        cwd=_ROOT,
        env={**_environment(), "EXPLORATION_DEPTH": str(depth)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=2 * trial.seconds + _TAIL_SECONDS,
        check=False,
    )
    *_, summary = run.stdout.splitlines() or [""]
    for number, outcome in _OUTCOMES.findall(summary):
        trial.count(f"properties that {outcome}", int(number))
    trial.expect(run.returncode == 0, f"pytest ended with {run.returncode}: {run.stdout[-2000:]}")


def _environment() -> dict[str, str]:
    """Return our environment, without what a run of tests that we are part of has put there."""
    return {
        name: os.environ[name]
        for name in os.environ
        if not name.startswith(("PYTEST_", "COVERAGE_"))
    }


EXPERIMENTS = [
    Experiment(
        "properties",
        "The properties that the test suite checks hold for many more inputs and orders of"
        " events: the store matches its model, pages are correct, limits agree with their script,"
        " the service does what its OpenAPI document says, and others.",
        "The tests of properties run with several times the examples, rounds and clients of the"
        " suite.",
        partial(explore, tests=_ROOT / "tests"),
        6,
        min_seconds=90,
    )
]
