"""``make prove``: it runs, and says what it did not try."""

import subprocess
import sys
from pathlib import Path

import pytest

from proof.__main__ import main

ROOT = Path(__file__).parent.parent.parent


def test_a_run_of_one_experiment_prints_its_report_and_saves_nothing() -> None:
    page = ROOT / "docs/reliability.md"
    before = page.read_bytes()
    run = subprocess.run(
        [
            *(sys.executable, "-m", "proof", "--only", "the HTTP parser", "--save"),
            *("--minutes", "0.01", "--seed", "7"),
        ],
        cwd=ROOT,
        env={"PYTHONPATH": "tests:bench", "PATH": ""},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (run.returncode, run.stderr) == (0, "")
    first, second, *_ = run.stdout.splitlines()
    assert first == "seed 7, 0.01 minutes"
    assert second.startswith("kept    the HTTP parser ")
    assert "## The HTTP parser" in run.stdout
    assert page.read_bytes() == before


def test_an_experiment_that_does_not_fit_into_the_minutes_is_skipped(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("proof.__main__.guarded", lambda run: run())
    monkeypatch.setattr(sys, "argv", ["prove", "--only", "soak", "--minutes", "0.1"])
    assert main() == 0
    printed = capsys.readouterr().out
    assert "        skipped: needs 20 s, and 6 s were left\n" in printed
    assert "- soak: needs 20 s, and 6 s were left.\n" in printed
    assert "crowds; overload" in printed
    assert "Nothing was tried." in printed
