"""A part of the comparison can be chosen by name, and only a whole one is saved."""

import pytest

from compare import cases, parse_options


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit):
        parse_options(list(arguments))
    return capsys.readouterr().err


def test_works_and_connections_choose_cases() -> None:
    all_cases = {"list": (1, 32), "get": (1, 32), "mix": (32,)}
    every_one = [("list", 1), ("list", 32), ("get", 1), ("get", 32), ("mix", 32)]
    assert cases(all_cases, None, None) == every_one
    assert cases(all_cases, ["get", "mix"], [32]) == [("get", 32), ("mix", 32)]


def test_a_quick_run_is_one_round_of_a_second() -> None:
    options = parse_options(["go", "--quick"])
    assert [one.name for one in options.names] == ["go"]
    assert (options.rounds, options.seconds, options.connections) == (1, 1, [32])


@pytest.mark.parametrize("part", [("go",), ("--works", "list"), ("--on", "sqlite"), ("--quick",)])
def test_a_part_is_not_saved(part: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert "--save is for a whole run" in refusal(capsys, *part, "--save")


def test_an_unknown_work_is_refused_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    said = refusal(capsys, "--works", "lists")
    assert "invalid choice: 'lists' (choose from 'list', 'deep page'" in said
