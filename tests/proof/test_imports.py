"""An import goes on after a kill, and a row that is added twice is noticed."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from proof.deployments import Deployment, deployed
from proof.experiment import Trial
from proof.experiments.imports import _Way, import_by
from proof.importers import Person, over_http
from proof.judging import judge_feed
from support.memory_folder import folder_in_memory


@pytest.fixture(scope="module")
def deployment() -> Iterator[Deployment]:
    with folder_in_memory() as folder, deployed(folder / "store") as deployment:
        yield deployment


@pytest.fixture
def trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trial:
    monkeypatch.setattr("proof.experiments.imports._KILLS", 1)
    return Trial(0, Random(2), tmp_path)  # noqa: S311 - what is drawn is no secret


def test_an_import_that_is_killed_adds_each_row_once(trial: Trial, deployment: Deployment) -> None:
    import_by(trial, deployment, _Way("over HTTP", over_http, 30))
    assert trial.broken == []
    assert trial.seen["rows imported"] == 30
    assert trial.seen["kills"] == 1


def test_the_feed_ends_with_the_rows_of_a_store_that_has_categories(
    trial: Trial, deployment: Deployment
) -> None:
    deployment.register_category()
    asyncio.run(judge_feed(trial, deployment, [], "at the end"))
    assert trial.broken == []
    assert trial.seen["events compared"] > 0


def test_a_file_that_is_imported_twice_breaks_the_promise(
    trial: Trial, deployment: Deployment
) -> None:
    for _ in range(2):
        import_by(trial, deployment, _Way("in the console", Person, 400))
    (said,) = trial.broken
    assert said.startswith("in the console: 400 rows are not there once, such as {")
    assert trial.seen["rows imported"] == 800
