"""``make prove`` runs, claims no more than it has seen, and its page is the saved run."""

import os
import subprocess
import sys
from pathlib import Path
from random import Random

import msgspec
import pytest

from proof.__main__ import main
from proof.experiments import EXPERIMENTS
from proof.faulty_disk import FaultyDisk
from proof.report import REPORT, RESULTS, Outcome, Results, one_line, report


def test_after_a_kill_the_store_matches_the_responses_and_one_kill_is_too_few(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("proof.__main__.guarded", lambda run: run())
    (shortest,) = (one for one in EXPERIMENTS if one.name == "kill -9, SQLite")
    monkeypatch.setattr("proof.__main__.EXPERIMENTS", [shortest._replace(min_seconds=0)])
    monkeypatch.setattr("proof.__main__.allotted", lambda *_: 0)
    monkeypatch.setattr(sys, "argv", ["prove", "--minutes", "1", "--seed", "7"])
    assert main() == 0
    printed = capsys.readouterr().out
    assert "too few kill -9, SQLite" in printed
    assert "| kills | 1 |" in printed
    for counted in ("acknowledged changes", "rows compared", "events compared"):
        assert f"| {counted} | 0 |" not in printed
        assert f"| {counted} | " in printed


class Unlucky(Random):
    """Nothing survives that may be lost."""

    def random(self) -> float:
        return 0.99


def test_a_power_cut_leaves_what_was_confirmed(tmp_path: Path) -> None:
    disk = FaultyDisk(tmp_path, tmp_path / "store", keeps_synced=True)
    program = "import os; os.write(1, b'safe'); os.fsync(1); os.write(1, b' or not')"
    confirmed, fresh = tmp_path / "store.db", tmp_path / "store.db-new"
    with confirmed.open("wb") as file:
        command = [sys.executable, "-c", program]
        subprocess.run(command, env={**os.environ, **disk.env}, stdout=file, check=True)
    fresh.write_bytes(b"never confirmed")
    assert confirmed.read_bytes() == b"safe or not"
    assert disk.cut_power(Unlucky()) == 1
    assert (confirmed.read_bytes(), fresh.exists()) == (b"safe", False)


@pytest.mark.parametrize(
    ("seen", "broken", "verdict"),
    [
        ({"kills": 20}, [], "kept"),
        ({"kills": 19, "rows compared": 1e6}, [], "too few"),
        ({"times: hail": 12, "times: snow": 8}, [], "kept"),
        ({"kills": 99}, ["the roof is gone"], "BROKEN"),
        ({}, [], "skipped"),
    ],
)
def test_a_promise_is_kept_after_20_trials(
    seen: dict[str, float], broken: list[str], verdict: str
) -> None:
    outcome = Outcome("a storm", "The roof stays.", "Wind.", 1, seen, broken, ["hail: it is June"])
    assert one_line(outcome).startswith(f"{verdict} ")
    saved = msgspec.json.decode(RESULTS.read_bytes(), type=Results)
    page = report(msgspec.structs.replace(saved, outcomes=[outcome]))
    assert ("- Kept: 1 of 1 promises." in page) == (verdict == "kept")
    assert ("**Too few trials to say: a storm.**" in page) == (verdict == "too few")
    assert ("**Broken: a storm.**" in page) == (verdict == "BROKEN")
    assert "- a storm: hail: it is June." in page


def test_the_page_matches_the_report_of_the_saved_run_of_every_experiment() -> None:
    saved = msgspec.json.decode(RESULTS.read_bytes(), type=Results)
    assert REPORT.read_text() == report(saved)
    promised = [(one.name, one.promise, one.method) for one in EXPERIMENTS]
    assert [(one.name, one.promise, one.method) for one in saved.outcomes] == promised
