"""Attacks are reported as a table and JSON; a server gets the options that it knows."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from attacks import ATTACKS, Attack, options_of
from attacks_report import Attacks, Outcome, report

BENCH = Path(__file__).parent.parent.parent / "bench"
HELP = "  --port INTEGER RANGE  [default: 8000]\n  --connections INTEGER\n  --connections-slow X\n"


def idle() -> Attack:
    (attack,) = [one for one in ATTACKS if one.name == "idle"]
    return attack


@pytest.mark.parametrize(
    ("known", "options"),
    [
        (HELP, ["--connections", "600"]),
        (f"{HELP} --connections-per-address N", [*idle().options[0], *idle().options[1]]),
    ],
    ids=["an older service", "a newer one"],
)
def test_a_server_gets_the_options_that_it_knows(known: str, options: list[str]) -> None:
    assert options_of(idle(), known) == options


def test_no_two_attacks_are_the_same() -> None:
    assert len({(attack.name, attack.callers) for attack in ATTACKS}) == len(ATTACKS)


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


def test_the_table_has_a_row_for_each_outcome() -> None:
    outcome = Outcome(
        attack="chunks",
        tree="petstore",
        callers=1_000,
        p50=2.04,
        p99=20_656.8,
        worst=20_680.7,
        asked=600,
        failed=3,
        megabytes=70.2,
        cores=0.97,
        cpu=28_524,
        seen={"connections": 1_301, "401": 301},
    )
    attacks = Attacks(
        machine="2 cores, Example", system="Linux 6.1", load_average=0.2, outcomes=[outcome]
    )
    assert report(attacks).splitlines()[-1] == (
        "| chunks | 1,000 | petstore | 2.0 | 20,656.8 | 20,680.7 | 3 of 600 | 70 | 0.97 | 28,524 |"
        " 401: 301, connections: 1,301 |"
    )
