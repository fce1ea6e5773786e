"""A crowd in the console: it is signed in, sends what it should, and what it costs is measured."""

from collections.abc import Iterator
from pathlib import Path
from random import Random

import httpx
import pytest

from proof.deployments import Deployment, deployed
from proof.experiment import Trial
from proof.experiments.console import _Crowd, _crowds_of, _fill, _judge
from support.memory_folder import folder_in_memory


@pytest.fixture(scope="module")
def deployment() -> Iterator[Deployment]:
    with (
        pytest.MonkeyPatch.context() as patch,
        folder_in_memory() as folder,
        deployed(folder / "store") as deployment,
    ):
        patch.setattr("proof.experiments.console._ANIMALS", 20)
        _fill(deployment)
        yield deployment


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    return Trial(0, Random(1), tmp_path)  # noqa: S311 - what is drawn is no secret


def test_a_crowd_signs_in_and_its_cost_is_measured(
    trial: Trial, deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, number in (("_SECONDS", 0.5), ("_ROWS", 20), ("_FILE", 400)):
        monkeypatch.setattr(f"proof.experiments.console.{name}", number)
    crowds = {crowd.name: crowd for crowd in _crowds_of(deployment)}
    for name in ("pages", "refused rows"):
        _judge(trial, deployment, crowds[name]._replace(callers=8), longest=30)
    assert trial.broken == []
    assert trial.seen["requests of the crowds"] > 0
    assert 10 < trial.seen["largest resident set beside pages, MB"] < 200
    with httpx.Client(base_url=deployment.server.url) as http:
        headers = dict(line.split(": ") for line in _lines(crowds["pages"].requests[-1]))
        assert http.get("/console/pets", headers=headers).status_code == 200


def test_growing_memory_and_waiting_clients_break_the_promise(
    trial: Trial, deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proof.experiments.console._SECONDS", 0.2)
    monkeypatch.setattr("proof.experiments.console._MAX_MEGABYTES", 1)
    crowd = _Crowd("pages", [b"GET /console HTTP/1.1\r\nHost: a\r\n\r\n"], 1)
    _judge(trial, deployment, crowd, longest=0)
    late, large = trial.broken
    assert late.startswith("pages: p99 of the good client is ")
    assert large.startswith("pages: the process had ")


def _lines(request: bytes) -> list[str]:
    _, *fields = request.partition(b"\r\n\r\n")[0].decode().split("\r\n")
    return fields
