"""The program of docs/sync.md does what the guide says."""

import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from proof.experiment import Trial, conduct
from proof.experiments import mirrors
from proof.experiments.mirrors import EXPERIMENTS, program
from support.odd_service import error, odd_service

(EXPERIMENT,) = EXPERIMENTS


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    """A trial of one round, drawn in the same way each time."""
    return Trial(0, Random(3), tmp_path)  # noqa: S311 - what is drawn is no secret


def test_two_stores_are_equal_after_a_kill_of_the_program_and_of_each_service(
    trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirrors, "_KILLS", 4)
    conduct(EXPERIMENT, trial)
    assert trial.broken == []
    assert trial.seen.pop("pets compared") > 0
    assert trial.seen == {
        "kills": 4,
        "kills of the program": 2,
        "kills of the service of the shop": 1,
        "kills of the service of the copy": 1,
    }


def test_the_program_ends_if_its_key_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mirror.py").write_text(program())
    with odd_service(error(401, "invalid_api_key")) as shop:
        urls = {"PETSTORE_URL": f"{shop.url}/v1", "COPY_URL": f"{shop.url}/v1"}
        keys = {"PETSTORE_KEY": "revoked", "COPY_KEY": "valid"}
        done = subprocess.run(
            [sys.executable, "mirror.py"],
            cwd=tmp_path,
            env={**os.environ, **urls, **keys},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert (done.returncode, done.stdout, done.stderr) == (1, "no\n", "")
