"""A part of the comparison can be chosen by name, and only a whole one is saved."""

import subprocess
import sys
from pathlib import Path

import pytest

from compare import cases

COMPARE = Path(__file__).parent.parent.parent / "bench/compare.py"


def refusal(*arguments: str) -> str:
    command = (sys.executable, str(COMPARE), *arguments)
    ended = subprocess.run(command, check=False, capture_output=True, text=True)
    assert ended.returncode == 2
    return ended.stderr


def test_works_and_connections_choose_cases() -> None:
    all_cases = {"list": (1, 32), "get": (1, 32), "mix": (32,)}
    assert cases(all_cases, None, None) == [
        *(("list", 1), ("list", 32), ("get", 1), ("get", 32), ("mix", 32))
    ]
    assert cases(all_cases, ["get", "mix"], [32]) == [("get", 32), ("mix", 32)]


@pytest.mark.parametrize("part", [("go",), ("--works", "list"), ("--on", "sqlite"), ("--quick",)])
def test_a_part_is_not_saved(part: tuple[str, ...]) -> None:
    assert "--save is for a whole run" in refusal("--save", *part)


def test_a_work_that_is_unknown_is_refused_with_those_that_are_known() -> None:
    assert "invalid choice: 'lists' (choose from 'list', 'deep page'" in refusal("--works", "lists")
