"""Attacks run, and a server gets the options that it knows."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from attacks import ATTACKS, Attack, options_of

BENCH = Path(__file__).parent.parent.parent / "bench"
HELP = (
    "  --port INTEGER RANGE  [default: 8000]\n  --max-connections INTEGER\n  --connections-slow X\n"
)
IDLE: Attack = next(one for one in ATTACKS if one.name == "idle")


@pytest.mark.parametrize(
    ("known", "options"),
    [
        (HELP, ["--max-connections", "600"]),
        (f"{HELP} --connections-per-address N", [*IDLE.options[0], *IDLE.options[2]]),
    ],
    ids=["an older service", "a newer one"],
)
def test_a_server_gets_only_the_options_that_it_supports(known: str, options: list[str]) -> None:
    assert options_of(IDLE, known) == options


def test_the_good_client_alone_has_no_failures_and_is_reported_as_a_table_and_json(
    tmp_path: Path,
) -> None:
    file = tmp_path / "attacks.json"
    arguments = ("alone", "--seconds", "0.5", "--json", str(file))
    ended = subprocess.run(
        [sys.executable, BENCH / "attacks.py", *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    (outcome,) = json.loads(file.read_text())["outcomes"]
    assert (outcome["asked"], outcome["failed"], outcome["seen"]) == (50, 0, {})
    assert f"| alone | 0 | {BENCH.parent.name} |" in ended.stdout
